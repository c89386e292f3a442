"""Warnings and errors of this package that programs may want to tell from others."""

__all__ = ["ModelReplacedError", "TrainingRowsWarning"]


class TrainingRowsWarning(UserWarning):
    """X holds the rows of the fit, whose targets the intervals cover more often than new ones."""


class ModelReplacedError(OSError):
    """A model file was replaced or written to while a model or scorer of it was in use."""
