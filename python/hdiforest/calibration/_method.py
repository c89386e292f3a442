"""Method: how a forest is calibrated, and what is asked of any such way."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import Calibrated, FittedForest, Rows
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.training_rows import TreeBlock
from hdiforest._utils import Array
from hdiforest.calibration._groups import GroupSource
from hdiforest.exceptions import InfiniteIntervalsWarning

LabelledRows = tuple[Rows, Array]  # (n, n_features), and their targets

# Fits the forest again on some training rows; returns it, and others as rows for it.
Refit = Callable[[NDArray[np.intp], NDArray[np.intp]], tuple[FittedForest, Rows]]


class Request(NamedTuple):
    """The options that all methods share. See `HDIForestRegressor.calibrate`."""

    coverages: tuple[float, ...]  # ascending
    n_threads: int
    rows: LabelledRows | None = None  # that took no part in the fit
    by: GroupSource | None = None
    mean: Any = None
    random_state: int | None = 0
    # Returns what fits again, or raises ValueError, of the argument that needs it.
    refit: Callable[[str], Refit] | None = None
    blocks: Sequence[TreeBlock] = ()  # all leaves and draws of the training rows, if at hand

    def source(self, forest: FittedForest) -> OutOfBagIntervals:
        """Return the base intervals of training rows out of bag."""
        return OutOfBagIntervals(forest, self.n_threads, self.mean, self.random_state, self.blocks)

    def refitting(self, what: str) -> Refit:
        """Return what fits the forest again, or raise ValueError."""
        assert self.refit is not None  # of a model of scikit-learn's
        return self.refit(what)


class Method(ABC):
    """One way to calibrate a forest, with the arguments of that way."""

    name: ClassVar[str]
    needs_rows: ClassVar[bool] = False  # X and y that took no part in the fit
    # Several of them answer together, for one target and without groups.
    has_forests: ClassVar[bool] = False

    @abstractmethod
    def fit(self, forest: FittedForest, request: Request) -> Calibrated:
        """Calibrate a forest.

        Parameters
        ----------
        forest : FittedForest
            The fitted forest. It stays as it is.
        request : Request
            The coverages, and the options that all methods share.

        Returns
        -------
        Calibrated
            The calibration, with the intervals that it gives.

        Raises
        ------
        ValueError
            If the forest cannot be calibrated by the method.
        """


def require_out_of_bag(method: str, source: OutOfBagIntervals) -> None:
    """Raise ValueError unless enough training rows are left out by enough trees."""
    rest = "call calibrate(X, y) with rows that took no part in the fit, or calibrate(method='cv+')"
    source.require_rows("{method}", "{rest}", method, method=f"method={method!r}", rest=rest)


@contextmanager
def ignore_infinite_intervals() -> Iterator[None]:
    """Ignore the warning that rows are too few for a coverage."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfiniteIntervalsWarning)
        yield
