"""The compiled module: the one source of its names, signatures, types and docstrings.

`hdicore/bindings/stub_header.py` makes of it what the module is compiled with. Queries of LeafIndex
have the docstrings of Scorer's, with leaves in place of rows.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import CapsuleType

# Kinds of intervals that hold their coverage, and these and others, which are read to be widened.
Kind = Literal["hdi", "equal_tailed", "lower", "upper"]
BaseKind = Literal[Kind, "averaged"]
_Interpolation = Literal[
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]
_Floats = NDArray[np.float64]
_Leaves = NDArray[np.int32]  # (n, n_trees)
_Family = Literal["raw", "centred"]
_Blocks = Iterable[tuple[ArrayLike, ArrayLike | None]]  # leaves and counts of some trees

class _TreeArrays(TypedDict):
    children_left: ArrayLike
    children_right: ArrayLike
    feature: ArrayLike
    threshold: ArrayLike
    missing_go_to_left: ArrayLike

class _FitRecord(TypedDict):
    weight: ArrayLike  # (n_leaves,)
    value: ArrayLike  # (n_leaves, n_outputs)
    bounds: ArrayLike | None  # (2, n_leaves) of monotonic constraints
    medians: bool  # whether values are medians, not means

class _ForestArrays(TypedDict):
    nodes: NDArray[np.uint32]  # (n_nodes, 2) or (n_nodes, 4)
    tree_offsets: NDArray[np.int64]  # (n_trees + 1,)
    leaf_nodes: NDArray[np.int32]  # (n_leaves,)

class _LeafIndexArrays(TypedDict):
    leaf_offsets: NDArray[np.int64]  # (n_trees + 1,)
    atom_offsets: NDArray[np.int64]  # (n_outputs + 1,)
    atoms: _Floats  # (n_atoms,) of all outputs
    tree_begin: NDArray[np.int64]  # (n_outputs * n_trees + 1,)
    leaf_begin: NDArray[np.uint32]  # (n_outputs * (n_leaves + n_trees),)
    ranks: NDArray[np.uint16] | NDArray[np.uint32]  # (n_entries,)
    # (n_entries,), or none if the entries of each leaf weigh alike
    units: NotRequired[NDArray[np.uint32] | NDArray[np.uint64]]
    # (n_entries,) rows behind each, or none if there is one behind each
    copies: NotRequired[NDArray[np.uint8] | NDArray[np.uint32]]
    seen: NotRequired[NDArray[np.uint64]]  # a bit a leaf, or none if all exist
    pooled: NotRequired[NDArray[np.uint8]]  # (0,) if leaves are pooled
    events: NotRequired[NDArray[np.uint8]]  # (n_atoms,) of a censored index

class _Instructions(TypedDict):
    used: str
    available: tuple[str, ...]

class _KindFacts(TypedDict):
    number: int
    ends: tuple[str, ...]
    holds_coverage: bool

class Forest:
    """Decision trees that route rows to leaves, from plain arrays.

    The arrays hold the nodes of all trees, one tree after the other, in the form of scikit-learn.
    Children are counted from the root of their own tree.

    Parameters
    ----------
    children_left : (n_nodes,) int
        Left child of each node. A leaf has -1 in both arrays of children.
    children_right : (n_nodes,) int
        Right child of each node.
    feature : (n_nodes,) int
        Feature that each inner node splits on.
    threshold : (n_nodes,) float
        Threshold of each inner node. Rows with ``float32(x) <= threshold`` go left.
    missing_go_to_left : (n_nodes,) bool
        Whether NaN goes left.
    tree_offsets : (n_trees + 1,) int
        Positions of the trees: tree t has the nodes ``[tree_offsets[t], tree_offsets[t + 1])``.
    n_features : int
        Number of columns of a row.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Raises
    ------
    ValueError
        If a tree is not a proper binary tree, or an index or threshold is out of range.

    Notes
    -----
    Immutable, and therefore safe to share between threads. Building is O(n_nodes).

    Examples
    --------
    >>> from hdicore import Forest
    >>> forest = Forest([1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, -2, -2], [1, 0, 0], [0, 3], 1)
    >>> forest.leaves([[0.0], [1.0]])
    array([[0],
           [1]], dtype=int32)
    """

    def __init__(
        self,
        children_left: ArrayLike,
        children_right: ArrayLike,
        feature: ArrayLike,
        threshold: ArrayLike,
        missing_go_to_left: ArrayLike,
        tree_offsets: ArrayLike,
        n_features: int,
        *,
        n_threads: int = 0,
    ) -> None: ...
    @staticmethod
    def from_trees(trees: Sequence[_TreeArrays], n_features: int, *, n_threads: int = 0) -> Forest:
        """Return a forest of trees that are read where they are.

        Parameters
        ----------
        trees : sequence of dicts of arrays, each (n_nodes,)
            For each tree its ``children_left``, ``children_right``, ``feature``, ``threshold`` and
            ``missing_go_to_left``, as scikit-learn's ``tree_`` names them; other entries are not
            read. Columns of a structured array are not copied if they hold int64, float64 and
            uint8.
        n_features : int
            Number of columns of a row.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        Forest
            The forest, equal to the one that the constructor makes.

        Raises
        ------
        ValueError
            If the constructor refuses the trees.
        """

    @staticmethod
    def from_arrays(
        arrays: _ForestArrays,
        n_features: int,
        *,
        copy: bool = True,
        source: str | None = None,
        lazy: bool = False,
    ) -> Forest:
        """Return the forest of which `arrays()` returned the arrays, checked.

        Parameters
        ----------
        arrays : dict of arrays
            The result of `arrays()`.
        n_features : int
            Number of columns of a row.
        copy : bool, default=True
            Whether to copy the arrays. If not, arrays of the right type, C-ordered and aligned, are
            used as they are, such as arrays of a file mapped for reading. Nobody, and no other
            process, may then write to their memory while the object lives, because it is not
            checked again.
        source : str, optional
            The beginning of error messages, such as the name of the file.
        lazy : bool, default=False
            Whether to check only sizes and offsets at once. The rest is checked when it is used: a
            query of few rows checks the nodes that it reads, and a query of many rows checks all,
            once.

        Returns
        -------
        Forest
            A forest equal to the original.

        Raises
        ------
        ValueError
            If an array is missing, not known, of another type or shape, or out of range.
        """

    def arrays(self) -> _ForestArrays:
        """Return read-only views of the arrays that hold the forest.

        Returns
        -------
        dict of arrays
            The nodes, (n_nodes, 2) uint32, or (n_nodes, 4) if a tree is very large or there are
            more than 256 features. tree_offsets, (n_trees + 1,) int64. leaf_nodes, (n_leaves,)
            int32.
        """

    def apply(self, X: ArrayLike, *, n_threads: int = 0, out: _Leaves | None = None) -> _Leaves:
        """Return the node id of the leaf of each row in each tree, like scikit-learn's ``apply``.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : (n, n_trees) int32, optional
            Array to fill and return.

        Returns
        -------
        (n, n_trees) int32
            Node ids.
        """

    def leaves(self, X: ArrayLike, *, n_threads: int = 0, out: _Leaves | None = None) -> _Leaves:
        """Return the leaf of each row in each tree, in the numbers of `LeafIndex`.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : (n, n_trees) int32, optional
            Array to fill and return.

        Returns
        -------
        (n, n_trees) int32
            Numbers from 0 to n_leaves[t] - 1 in tree t. ``leaf_nodes`` translates them to node ids.
        """

    def leaves_of_trees(
        self,
        X: ArrayLike,
        first: int,
        last: int,
        *,
        order: ArrayLike | None = None,
        n_threads: int = 0,
    ) -> _Leaves:
        """Route rows down the trees [first, last): the columns of `leaves` for the trees.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        first : int
            The first tree.
        last : int
            The tree behind the last.
        order : (n,) int, optional
            A permutation, the order in which rows are routed. It is fast if neighbours share
            leaves.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (n, last - first) int32
            In Fortran order.
        """

    def prune(
        self, leaf_sizes: ArrayLike, min_samples_leaf: int, *, n_threads: int = 0
    ) -> tuple[Forest, NDArray[np.int32]]:
        """Turn each node into a leaf if one of its children holds too few rows.

        Parameters
        ----------
        leaf_sizes : (n_leaves.sum(),) int
            Number of rows of each leaf, tree after tree. A node holds the rows of all leaves below
            it. Counts of the rows that a tree drew, each once however often it was drawn, prune as
            `min_samples_leaf` does in the fit of a bootstrapped forest.
        min_samples_leaf : int
            Rows that both children of a node must hold for it to stay a split; at least 1.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        forest : Forest
            Equal to `from_trees` of the pruned trees, nodes numbered depth first. A tree without
            pruned nodes keeps its node ids.
        new_leaves : (n_leaves.sum(),) int32
            The leaf of the pruned forest that contains each leaf of the forest.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.

        Notes
        -----
        O(n_nodes). Pruning to 5 and then to 15 is the same as pruning to 15. A split that divides
        few rows from many is pruned with everything below it. A tree with such a split at its root
        becomes one leaf.
        """

    def split_gains(self, leaf_weights: ArrayLike, leaf_means: ArrayLike) -> _Floats:
        """Return the reduction of the squared error by the splits on each feature, over all trees.

        Parameters
        ----------
        leaf_weights : (n_leaves.sum(),) float
            Weight of the rows of each leaf, tree after tree.
        leaf_means : (n_leaves.sum(),) float
            Mean of the targets of each leaf, tree after tree.

        Returns
        -------
        (n_features,) float64
            Reductions. With the weights and means of a fit they have the proportions of
            scikit-learn's ``feature_importances_`` of a tree.

        Raises
        ------
        ValueError
            If an argument is of the wrong shape.

        Notes
        -----
        A split into weights u, v with means a, b reduces the error by u v / (u + v) (a - b)^2
        (Breiman, Friedman, Olshen and Stone, "Classification and regression trees", 1984).
        O(n_nodes).
        """

    @property
    def n_trees(self) -> int:
        """Number of trees."""

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""

    @property
    def n_leaves(self) -> NDArray[np.int64]:
        """Number of leaves of each tree, (n_trees,)."""

    @property
    def leaf_nodes(self) -> NDArray[np.int32]:
        """Node id of each leaf, tree after tree, (n_leaves.sum(),)."""

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes."""

    def __getstate__(self) -> tuple[_ForestArrays, int]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[_ForestArrays, int], /) -> None: ...

