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
    """X holds the rows of the fit, whose targets the intervals cover more often than new ones."""


class InfiniteIntervalsWarning(UserWarning):
    """Calibration rows are too few for a coverage, so that its intervals are infinite."""


class OutOfBagWarning(UserWarning):
    """Training rows have no out-of-bag result, because no tree left them out."""


class NewGroupsWarning(UserWarning):
    """Rows are of groups that the calibration had no rows of."""


class MeansWarning(UserWarning):
    """The forest does not predict means of leaves, so that the means of the model are others."""


class FrozenMeanWarning(UserWarning):
    """A frozen model seems to know the rows of the fit, so that its errors on them say too little.

    `calibrate` takes it as the mean, and its intervals will be too narrow for new rows.
    """


class ModelReplacedError(OSError):
    """A model file was replaced or written to while a model or scorer of it was in use."""
