"""LeafModel: intervals from a fitted forest of any library that reports the leaves of rows."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from hdicore import LeafIndex
from hdiforest._estimators.distribution_model import DistributionModel
from hdiforest._estimators.input_rows import checked_per_row, concatenated, require_uncensored
from hdiforest._estimators.row_source import (
    Query,
    Readings,
    RowSource,
    join_columns,
    query_mean_and_intervals,
    query_of,
)
from hdiforest._model.bases import check_base
from hdiforest._tables.frames import frame_of
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils import Array, Kind, Weights, checks
from hdiforest._utils.checks import thread_count
from hdiforest._utils.kinds import TWO_SIDED
from hdiforest.calibration import Base, Split
from hdiforest.calibration._calibrate import calibrate
from hdiforest.calibration._candidates import DEFAULT_COVERAGES, Candidates
from hdiforest.calibration._methods import resolve_method
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import Selected, reselected
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._model_file import LEAVES
from hdiforest.serving._serialization import IndexedLeaves, leaves_from_arrays, leaves_to_arrays

Apply = Callable[[Any], ArrayLike]

BLOCK_IDS = 2**22  # in a block: 32 MB as int64, the widest that libraries report
FIRST_ROWS = 1024  # of the first block, where the number of trees is not known yet


class LeafModel(DistributionModel[IndexedLeaves]):
    """Conditional distributions from the leaves of rows in a fitted forest of any library.

    `fit` fits no forest. It indexes training rows by the leaves of a forest that is already fitted.
    `from_leaves` makes a model and calls `fit` in one step.

    Parameters
    ----------
    apply : callable
        The forest's own function from rows to the leaf in each tree, such as
        ``functools.partial(booster.predict, pred_leaf=True)``. It returns (n, n_trees), or (n,) for
        one tree: whole numbers from 0 and below 2**28, of any type. Memory grows with the largest
        id.
    n_leaves : (n_trees,) int array, default=None
        Number of leaves of each tree. It is needed if some leaves hold no training row, as in
        symmetric trees. Such leaves say nothing about new rows. Without `n_leaves` they are errors.
    n_jobs : int, default=None
        Threads for the intervals. `apply` has threads of its own. None means 1, or the number in
        ``joblib.parallel_config``. -1 means all processors.

    Attributes
    ----------
    index_ : hdicore.LeafIndex
        The training rows by leaf.
    n_outputs_ : int
        Number of targets.
    n_training_rows_ : int or None
        Number of training rows. None if `from_index` was not told it.
    calibration_ : hdiforest.calibration.Calibration
        The result of `calibrate`. A model without a calibration has none.
    counts_ : hdiforest.serving.RowCounts
        Counts of the rows predicted since the fit or `calibrate`. If `apply` has a method
        ``unseen``, they include the cells of categories that the forest does not know.

    Notes
    -----
    `apply` gets rows in the form that the caller gives. Lists, arrays, sparse matrices that can be
    sliced, and tables of pandas, polars and pyarrow are passed in blocks of at most 2**22 leaf ids.
    Anything else is passed whole.

    A model can be pickled if `apply` can.

    Boosted trees give wide intervals, because rows in one of their leaves are no sample of a
    distribution (:doc:`/forests`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from hdiforest import LeafModel
    >>> X = np.arange(40.0)[:, None]
    >>> forest = RandomForestRegressor(10, max_depth=2, random_state=0).fit(X, X.ravel())
    >>> model = LeafModel(forest.apply).fit(X, X.ravel())
    >>> model.predict_interval([[3.0], [33.0]], coverage=0.9).shape
    (2, 2)
    """

    def __init__(
        self, apply: Apply, *, n_leaves: ArrayLike | None = None, n_jobs: int | None = None
    ) -> None:
        self.apply = apply
        self.n_leaves = n_leaves
        self.n_jobs = n_jobs

    @property
    def index_(self) -> LeafIndex:
        """The training rows by leaf. It does not check whether its file has changed."""
        return self._fitted.index

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: Weights = None,
        event: ArrayLike | None = None,
    ) -> Self:
        """Index training rows by the leaves they lie in.

        Parameters
        ----------
        X : rows as `apply` takes them
            Training rows of the forest, or any rows with targets to predict from.
        y : (n,) or (n, n_outputs) array
            Targets of the rows, finite numbers.
        sample_weight : (n,) array, optional
            Weights of the rows. None means equal weights. Every row counts in each of its leaves
            (the paper's definition).
        event : (n,) bool array, optional
            Whether the event came at the time y, which is censored elsewhere. Such a model has
            intervals, quantiles and distribution functions, but no means and no calibration.

        Returns
        -------
        LeafModel
            The model itself. It refuses a new row in a leaf without a row of X. In that case X are
            not the rows of the fit, or the trees are of a kind that needs `n_leaves`.
        """
        require_uncensored(y)
        leaves, n_threads = all_leaves(self.apply, X), thread_count(self.n_jobs)
        new_index: Callable[..., LeafIndex] = LeafIndex.from_leaves
        if self.n_leaves is not None:
            new_index = partial(LeafIndex, n_leaves=self.n_leaves)
        options: dict[str, Any] = {"event": event, "sample_weight": sample_weight}
        index = new_index(leaves, y, **options, n_threads=n_threads)
        self._keep(IndexedLeaves(index, len(leaves), None, frame_of(y, "y").names))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index of the training rows and the calibration to a file in safetensors format.

        The file does not hold `apply`. Save the forest with its own library
        (:doc:`/forests`).

        Parameters
        ----------
        path : path
            The file to write. An existing file is replaced.
        """
        tensor_file.write(Path(path), LEAVES, leaves_to_arrays(self._fitted_forest()).arrays)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        apply: Apply,
        *,
        n_jobs: int | None = None,
        verify: bool = False,
        mapped: bool = True,
    ) -> Self:
        """Open the index that `save` wrote, for the same forest.

        Parameters
        ----------
        path : path
            The file that `save` wrote.
        apply : callable
            The forest's own function from rows to leaf ids. See the class.
        n_jobs : int, default=None
            Threads for the intervals. See the class.
        verify : bool, default=False
            Whether to check everything now, with the checksums of large arrays. See
            `HDIForestRegressor.load`.
        mapped : bool, default=True
            Whether to map the file instead of reading a copy. See `HDIForestRegressor.load`.

        Returns
        -------
        LeafModel
            A fitted model.
        """
        loaded = tensor_file.load(Path(path), LEAVES, verify=verify, mapped=mapped)
        model = cls(apply, n_jobs=n_jobs)
        model._keep(replace(loaded.content, check_file=loaded.check_file))
        return model

    _read_parts = staticmethod(leaves_from_arrays)

    def _keep(self, fitted: IndexedLeaves) -> None:
        self._fitted, self.counts_ = fitted, RowCounts()

    def _source(self, X: Any) -> LeavesOfRows:
        return LeavesOfRows(self, X)

    def calibrate(
        self,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float | Sequence[float] = DEFAULT_COVERAGES,
        method: Split | Literal["split"] | None = None,
        base: tuple[Kind, float] = ("equal_tailed", 0.8),
        mean: None = None,
    ) -> Self:
        """Widen intervals by rows that took no part in the fit, so that they cover their coverage.

        Parameters
        ----------
        X : rows as `apply` takes them
            Rows that took no part in the fit. This is not checked.
        y : (n,) array
            Targets of the rows.
        coverage : float or sequence of floats, default=(0.5, 0.8, 0.9, 0.95, 0.99)
            Shares of targets to cover, above 0 and below 1. See `HDIForestRegressor.calibrate`.
        method : Split or "split", optional
            The method of calibration. Leaves alone allow only "split". See
            `hdiforest.calibration.Split`.
        base : (kind, level), default=("equal_tailed", 0.8)
            The intervals to widen: a kind with two ends, and the share of the distribution to hold.
            The base must not be chosen by the calibration rows.
        mean : None
            No other mean is possible. Another mean needs a forest of scikit-learn:
            ``HDIForestRegressor().fit(X, y)``.

        Returns
        -------
        LeafModel
            The model itself. It must have one output. Its intervals are not snapped to a lattice,
            because the index does not know how often each target occurs.
        """
        leaves = self._fitted_forest()
        if mean is not None:
            raise ValueError(
                "mean must be None for a LeafModel, because it knows no tree; call "
                "HDIForestRegressor().fit(X, y).calibrate(mean=...) with the rows of the fit"
            )
        if leaves.index.censored:
            raise ValueError("a LeafModel of censored targets has no calibration")
        if self.n_outputs_ > 1:
            raise ValueError(f"calibrate needs a model of one target, got {self.n_outputs_}")
        if method not in (None, "split") and not isinstance(method, Split):
            raise ValueError(f"method must be 'split' for a LeafModel, got {method!r}")
        how = cast("Split", resolve_method(method or "split", X, y))
        if how.objective != Split.objective:
            must = f"objective must be {Split.objective!r} for a LeafModel"
            raise ValueError(f"{must}, whose base is given, got {how.objective!r}")
        coverages, targets = checks.checked_coverages(coverage), checks.check_targets("y", y)
        if not (isinstance(base, tuple | list) and len(base) == 2):
            raise ValueError(f"base must be a kind and a level, got {base!r}")
        interval = Base("raw", *base)
        checks.check_choice("kind", interval.kind, TWO_SIDED)
        check_base(interval)
        checks.check_as_many("y", targets, frame_of(X).n_rows)
        bases = [interval, *interval.quantiles()]
        levels, kinds = [each.level for each in bases], [each.kind for each in bases]
        ends = self._source(X).query(query_of("intervals", levels, kinds))
        checks.check_no_interval_is_empty(ends)
        postprocess = PostProcess.from_targets(leaves.index.atoms(0))
        quantiles = {interval.group: ends[:, 1, 1:]}
        candidates = Candidates([interval], ends[..., :1], targets, postprocess, quantiles)
        rule = reselected([Selected(interval, c) for c in coverages], how.confidence)
        calibration, _ = calibrate(how.name, candidates, coverages, rule, confidence=how.confidence)
        self._keep(replace(leaves, calibration=how.promised(calibration)))
        return self

    def __sklearn_clone__(self) -> Self:
        # The usual clone would copy the forest that `apply` belongs to.
        copied = type(self)(**self.get_params(deep=False))
        if hasattr(self, "_metadata_request"):
            copied._metadata_request = copy.deepcopy(self._metadata_request)
        return copied

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class LeavesOfRows(RowSource):
    """Rows that a LeafModel is asked for, by the leaves that its function puts them in."""

    def query(self, query: Query, values: ArrayLike | None = None) -> Array:
        """Ask the index for blocks of leaves, and count the rows."""
        index, apply, X = self.fitted.index, self.model.apply, self.X
        per_row = checked_per_row(values, frame_of(X).n_rows, index.n_outputs)
        n_threads = thread_count(self.model.n_jobs)
        answers = concatenated(
            query(index, leaves, *(each[rows] for each in per_row), n_threads=n_threads)
            for rows, leaves in leaves_by_block(apply, X, index.n_trees)
        )
        counts, unseen = RowCounts(), getattr(apply, "unseen", None)
        counts.n_rows = len(answers)
        counts.unseen.update({} if unseen is None or len(answers) == 0 else unseen(X))
        self.model.counts_.add(counts)
        return answers

    def calibrated_interval(
        self,
        coverage: Any,
        by: Any,
        joint: bool,  # noqa: ARG002
        with_mean: bool,
        kind: str,  # noqa: ARG002
    ) -> Array:
        """Widen the base interval that all coverages have; of one output it is a box, too."""
        if by is not None:
            raise ValueError("by must be None: the calibration was not made by groups")
        calibration = self.fitted.calibration
        positions, base = calibration.positions(coverage), calibration.bases[0]
        query = partial(query_mean_and_intervals, coverage=[base.level], kind=base.kind)
        columns = self.query(query)
        ends = np.repeat(columns[:, 1:, None], len(calibration.levels), 2)
        intervals = calibration.intervals(ends)[..., positions]
        return join_columns(columns[:, 0], intervals) if with_mean else intervals

    def read_bases(self, readings: Readings, values: Array | None = None) -> Array:
        """Read the base quantiles of the only output."""
        levels, read = readings[0]

        def query(index: Any, leaves: Any, *per_row: Array, **options: Any) -> Array:
            return read(index.intervals(leaves, levels, "upper", **options)[:, 1], *per_row)

        return self.query(query, values)


def from_leaves(
    apply: Apply,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: Weights = None,
    event: ArrayLike | None = None,
    n_leaves: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> LeafModel:
    """Use a fitted forest of any library, without fitting anything.

    Parameters
    ----------
    apply : callable
        The forest's own function from rows to the leaf in each tree. See `LeafModel`.
    X : rows as `apply` takes them
        Training rows of the forest.
    y : (n,) or (n, n_outputs) array
        Targets of the rows, finite numbers.
    sample_weight : (n,) array, optional
        Weights of the rows. None means equal weights.
    event : (n,) bool array, optional
        Whether the event came at the time y. See `LeafModel.fit`.
    n_leaves : (n_trees,) int array, optional
        Number of leaves of each tree, if some leaves hold no training row. See `LeafModel`.
    n_jobs : int, default=None
        Threads for the intervals. See `LeafModel`.

    Returns
    -------
    LeafModel
        A fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from hdiforest import from_leaves
    >>> X = np.arange(40.0)[:, None]
    >>> forest = RandomForestRegressor(10, max_depth=2, random_state=0).fit(X, X.ravel())
    >>> model = from_leaves(forest.apply, X, X.ravel())
    >>> lower, upper = model.predict_interval([[3.0], [33.0]], coverage=0.9).T
    >>> bool((lower <= [3, 33]).all() and (upper >= [3, 33]).all())
    True
    """
    return LeafModel(apply, n_leaves=n_leaves, n_jobs=n_jobs).fit(X, y, sample_weight, event)


def from_index(
    apply: Apply, index: LeafIndex, *, n_training_rows: int | None = None, n_jobs: int | None = None
) -> LeafModel:
    """Use training rows that are already indexed by their leaves.

    Parameters
    ----------
    apply : callable
        The forest's own function from rows to the leaf in each tree. See `LeafModel`.
    index : hdicore.LeafIndex
        An index of the training rows by the leaf ids that `apply` returns.
    n_training_rows : int, optional
        Number of rows that the index was made of.
    n_jobs : int, default=None
        Threads for the intervals. See `LeafModel`.

    Returns
    -------
    LeafModel
        A fitted model.

    Examples
    --------
    >>> from hdicore import LeafIndex
    >>> from hdiforest import from_index
    >>> index = LeafIndex.from_leaves([[0], [0], [1]], [1.0, 3.0, 5.0])
    >>> from_index(lambda rows: rows, index).predict([[0], [1]])
    array([2., 5.])
    """
    model = LeafModel(apply, n_jobs=n_jobs)
    model._keep(IndexedLeaves(index, n_training_rows))
    return model


def leaves_by_block(
    apply: Apply, X: Any, n_trees: int | None = None
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield slices of rows and their leaf ids, (rows of the slice, n_trees), as `apply` gives them.

    Blocks hold at most `BLOCK_IDS` ids, or one row. The only block is X itself if it is no larger
    or cannot be sliced. `apply` is not called for no rows, if the number of trees is known.
    """
    if not callable(apply):
        raise ValueError(
            "apply must be a function from rows to leaf ids, such as the method apply of a forest, "
            f"got {type(apply).__name__}"
        )
    frame = frame_of(X)
    n = frame.n_rows
    if n == 0 and n_trees is not None:  # of which some libraries are not to be asked
        yield slice(0, 0), np.empty((0, n_trees), dtype=np.int32)
        return
    begin, at_once = 0, FIRST_ROWS if n_trees is None else max(1, BLOCK_IDS // max(1, n_trees))
    if n is None or n <= at_once:
        leaves = np.asarray(apply(X))
        yield slice(0, n), leaves[:, None] if leaves.ndim == 1 else leaves
        return
    while begin < n:
        rows = slice(begin, min(begin + at_once, n))
        leaves = np.asarray(apply(frame.rows(rows)))
        leaves = leaves[:, None] if leaves.ndim == 1 else leaves
        expected = (rows.stop - begin, *(leaves.shape[1:] if n_trees is None else (n_trees,)))
        if leaves.shape != expected:
            must = "apply must return the leaf of each row in each tree, in an array of shape"
            raise ValueError(f"{must} {expected}, got {leaves.shape}")
        yield rows, leaves
        begin, n_trees = rows.stop, leaves.shape[-1]
        at_once = max(1, BLOCK_IDS // max(1, n_trees))


def all_leaves(apply: Apply, X: Any) -> NDArray[Any]:
    """Return the leaf ids of all rows, as int32 where that is the same."""
    return concatenated(_narrowed(leaves) for _, leaves in leaves_by_block(apply, X))


def _narrowed(leaves: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as int32, or as they are if these differ, which an index refuses."""
    if leaves.dtype.kind not in "iuf":
        return leaves
    with np.errstate(invalid="ignore"):
        narrow = leaves.astype(np.int32, copy=False)
    return narrow if np.array_equal(narrow, leaves) else leaves