class LeafIndex:
    """The training targets in each leaf, and their weights in it.

    It is built from the leaves of the training rows alone, with the numbers of `Forest.leaves`, or
    with the leaf ids of another library (`from_leaves`). In each leaf a row weighs its share of the
    leaf's total. The weight of a row is the mean over trees (Zhu, Lu, Chen 2019, eq. 7 and 12).
    Shares are whole numbers of units, 2**shift to a leaf. Sums are therefore exact and do not
    depend on their order.

    Parameters
    ----------
    leaves : (n, n_trees) int
        Leaf of each training row in each tree, counted from 0.
    y : (n,) or (n, n_outputs) float
        Finite targets. With one dimension, results have no axis for outputs.
    event : (n,) bool, optional
        Whether the event came at time `y`. Where it is false, it had not come yet: the row is
        censored. See Notes.
    counts : (n, n_trees) int, optional
        How often a row counts in a tree: bootstrap multiplicities, or 0 to leave it out.
    sample_weight : (n,) float, optional
        Weight of each row, times `counts`.
    n_leaves : (n_trees,) int, optional
        Number of leaves of each tree. The default is the number that `leaves` names.
    keep_row_weights : bool, default=False
        Whether to keep what `leave_out` needs, at 8 bytes per entry.
    pooled : bool, default=False
        Whether rows weigh alike in all leaves, so that a large leaf counts for more. By default
        leaves count alike.
    max_samples_leaf : int, optional
        Number of rows to keep in each leaf, with all their draws, at random. The default is all.
    seed : int, default=0
        Seed of the choice of rows in the leaves.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Raises
    ------
    ValueError
        If a leaf, count, weight or target is out of range.

    Notes
    -----
    Immutable, and therefore safe to share between threads. Building is O(n_outputs * n * (log n +
    n_trees)).

    With `event` the distribution is that of the time of the event, by the estimator of Kaplan and
    Meier (1958) with the weights of the rows. At equal times events come before censored rows. Mass
    that no event takes lies beyond the last time. Ends and quantiles that are not reached are
    infinite. Lower ends are at most the last time that has weight. There is one output, without a
    mean, priced intervals, regions, pooled leaves and rows to leave out.

    Queries take a training row to leave out of each row as `leave_out`. It must lie, once, in each
    leaf of the row. In `leaves`, -1 stands for a tree in which it does not. It needs
    ``keep_row_weights``.

    Examples
    --------
    >>> from hdicore import LeafIndex
    >>> index = LeafIndex([[0, 0], [0, 1], [1, 1]], y=[0.0, 1.0, 5.0])
    >>> index.mean([[0, 1]])
    array([1.75])
    """

    def __init__(
        self,
        leaves: ArrayLike,
        y: ArrayLike,
        *,
        event: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_leaves: ArrayLike | None = None,
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> None: ...
    @staticmethod
    def from_leaves(
        leaves: ArrayLike,
        y: ArrayLike,
        *,
        event: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Build an index of a forest of any library, from the leaf ids that it reports.

        The index is the same as of the class, but has only leaves in which a training row lies. A
        query that names another leaf is refused: it comes from another forest, or the training rows
        are not the rows of the fit.

        Parameters
        ----------
        leaves : (n, n_trees) array of whole numbers
            Leaf id of each training row in each tree, from 0 and below 2**28, of any integer or
            float type and memory layout. Memory grows with the largest id of each tree.
        y : (n,) or (n, n_outputs) float
            Finite targets.
        event : (n,) bool, optional
            Whether the event came at time `y`; see the class.
        counts : (n, n_trees) int, optional
            How often a row counts in a tree.
        sample_weight : (n,) float, optional
            Weight of each row, times its counts.
        keep_row_weights : bool, default=False
            Whether to keep what `leave_out` needs, at 8 bytes per entry.
        pooled : bool, default=False
            Whether leaves count by their size; see the class.
        max_samples_leaf : int, optional
            Number of rows to keep in each leaf. The default is all.
        seed : int, default=0
            Seed of the choice of rows in the leaves.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        LeafIndex
            The index of the leaves that hold training rows.

        Raises
        ------
        ValueError
            If the class refuses the arguments.

        Examples
        --------
        >>> from hdicore import LeafIndex
        >>> index = LeafIndex.from_leaves([[3, 5], [3, 9], [7, 9]], y=[0.0, 1.0, 5.0])
        >>> index.intervals([[3, 9]], coverage=0.7)
        array([[0., 1.]])
        >>> index.intervals([[3, 6]])
        Traceback (most recent call last):
        ValueError: leaves[0, 1] must be a leaf of tree 1, in which a training row lies, or -1, got 6
        """  # noqa: E501

    @staticmethod
    def from_blocks(
        blocks: _Blocks | Callable[[], _Blocks],
        y: ArrayLike,
        n_leaves: ArrayLike,
        *,
        event: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> LeafIndex:
        """Build an index by blocks of trees: the leaves of all trees are never in memory at once.

        Equal to ``LeafIndex(leaves, y, counts=counts, n_leaves=n_leaves, ...)``, in every bit.

        Parameters
        ----------
        blocks : iterable of (leaves, counts)
            The trees in order, some at a time: `leaves` (n, k) and `counts` (n, k) or None. See the
            class. Fortran order saves a copy. The blocks are iterated once if rows weigh alike in
            their leaves, and otherwise up to three times, each time with the same arrays. A
            generator must be given as a function that returns it.
        y : (n,) or (n, n_outputs) float
            Finite targets.
        n_leaves : (n_trees,) int
            Leaves of each tree.
        event : (n,) bool, optional
            Whether the event came at time `y`; see the class.
        sample_weight : (n,) float, optional
            Weight of each row, times its counts.
        keep_row_weights : bool, default=False
            Whether to keep what `leave_out` needs, at 8 bytes per entry.
        pooled : bool, default=False
            Whether leaves count by their size; see the class.
        max_samples_leaf : int, optional
            Number of rows to keep in each leaf. The default is all.
        seed : int, default=0
            Seed of the choice of rows in the leaves.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        LeafIndex
            The index, equal to the one that the class makes.

        Raises
        ------
        TypeError
            If `blocks` cannot be iterated, or an item is no pair.
        ValueError
            If the class refuses the arguments, or the blocks do not hold n_trees trees in all.

        Notes
        -----
        Needs memory for the index, for a block, and 8 bytes for each row and tree of it.
        """

    @staticmethod
    def from_arrays(
        arrays: _LeafIndexArrays,
        scalar_output: bool,
        *,
        copy: bool = True,
        source: str | None = None,
        lazy: bool = False,
    ) -> LeafIndex:
        """Return the index of which `arrays()` returned the arrays, checked.

        Parameters
        ----------
        arrays : dict of arrays
            The result of `arrays()`.
        scalar_output : bool
            Whether y had one dimension.
        copy : bool, default=True
            Whether to copy the arrays. See `Forest.from_arrays`.
        source : str, optional
            The beginning of error messages, such as the name of the file.
        lazy : bool, default=False
            Whether to check only sizes, offsets and atoms at once. See `Forest.from_arrays`.

        Returns
        -------
        LeafIndex
            An index equal to the original.

        Raises
        ------
        ValueError
            If an array is missing, not known, of another type or shape, or out of range.
        """

    def arrays(self) -> _LeafIndexArrays:
        """Return read-only views of the arrays that hold the index.

        Returns
        -------
        dict of arrays
            The arrays, without the row weights of `keep_row_weights`.
        """

    def __hdicore_index__(self) -> CapsuleType: ...
    def atoms(self, output: int = 0) -> _Floats:
        """Return the distinct targets of one output.

        Parameters
        ----------
        output : int, default=0
            Number of the output.

        Returns
        -------
        (n_atoms,) float64
            Targets, ascending, as a read-only view.
        """

    @property
    def n_trees(self) -> int:
        """Number of trees."""

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row."""

    @property
    def n_leaves(self) -> NDArray[np.int64]:
        """Number of leaves of each tree, (n_trees,)."""

    @property
    def n_entries(self) -> int:
        """Number of pairs of a leaf and a target in it, over all outputs."""

    @property
    def shift(self) -> int:
        """Logarithm of the units of a tree: a tree that contributes to a row has 2**shift units."""

    @property
    def nbytes(self) -> int:
        """Memory of all arrays, in bytes.

        Once means were asked for 8 more for each leaf and output, 16 if leaves are pooled.
        """

    @property
    def scalar_output(self) -> bool:
        """Whether y had one dimension."""

    @property
    def pooled(self) -> bool:
        """Whether leaves count by their size."""

    @property
    def censored(self) -> bool:
        """Whether targets are times of an event that is censored in some rows."""

    def __getstate__(self) -> tuple[_LeafIndexArrays, bool]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[_LeafIndexArrays, bool], /) -> None: ...
    def mean(
        self,
        leaves: ArrayLike,
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats:
        """Return the mean of the conditional distribution of each row.

        The mean of a row is the mean of its leaves' means, which are kept from the first request
        for many rows on. If the leaves hold only one target, the mean is the target. Otherwise it
        is right to 2^-31 of the range of the row's targets, 2^-51 and for each tree 2^-59 of the
        range of all targets, and 2^-53 of itself. If leaves are pooled, 2^-59 is divided by the
        mean share of a tree that they weigh.

        Parameters
        ----------
        leaves : (n, n_trees) int
            Leaf of each row in each tree, or -1 for a tree that does not contribute.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the result, optional
            Array to fill and return.

        Returns
        -------
        (n,) or (n, n_outputs) float64
            NaN for rows to which no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def intervals(
        self,
        leaves: ArrayLike,
        coverage: ArrayLike = 0.9,
        kind: BaseKind | Sequence[BaseKind] = "hdi",
        *,
        mean: _Floats | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
        centres: ArrayLike | None = None,
    ) -> _Floats: ...
    def priced_intervals(
        self,
        leaves: ArrayLike,
        prices: ArrayLike,
        min_coverage: float = 0.0,
        *,
        mass: _Floats | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> tuple[_Floats, NDArray[np.int64]]: ...
    def regions(
        self,
        leaves: ArrayLike,
        coverage: float,
        max_pieces: int = 2,
        gap: float = 0.0,
        *,
        grid: tuple[float, float, int, float] | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], _Floats, _Floats]: ...
    def quantiles(
        self,
        leaves: ArrayLike,
        quantiles: ArrayLike,
        interpolation: _Interpolation = "inverted_cdf",
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...
    def cdf(
        self,
        leaves: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...
    def draws(
        self,
        leaves: ArrayLike,
        uniforms: ArrayLike,
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...
    def weights(
        self, leaves: ArrayLike, *, leave_out: ArrayLike | None = None, n_threads: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], _Floats]: ...
    def proximities(
        self, leaves: ArrayLike, *, leave_out: ArrayLike | None = None, n_threads: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]: ...
    def n_samples(self, leaves: ArrayLike, *, n_threads: int = 0) -> NDArray[np.int64]: ...
    def spread_and_mass(
        self, leaves: ArrayLike, intervals: ArrayLike, *, n_threads: int = 0
    ) -> tuple[_Floats, _Floats]:
        """Return how far the trees of each row agree, and the mass within an interval.

        Parameters
        ----------
        leaves : (n, n_trees) int
            Leaf of each row in each tree, or -1 for a tree that does not contribute.
        intervals : (n, 2) or (n, n_outputs, 2) float
            Lower and upper ends, both included.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        spread : (n,) or (n, n_outputs) float64
            Standard deviation over trees of the means of the leaves. NaN if no leaf has rows.
        mass : (n,) or (n, n_outputs) float64
            Mass between the ends, by `cdf`. NaN also if an end is NaN.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.

        Notes
        -----
        O(entries of the row's leaves + log atoms) for each row, because nothing is merged. Sums
        overflow to infinity.
        """

class Scorer:
    """A forest and its leaf index: from rows to their conditional distributions.

    Rows are scored in blocks over threads. Memory beside the results does not grow with the number
    of rows. The number of threads does not change a bit of the results.

    Parameters
    ----------
    forest : Forest
        The forest that routes rows to leaves.
    index : LeafIndex
        The index, built from ``forest.leaves(X_train)`` with ``n_leaves=forest.n_leaves``.

    Raises
    ------
    ValueError
        If the trees of forest and index differ.

    Examples
    --------
    >>> from hdicore import Forest, LeafIndex, Scorer
    >>> forest = Forest([1, -1, -1], [2, -1, -1], [0, -2, -2], [0.5, -2, -2], [1, 0, 0], [0, 3], 1)
    >>> leaves = forest.leaves([[0.0], [0.0], [1.0]])
    >>> Scorer(forest, LeafIndex(leaves, [1.0, 3.0, 5.0])).mean([[0.2], [0.7]])
    array([2., 5.])
    """

    def __init__(self, forest: Forest, index: LeafIndex) -> None: ...
    @property
    def forest(self) -> Forest:
        """The forest that routes rows to leaves."""

    @property
    def index(self) -> LeafIndex:
        """The training targets in each leaf."""

    def __reduce__(self) -> tuple[type[Scorer], tuple[Forest, LeafIndex]]: ...
    def mean(
        self,
        X: ArrayLike,
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats:
        """Return the mean of the conditional distribution of each row.

        The mean of a row is the mean of its leaves' means, which are kept from the first request
        for many rows on. If the leaves hold only one target, the mean is the target. Otherwise it
        is right to 2^-31 of the range of the row's targets, 2^-51 and for each tree 2^-59 of the
        range of all targets, and 2^-53 of itself. If leaves are pooled, 2^-59 is divided by the
        mean share of a tree that they weigh.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the result, optional
            Array to fill and return.

        Returns
        -------
        (n,) or (n, n_outputs) float64
            NaN for rows to which no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def intervals(
        self,
        X: ArrayLike,
        coverage: ArrayLike = 0.9,
        kind: BaseKind | Sequence[BaseKind] = "hdi",
        *,
        mean: _Floats | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
        centres: ArrayLike | None = None,
    ) -> _Floats:
        """Return prediction intervals. One merge of a row's leaves serves all levels.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        coverage : float or list of k floats, default=0.9
            Shares in (0, 1] of the distribution to hold.
        kind : str or list of k str, default="hdi"
            Kind of interval, one for all levels, or one for each. "hdi" is the shortest, "lower" is
            [bound, inf], "upper" is [-inf, bound], and "averaged" lies midway between "hdi" and
            "equal_tailed".
        mean : (n,) or (n, n_outputs) float64, optional
            Filled with the means in the same pass.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the result, optional
            Array to fill and return.
        centres : (n_leaves.sum(),) float, optional
            A number for each leaf, tree after tree, such as its mean if the index is of residuals.
            The mean of the numbers of a row is added to both ends. The index must have one output.

        Returns
        -------
        (n, 2) or (n, 2, k) float64
            Lower and upper ends. With several outputs their axis stands behind n. NaN for rows to
            which no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def priced_intervals(
        self,
        X: ArrayLike,
        prices: ArrayLike,
        min_coverage: float = 0.0,
        *,
        mass: _Floats | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> tuple[_Floats, NDArray[np.int64]]:
        """Find the intervals of most ``price * mass - width``. A price is the width for all mass.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        prices : float or list of k floats
            Width that the whole distribution of a row is worth, above 0 and finite: an interval
            that holds the share m of it is worth ``price * m``. One merge of a row's leaves serves
            all prices.
        min_coverage : float, default=0.0
            Share in [0, 1] that each interval holds at least.
        mass : (n,) or (n, k) float64, optional
            Filled with the shares that the intervals hold; NaN where no tree contributes.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the ends, optional
            Array to fill and return.

        Returns
        -------
        ends : (n, 2) or (n, 2, k) float64
            Lower and upper ends, both atoms. With several outputs their axis stands behind n. NaN
            for rows to which no tree contributes.
        units : (n,) or (n, k) int64
            Mass of each interval in whole units, so that sums are exact. A tree that contributes
            has ``2**shift`` units (`LeafIndex.shift`), or fewer if leaves are pooled. 0 if no tree
            contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.

        Notes
        -----
        Mass does not fall as the price grows, to within rounding. The intervals of one price for
        all rows have the least total width of all intervals with the same mean mass. The interval
        with most mass, and then the leftmost, is taken if surpluses are equal, to within the price
        of two units a tree and 2**-48 of the largest atom. O(atoms) for each price.
        """

    def regions(
        self,
        X: ArrayLike,
        coverage: float,
        max_pieces: int = 2,
        gap: float = 0.0,
        *,
        grid: tuple[float, float, int, float] | None = None,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], _Floats, _Floats]:
        """Find regions of few closed pieces that hold the coverage at little cost.

        The cost of a region is its total length, plus `gap` for each piece after the first.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        coverage : float
            Share in (0, 1] of the distribution to hold.
        max_pieces : int, default=2
            From 1 to 8. One piece is the HDI of `intervals`.
        gap : float, default=0.0
            Length that one more piece has to save, at least 0 and finite.
        grid : (low, high, n_bins, bandwidth), optional
            Bins for the distributions: equal bins of [low, high], at most 4096, smoothed by a
            Gaussian kernel with the standard deviation `bandwidth`, in the unit of y. 0 does not
            smooth. Pieces consist of whole bins. The default is no grid: pieces run from atom to
            atom.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        offsets : (n * n_outputs + 1,) int64
            The pieces of row i and output o are ``ends[offsets[at]:offsets[at + 1]]``, where ``at =
            i * n_outputs + o``; none where no tree contributes.
        ends : (n_pieces, 2) float64
            Lower and upper ends, ascending in a row.
        bounds : (n,) or (n, n_outputs) float64
            Lower bounds of the least cost of any region of as many pieces or fewer. NaN where no
            tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.

        Notes
        -----
        The least cost at a price of mass is found exactly, by a recursion over the atoms, and the
        price is searched. The gap between two corners of the lower hull of cost by mass is filled
        heuristically. No region costs more than the HDI. A bound is the greatest of ``cost + price
        * (needed mass - mass)`` over the prices asked, less what rounding may add to it. The bound
        of one piece is its length, less the 2^-48 of the largest atom by which widths tie and a
        quarter more. The bound of regions of single atoms is 0.

        On a grid, an atom at an edge counts in the bin above, atoms outside in the first or the
        last bin. The kernel is read at centres of bins up to 4 standard deviations, and divided for
        each bin by its sum over the bins that there are, so that no mass leaves the range. Targets
        that are whole numbers need a bin for each: without a grid single atoms have no length.
        """

    def quantiles(
        self,
        X: ArrayLike,
        quantiles: ArrayLike,
        interpolation: _Interpolation = "inverted_cdf",
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats:
        """Return quantiles of the conditional distribution of each row.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        quantiles : float or list of k floats
            Levels in [0, 1].
        interpolation : str, default="inverted_cdf"
            The name of any method of `numpy.quantile`.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the result, optional
            Array to fill and return.

        Returns
        -------
        (n,) or (n, k) float64
            Quantiles. With several outputs their axis stands behind n.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        inclusive: bool = True,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats:
        """Return P(Y <= y) for each row, or P(Y < y).

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        y : (n,) or (n, k) float
            One or several points for each row; with several outputs their axis stands behind n.
        inclusive : bool, default=True
            Whether y itself counts.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of the result, optional
            Array to fill and return.

        Returns
        -------
        float64 array of the shape of y
            Probabilities between 0 and 1.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def draws(
        self,
        X: ArrayLike,
        uniforms: ArrayLike,
        *,
        leave_out: ArrayLike | None = None,
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats:
        """Return draws from the conditional distribution, one for each uniform number.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        uniforms : (n,) or (n, k) float
            Numbers in [0, 1). With several outputs their axis stands behind n.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.
        out : float64 array of the shape of uniforms, optional
            Array to fill and return. It may be `uniforms` itself.

        Returns
        -------
        float64 array of the shape of uniforms
            Draws, which are atoms.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def weights(
        self, X: ArrayLike, *, leave_out: ArrayLike | None = None, n_threads: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], _Floats]:
        """Return the weights of the atoms, as arrays of a CSR matrix; for an index of one output.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        indptr : (n + 1,) int64
            First entry of each row.
        indices : (nnz,) int32
            Position of the atom of each entry.
        data : (nnz,) float64
            Weights. Rows sum to 1, or are empty where no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def proximities(
        self, X: ArrayLike, *, leave_out: ArrayLike | None = None, n_threads: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Return how often training rows count at each atom, as arrays of a CSR matrix.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        leave_out : (n,) int, optional
            Training row to exclude for each row. See `LeafIndex`.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        indptr : (n + 1,) int64
            First entry of each row.
        indices : (nnz,) int32
            Position of the atom of each entry.
        counts : (nnz,) int64
            Counts, summed over trees. If the index was built with y = 0, 1, 2, ..., atoms are
            training rows. The index must have one output.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def n_samples(self, X: ArrayLike, *, n_threads: int = 0) -> NDArray[np.int64]:
        """Return how often training rows count in the leaves of each row.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (n,) int64
            Counts, summed over trees.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

class OutOfBagScorer:
    """Training rows of a forest: out-of-bag means, and intervals that do not see their own row.

    A row is out of bag in the trees that did not draw it. Its distribution is made of the other
    rows in its leaves of the trees. Each has the weight of a row of the index.

    Parameters
    ----------
    index : LeafIndex
        An index of the leaves of the same trees, with one output. It is used itself if it holds
        each row once in each tree, no two targets are equal, all rows weigh alike, and each row is
        out of bag somewhere. Otherwise another index is built.
    leaves : (n, n_trees) int
        Leaf of each training row in each tree.
    counts : (n, n_trees) int
        How often a tree drew a row; 0 is out of bag.
    y : (n,) float
        Finite targets.
    sample_weight : (n,) float, optional
        Weight of each row in its leaves; by default all weigh alike. Rows that every tree drew
        weigh nothing.
    draw_weight : (n,) float, optional
        Weight of a row each time it is drawn, in the means of leaves; by default 1.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape, if the sums of targets overflow, or if
        no row is out of bag.

    Notes
    -----
    Immutable, so safe to share between threads; not pickled. int32 leaves and uint8 or uint32
    counts in Fortran order are not copied. O(n * (log n + n_trees)).

    Examples
    --------
    >>> from hdicore import LeafIndex, OutOfBagScorer
    >>> leaves, y = [[0, 0], [0, 1], [0, 0], [0, 1]], [1.0, 2.0, 4.0, 8.0]
    >>> rows = OutOfBagScorer(LeafIndex(leaves, y), leaves, [[1, 0], [0, 1], [2, 0], [0, 1]], y)
    >>> rows.centres
    array([0., 3., 0., 3.])
    >>> rows.intervals([1], 0.9, family=["raw", "centred"])
    array([[[1., 8.]],
    <BLANKLINE>
           [[4., 8.]]])
    """

    def __init__(
        self,
        index: LeafIndex,
        leaves: ArrayLike,
        counts: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        draw_weight: ArrayLike | None = None,
        n_threads: int = 0,
    ) -> None: ...
    @property
    def centres(self) -> _Floats:
        """Mean of the means of a row's leaves in the trees that did not draw it, (n,); or 0."""

    @property
    def n_oob(self) -> _Floats:
        """Number of trees that did not draw a row, (n,)."""

    @property
    def leaf_means(self) -> _Floats:
        """Mean of the targets that a tree drew into each leaf, (n_leaves.sum(),); or 0."""

    @property
    def leaf_weight(self) -> _Floats:
        """Weight of the rows that a tree drew into each leaf, (n_leaves.sum(),)."""

    @property
    def has_raw(self) -> bool:
        """Whether rows weigh alike and no leaf has over 65,535, as the family "raw" needs."""

    def __reduce__(self) -> tuple[Any, ...]: ...
    def intervals(
        self,
        rows: ArrayLike,
        coverage: ArrayLike = 0.9,
        kind: BaseKind | Sequence[BaseKind] = "hdi",
        family: _Family | Sequence[_Family] = "centred",
        *,
        scale: float = 1.0,
        offsets: ArrayLike | None = None,
        n_threads: int = 0,
    ) -> _Floats:
        """Return intervals of training rows from targets or residuals of other training rows.

        The atoms of row i are y[j], or s[i] + (y[j] - s[j]) with s = scale * centres + offsets. The
        row is left out of its leaves, and its target is left out of the centres of other rows.

        Parameters
        ----------
        rows : (m,) int
            Training rows to find intervals for.
        coverage : float or list of k floats, default=0.9
            Shares in (0, 1].
        kind : str or list of k str, default="hdi"
            Kind of interval, of each coverage, as `LeafIndex.intervals` names them.
        family : {"raw", "centred"} or a list of them, default="centred"
            The atoms: targets, or centres plus residuals. One merge serves both.
        scale : float, default=1.0
            Factor of the centres.
        offsets : (n,) float, optional
            Added to the centres after that, such as a share of another model's prediction of a row;
            by default 0.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (m, 2) or (m, 2, k) float64, with a first axis for a list of families
            NaN for rows to which no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range, or a family is "raw" where rows do not weigh alike.

        Notes
        -----
        O(entries of the row's leaves + atoms log atoms + kinds * levels * atoms) for each row, O(n)
        in all besides.
        """

def available_threads() -> int:
    """Count the threads that ``n_threads=0`` stands for now.

    Returns
    -------
    int
        The number of processors that the process may run on, but no more than the quota of its
        control group or OMP_NUM_THREADS allow.
    """

def instructions() -> _Instructions:
    """Name the instructions of the processor that the engine uses.

    They change speed, and no bit of the results.

    Returns
    -------
    dict
        ``used`` is a str: the widest available instructions, or the ones that the environment
        variable ``HDICORE_INSTRUCTIONS`` named when hdicore was imported. An unknown name is an
        `ImportError`. ``available`` is a tuple of str: the names that the variable may have on the
        machine, widest last, out of ``portable``, ``avx2`` and ``avx512``.
    """

def kinds() -> dict[str, _KindFacts]:
    """Return the facts of each kind of interval, by its name.

    Returns
    -------
    dict of dicts
        Facts of the kinds, ascending by ``number``, an int, the number of the kind in
        ``hdicore/c_api.h``. ``ends`` is a tuple of str, the finite ends among ``lower`` and
        ``upper``. ``holds_coverage`` is a bool: whether each interval holds its coverage of the
        distribution. A kind without it is only read to be widened.

    Examples
    --------
    >>> from hdicore import kinds
    >>> kinds()["lower"]
    {'number': 2, 'ends': ('lower',), 'holds_coverage': True}
    """

def find_mismatch(
    trees: Sequence[_FitRecord],
    leaves: ArrayLike,
    targets: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    in_float32: bool = False,
    n_threads: int = 0,
) -> tuple[int, Literal["weights", "targets"]] | None:
    """Find the first tree that recorded other leaves than the given rows make.

    The weight and the value of each leaf are compared. Without sample_weight the weight is the
    number of rows that the tree drew.

    Parameters
    ----------
    trees : list of dict
        Record of each tree, with its leaves from left to right. ``weight`` and ``value`` are
        arrays. ``medians`` tells whether values are medians of the targets or means. ``bounds``
        clip the values, and are infinite without a bound, or None.
    leaves : (n_trees, n) int
        Leaf of each row, counted from left to right.
    targets : (n_outputs, n) float
        Targets.
    counts : (n_trees, n) int, optional
        How often a tree drew a row; by default once.
    sample_weight : (n,) float, optional
        Weight of a row each time it is drawn; by default 1.
    in_float32 : bool, default=False
        Whether counts times weights were rounded to float32.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    (tree, difference) or None
        Whether its leaves have other ``"weights"`` or, if not, ``"targets"``; None if nothing
        differs.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape.

    Notes
    -----
    O(n) for each tree and output. Sums may differ by the rounding that their order makes, 4 (n + 4)
    units in the last place of the leaf's own sum of sizes for n drawn rows; medians by 1e-9 of the
    leaf's weight. A value may lie above the value of the rows if a bound could have raised it, and
    below it likewise. Sums that overflow prove nothing.
    """

def moving_quantiles(
    start: ArrayLike, scores: ArrayLike, size: int, target: float, miss: float, rate: float
) -> tuple[_Floats, float]:
    """Return conformal quantiles of a window of scores that moves row by row.

    Parameters
    ----------
    start : (m,) float
        Scores at the beginning of the window, the oldest first.
    scores : (n,) float
        Scores that come, in their order.
    size : int
        Largest number of scores in the window.
    target : float
        Share of misses to reach.
    miss : float
        Share of misses of the first quantile. After each score it moves by ``rate * (target -
        missed)``. A score misses if it is above its quantile (Gibbs and Candes, NeurIPS 2021).
    rate : float
        Step by which `miss` moves.

    Returns
    -------
    quantiles : (n,) float64
        Quantiles before each score is taken in. With m scores in the window a quantile is the k-th
        smallest, k = ceil((m + 1) (1 - miss)) but at least 1. It is infinite if k > m.
    miss : float
        Share of misses after the last score.

    Raises
    ------
    ValueError
        If a score is NaN, or the size no positive number.

    Notes
    -----
    O(size) for each score.
    """

class PostProcess:
    """Range and lattice of the targets, applied to every widened interval.

    Crossed ends become their midpoint. On a lattice each end moves inwards to a lattice point, and
    to the training target at the point if there is one. An interval between two points becomes the
    nearer one. Finite ends are clipped to the range. Targets in the range and on the lattice stay
    inside, and intervals with the same midpoint stay nested.

    Parameters
    ----------
    low : float
        Least training target.
    high : float
        Greatest training target.
    clip : bool, default=True
        Whether intervals are clipped to the range.
    lattice : (base, step, slack), optional
        The lattice: targets are base + k step, and at most slack steps, below 0.01, away from it.
    targets : (m,) float, optional
        Distinct training targets on the lattice, ascending. They are used as ends without rounding.

    Raises
    ------
    ValueError
        If a number is out of range.
    """

    def __init__(
        self,
        low: float,
        high: float,
        clip: bool = True,
        lattice: ArrayLike | None = None,
        targets: ArrayLike | None = None,
    ) -> None: ...
    def scores(self, ends: ArrayLike, y: ArrayLike) -> _Floats:
        """Return conformity scores: by how much to widen intervals to cover their targets.

        The scores are max(l - y, y - u). For a target off the lattice the farther of the lattice
        points around it counts. Scores of targets outside the clipping range are infinite. Clipping
        and rounding take nothing from the guarantee: this is eq. 6 of Romano, Patterson, Candes,
        NeurIPS 2019, as least index of a nested family (Gupta, Kuchibhotla, Ramdas, Pattern
        Recognition 127, 2022, section 2). O(n m).

        Parameters
        ----------
        ends : (n, 2) or (n, 2, m) float
            Lower and upper ends of one interval a row, or of m.
        y : (n,) float
            Targets.

        Returns
        -------
        (n,) or (n, m) float64
            Scores, in the unit of y.

        Raises
        ------
        ValueError
            If shapes do not fit.
        """

    def widen(self, ends: ArrayLike, q_hat: ArrayLike, *, nested: bool = False) -> _Floats:
        """Widen intervals by conformal quantiles, and post-process them.

        Both ends move outwards by the quantile. An interval holds its target whenever the target's
        score is at most the quantile: each end has an allowance for rounding. At 0 nothing moves.
        O(n m), with a lattice O(n m log targets).

        Parameters
        ----------
        ends : (n, 2, m) float
            Lower and upper ends of m intervals a row.
        q_hat : (m,) or (n, m) float
            Conformal quantiles.
        nested : bool, default=False
            Whether each interval is made to hold the intervals before it.

        Returns
        -------
        (n, 2, m) float64
            NaN if an end is NaN.

        Raises
        ------
        ValueError
            If shapes do not fit.
        """

    def __reduce__(self) -> tuple[type[PostProcess], tuple[object, ...]]: ...

class CrossCalibration:
    """Widens intervals by K forests, each fitted without its rows, to one interval.

    CV+ and the jackknife+ (Barber, Candes, Ramdas, Tibshirani, "Predictive inference with the
    jackknife+", Annals of Statistics 49, 2021, eq. 8), with the scores of Romano, Patterson and
    Candes (NeurIPS 2019). The upper end of an interval is the k-th smallest of u_i + e_i over the
    rows i. e_i is the score of row i, and u_i is the upper end by the forest fitted without the
    fold of row i. The lower end is computed likewise.

    Parameters
    ----------
    scores : list of K (n_fold, k) float
        Scores of the rows of each fold, two or more, for k ascending coverages. They ascend along
        the first axis. The arrays are kept, and must not change.
    needed : (k,) float
        Number of scores up to an end, or their weight. Ends are infinite if it is infinite, or if
        there are fewer scores.
    postprocess : PostProcess
        Post-processes the widened intervals.
    weights : list of K (n_fold, k) float, optional
        Positive weights of the scores. The default is equal weights.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape.
    """

    def __init__(
        self,
        scores: Sequence[ArrayLike],
        needed: ArrayLike,
        postprocess: PostProcess,
        weights: Sequence[ArrayLike] | None = None,
    ) -> None: ...
    def widen(self, ends: ArrayLike, positions: ArrayLike, *, n_threads: int = 0) -> _Floats:
        """Return calibrated intervals. Each contains the intervals of lower coverages.

        O(K log n) for each row and coverage. Ends are larger by the rounding of a few additions.

        Parameters
        ----------
        ends : (K, n, 2, m) float
            Lower and upper ends by the forest of each fold, for the lowest m coverages. With m = 1
            they serve all coverages.
        positions : () or (p,) int
            Positions of the wanted coverages, from 0 on.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (n, 2) or (n, 2, p) float64
            Lower and upper ends. NaN if an end is NaN.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def __reduce__(self) -> tuple[type[CrossCalibration], tuple[object, ...]]: ...

class CalibrationGroups:
    """Groups of rows that have conformal quantiles of their own.

    Parameters
    ----------
    labels : list of g float, str or None
        Distinct names of the groups. None is the name for rows with a missing label.
    q_hat : (g, k) float
        Quantiles of each for k coverages. NaN: it has none of its own.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """

    def __init__(self, labels: Sequence[float | str | None], q_hat: ArrayLike) -> None: ...
    def codes(self, values: ArrayLike) -> NDArray[np.int64]:
        """Look the groups of rows up by numbers. O(n log g).

        Parameters
        ----------
        values : (n,) float
            Labels of the rows. NaN is the missing one.

        Returns
        -------
        (n,) int64
            Positions among the labels; -1 where there is none.
        """

    def quantiles(self, codes: ArrayLike, common: ArrayLike) -> _Floats:
        """Return the quantiles of rows. O(n k).

        Parameters
        ----------
        codes : (n,) int
            Positions of their groups among the labels, or -1.
        common : (k,) float
            Quantiles of all rows, for groups without a quantile of their own.

        Returns
        -------
        (n, k) float64
            Quantiles, for `CalibratedScorer.intervals` and `PostProcess.widen`.

        Raises
        ------
        ValueError
            If a code is out of range, or shapes do not fit.
        """

    def __reduce__(self) -> tuple[type[CalibrationGroups], tuple[object, ...]]: ...

class PredictiveDistribution:
    """A distribution for each row with quantiles that cover the share that their level names.

    A row x has a continuous quantile function Q(x, s): the quantiles of its forest at 0.05, 0.10,
    ..., 0.95, straight lines between them, and beyond them lines with the slope of half the range
    of the training targets. The score of a target y is an s with Q(x, s) = y. The calibrated
    quantile at a level is Q at the score of the level, moved to a value that targets can have.

    Parameters
    ----------
    levels : (m,) float
        Known levels, between 0 and 1, ascending.
    scores : (m,) float
        The s of each level, ascending.
    postprocess : PostProcess
        Post-processes the quantiles.

    Raises
    ------
    ValueError
        If levels or scores do not ascend.
    """

    def __init__(self, levels: ArrayLike, scores: ArrayLike, postprocess: PostProcess) -> None: ...
    def base_levels(self, levels: ArrayLike) -> _Floats:
        """Return the levels of base quantiles that quantiles are read from.

        Parameters
        ----------
        levels : (k,) float
            Levels in [0, 1].

        Returns
        -------
        (b,) float64
            Some of 0.05, 0.10, ..., 0.95, ascending.
        """

    def quantiles(self, base: ArrayLike, levels: ArrayLike, *, outwards: int = 1) -> _Floats:
        """Return quantiles at levels, or at the next known ones. O(n k).

        Parameters
        ----------
        base : (n, b) float
            Quantiles of the forest at ``base_levels(levels)``.
        levels : (k,) float
            Levels in [0, 1].
        outwards : {1, -1}, default=1
            Direction in which lattice points without a training target are moved: 1 up, -1 down.

        Returns
        -------
        (n, k) float64
            NaN if the base is NaN.

        Raises
        ------
        ValueError
            If a level is out of range, or shapes do not fit.
        """

    def cdf(self, base: ArrayLike, y: ArrayLike, *, inclusive: bool = True) -> _Floats:
        """Return P(Y <= y), or P(Y < y): the largest known level with its quantile up to y.

        Parameters
        ----------
        base : (n, 19) float
            Quantiles of the forest at 0.05, 0.10, ..., 0.95.
        y : (n,) or (n, k) float
            Points, which may be infinite.
        inclusive : bool, default=True
            Whether y itself counts.

        Returns
        -------
        array of the shape of y, float64
            Levels, in [0, 1]. NaN if the base is NaN.

        Raises
        ------
        ValueError
            If shapes do not fit.
        """

    def draws(self, base: ArrayLike, uniforms: ArrayLike) -> _Floats:
        """Return quantiles at known levels, by numbers that are drawn.

        Parameters
        ----------
        base : (n, 19) float
            Quantiles of the forest at 0.05, 0.10, ..., 0.95.
        uniforms : (n,) or (n, k) float
            Numbers in [0, 1].

        Returns
        -------
        array of the shape of uniforms, float64
            Finite; NaN if the base is NaN.

        Raises
        ------
        ValueError
            If a number is out of range, or shapes do not fit.
        """

    @staticmethod
    def scores(
        base: ArrayLike, y: ArrayLike, postprocess: PostProcess, *, strictly: bool = False
    ) -> _Floats:
        """Return scores of targets: the largest s with Q(x, s) <= y, or the least with >= y.

        Parameters
        ----------
        base : (n, 19) float
            Quantiles of the forest at 0.05, 0.10, ..., 0.95.
        y : (n,) or (n, k) float
            Targets.
        postprocess : PostProcess
            Post-processes the quantiles: values that are rounded to y have its scores.
        strictly : bool, default=False
            Whether to return the least score instead of the largest.

        Returns
        -------
        array of the shape of y, float64
            Scores.

        Raises
        ------
        ValueError
            If shapes do not fit.
        """

    def __reduce__(self) -> tuple[type[PredictiveDistribution], tuple[object, ...]]: ...

class CalibratedScorer:
    """Rows to calibrated intervals: one merge of a row's leaves serves all coverages.

    Parameters
    ----------
    scorer : Scorer
        The scorer of targets, or of residuals around centres, with one output.
    kinds : list of k str
        Kinds of the intervals to widen. See `Scorer.intervals`.
    levels : (k,) float
        Shares in (0, 1] of the distribution that the intervals hold.
    q_hat : (k,) float
        Conformal quantiles, of ascending coverages.
    postprocess : PostProcess
        Post-processes the widened intervals.
    centres : (n_leaves.sum(),) float, optional
        Numbers of leaves. See `Scorer.intervals`. A float64 array is kept as it is, and must not
        change.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape.
    """

    def __init__(
        self,
        scorer: Scorer,
        kinds: Sequence[BaseKind],
        levels: ArrayLike,
        q_hat: ArrayLike,
        postprocess: PostProcess,
        centres: ArrayLike | None = None,
    ) -> None: ...
    def intervals(
        self,
        X: ArrayLike,
        positions: ArrayLike,
        *,
        q_hat: ArrayLike | None = None,
        shifts: ArrayLike | None = None,
        mean: _Floats | None = None,
        n_threads: int = 0,
    ) -> _Floats:
        """Return calibrated intervals. Each contains the intervals of lower coverages.

        Parameters
        ----------
        X : (n, n_features) float32 or float64
            Rows, cast to float32 for routing. NaN is allowed, infinity is not.
        positions : () or (p,) int
            Positions of the wanted coverages, from 0 on.
        q_hat : (n, k) float, optional
            Quantiles of each row, in place of the common ones.
        shifts : (n,) float, optional
            Numbers to add to the centre of each row.
        mean : (n,) float64, optional
            Array to fill with the means of the scorer's distributions in the same pass.
        n_threads : int, default=0
            Number of threads. 0 means all that the process may use.

        Returns
        -------
        (n, 2) or (n, 2, p) float64
            Lower and upper ends. NaN for rows to which no tree contributes.

        Raises
        ------
        ValueError
            If an argument is out of range or of the wrong shape.
        """

    def __reduce__(self) -> tuple[type[CalibratedScorer], tuple[object, ...]]: ...

def intervals_of_outputs(
    scorers: Sequence[CalibratedScorer],
    X: ArrayLike,
    positions: ArrayLike,
    *,
    q_hat: Sequence[ArrayLike | None] | None = None,
    shifts: Sequence[ArrayLike | None] | None = None,
    n_threads: int = 0,
) -> _Floats:
    """Return calibrated intervals of several outputs of the same rows.

    Parameters
    ----------
    scorers : list of d CalibratedScorer
        A scorer of each output, of the same number k of coverages. Scorers of one `Forest` share
        the leaves of the rows, which are found once.
    X : (n, n_features) float32 or float64
        Rows, cast to float32 for routing. NaN is allowed, infinity is not.
    positions : () or (p,) int
        Positions of the wanted coverages, from 0 on.
    q_hat : list of d (n, k) float or None, optional
        Quantiles of each row for each output. None means the common ones.
    shifts : list of d (n,) float or None, optional
        Numbers to add to the centre of each row for each output.
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    (n, d, 2) or (n, d, 2, p) float64
        What `CalibratedScorer.intervals` returns for each output.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape.
    """

def read_calibration(numbers: ArrayLike) -> dict[str, Any]:
    """Read the parts of a calibration from its array in a model file.

    Parameters
    ----------
    numbers : (n,) float
        The array ``calibration.numbers`` of a file (:doc:`/file_format`).

    Returns
    -------
    dict
        The parts. ``method`` and ``family`` are names. ``range``, ``clip``, ``lattice`` (or None)
        and ``targets`` are arguments of `PostProcess`. ``levels`` is a list of coverage, kind,
        level and q_hat. It is empty if the method makes forests of folds. ``groups`` is None, or
        the feature that holds the labels (or None), the labels, and the quantiles (g, k). A label
        None means missing, and NaN means a text. ``distribution`` is None, or levels and scores for
        `PredictiveDistribution`.

    Raises
    ------
    ValueError
        If the array is of another version, or damaged.

    Notes
    -----
    O(n). Readers in C check a file by the same code.
    """

def weighted_hdi(
    values: ArrayLike,
    weights: ArrayLike | None = None,
    coverage: ArrayLike = 0.9,
    *,
    n_threads: int = 0,
) -> _Floats:
    """Return the shortest interval that holds a share of a weighted sample.

    Parameters
    ----------
    values : (s,) or (n, s) float
        A sample, or n samples, in any order. Values are finite.
    weights : (s,) or (n, s) float, optional
        Weights of the values, finite and not negative. They need not sum to 1. The default is equal
        weights.
    coverage : float or list of k floats, default=0.9
        Shares in (0, 1].
    n_threads : int, default=0
        Number of threads. 0 means all that the process may use.

    Returns
    -------
    (2,), (2, k), (n, 2) or (n, 2, k) float64
        Closed intervals with values of the sample as ends.

    Raises
    ------
    ValueError
        If a value or weight is not finite, a weight is negative, or all are zero.

    Notes
    -----
    Of intervals of equal width the one with most weight is taken, then the one with its midpoint
    nearest the lower weighted median, then the leftmost. O(s log s) for sorting and O(s) per level:
    Algorithm 1 of Zhu, Lu, Chen (IJCAI 2019).

    Examples
    --------
    >>> from hdicore import weighted_hdi
    >>> weighted_hdi([0.0, 1.0, 1.5, 2.0, 9.0], coverage=0.6)
    array([1., 2.])
    """

c_api: Final[CapsuleType]  # const hdicore_api *, see hdicore/c_api.h
