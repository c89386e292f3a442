"""Warnings and errors of this package that programs may want to tell from others."""

__all__ = [
    "FrozenMeanWarning",
    "InfiniteIntervalsWarning",
    "MeansWarning",
    "ModelReplacedError",
    "NewGroupsWarning",
    "OutOfBagWarning",
    "TrainingRowsWarning",
]


class TrainingRowsWarning(UserWarning):
    """X holds the rows of the fit. Intervals cover their targets more often than new targets."""


class InfiniteIntervalsWarning(UserWarning):
    """The calibration rows are too few for a coverage, and its intervals are infinite."""


class OutOfBagWarning(UserWarning):
    """Training rows have no out-of-bag result, because no tree left them out."""


class NewGroupsWarning(UserWarning):
    """Rows are of groups without calibration rows."""


class MeansWarning(UserWarning):
    """The forest does not predict means of leaves. Its predictions are not the model's means."""


class FrozenMeanWarning(UserWarning):
    """A frozen model seems to know the rows of the fit, so that its errors on them are too small.

    `calibrate` takes it as the mean. Its intervals will be too narrow for new rows.
    """


class ModelReplacedError(OSError):
    """A model file was replaced or written to while a model or scorer of it was in use."""
