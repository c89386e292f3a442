"""Warnings and errors of this package that programs may want to tell from others."""

__all__ = ["ModelReplacedError", "TrainingRowsWarning"]


class TrainingRowsWarning(UserWarning):
    """X holds the rows of the fit, whose targets the intervals cover more often than new ones."""


class ModelReplacedError(OSError):
    """A model file was written to while a model that maps it was in use; load it again."""
