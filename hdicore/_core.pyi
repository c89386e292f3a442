"""Types of the compiled module; array shapes stand beside arguments and results."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import CapsuleType

_Kind = Literal["hdi", "equal_tailed", "lower", "upper", "smoothed_hdi"]
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
_Blocks = Iterable[tuple[ArrayLike, ArrayLike | None]]  # leaves and counts of some trees

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

class _Instructions(TypedDict):
    used: str
    available: tuple[str, ...]

class Forest:
    def __init__(
        self,
        children_left: ArrayLike,  # (n_nodes,)
        children_right: ArrayLike,  # (n_nodes,)
        feature: ArrayLike,  # (n_nodes,)
        threshold: ArrayLike,  # (n_nodes,)
        missing_go_to_left: ArrayLike,  # (n_nodes,)
        tree_offsets: ArrayLike,  # (n_trees + 1,)
        n_features: int,
        *,
        n_threads: int = 0,
    ) -> None: ...
    @staticmethod
    def from_trees(
        trees: Sequence[Sequence[ArrayLike]], n_features: int, *, n_threads: int = 0
    ) -> Forest: ...
    @staticmethod
    def from_arrays(
        arrays: _ForestArrays, n_features: int, *, copy: bool = True, source: str | None = None
    ) -> Forest: ...
    def arrays(self) -> _ForestArrays: ...
    def apply(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        n_threads: int = 0,
        out: _Leaves | None = None,
    ) -> _Leaves: ...
    def leaves(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        n_threads: int = 0,
        out: _Leaves | None = None,
    ) -> _Leaves: ...
    def leaves_of_trees(
        self,
        X: ArrayLike,  # (n, n_features)
        first: int,
        last: int,
        *,
        order: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
    ) -> _Leaves: ...  # (n, last - first)
    def sums_below_parents(
        self,
        tree: int,
        values: ArrayLike,  # (k, n_leaves)
    ) -> NDArray[np.float64]: ...  # (k, n_leaves)
    @property
    def n_trees(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_leaves(self) -> NDArray[np.int64]: ...  # (n_trees,)
    @property
    def leaf_nodes(self) -> NDArray[np.int32]: ...  # (n_leaves.sum(),)
    @property
    def nbytes(self) -> int: ...
    def __getstate__(self) -> tuple[_ForestArrays, int]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[_ForestArrays, int], /) -> None: ...

class LeafIndex:
    def __init__(
        self,
        leaves: ArrayLike,  # (n, n_trees)
        y: ArrayLike,  # (n,) or (n, n_outputs)
        *,
        counts: ArrayLike | None = None,  # (n, n_trees)
        sample_weight: ArrayLike | None = None,  # (n,)
        n_leaves: ArrayLike | None = None,  # (n_trees,)
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> None: ...
    @staticmethod
    def from_leaves(
        leaves: ArrayLike,  # (n, n_trees)
        y: ArrayLike,  # (n,) or (n, n_outputs)
        *,
        counts: ArrayLike | None = None,  # (n, n_trees)
        sample_weight: ArrayLike | None = None,  # (n,)
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> LeafIndex: ...
    @staticmethod
    def from_blocks(
        blocks: _Blocks | Callable[[], _Blocks],  # of (n, k) and (n, k)
        y: ArrayLike,  # (n,) or (n, n_outputs)
        n_leaves: ArrayLike,  # (n_trees,)
        *,
        sample_weight: ArrayLike | None = None,  # (n,)
        keep_row_weights: bool = False,
        pooled: bool = False,
        max_samples_leaf: int | None = None,
        seed: int = 0,
        n_threads: int = 0,
    ) -> LeafIndex: ...
    @staticmethod
    def from_arrays(
        arrays: _LeafIndexArrays,
        scalar_output: bool,
        *,
        copy: bool = True,
        source: str | None = None,
    ) -> LeafIndex: ...
    def arrays(self) -> _LeafIndexArrays: ...
    def __hdicore_index__(self) -> CapsuleType: ...
    def atoms(self, output: int = 0) -> _Floats: ...  # (n_atoms,)
    @property
    def n_trees(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_leaves(self) -> NDArray[np.int64]: ...  # (n_trees,)
    @property
    def n_entries(self) -> int: ...
    @property
    def shift(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def scalar_output(self) -> bool: ...
    @property
    def pooled(self) -> bool: ...
    def __getstate__(self) -> tuple[_LeafIndexArrays, bool]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[_LeafIndexArrays, bool], /) -> None: ...
    def mean(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # (n,) or (n, n_outputs)
    def intervals(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        coverage: ArrayLike = 0.9,  # () or (k,)
        kind: _Kind | Sequence[_Kind] = "hdi",  # one, or (k,)
        *,
        mean: _Floats | None = None,  # (n,) or (n, n_outputs)
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
        centres: ArrayLike | None = None,  # (n_leaves.sum(),)
    ) -> _Floats: ...  # (n, [n_outputs,] 2) or (n, [n_outputs,] 2, k)
    def quantiles(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        quantiles: ArrayLike,  # () or (k,)
        interpolation: _Interpolation = "inverted_cdf",
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # (n, [n_outputs]) or (n, [n_outputs,] k)
    def cdf(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        y: ArrayLike,  # (n, [n_outputs]) or (n, [n_outputs,] k)
        *,
        inclusive: bool = True,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # as y
    def draws(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        uniforms: ArrayLike,  # (n, [n_outputs]) or (n, [n_outputs,] k)
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # as uniforms
    def weights(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], _Floats]: ...  # (n + 1,), (nnz,), (nnz,)
    def proximities(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]: ...
    def n_samples(
        self,
        leaves: ArrayLike,  # (n, n_trees), -1 for no leaf
        *,
        n_threads: int = 0,
    ) -> NDArray[np.int64]: ...  # (n,)

class Scorer:
    def __init__(self, forest: Forest, index: LeafIndex) -> None: ...
    @property
    def forest(self) -> Forest: ...
    @property
    def index(self) -> LeafIndex: ...
    def __reduce__(self) -> tuple[type[Scorer], tuple[Forest, LeafIndex]]: ...
    def mean(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # (n,) or (n, n_outputs)
    def intervals(
        self,
        X: ArrayLike,  # (n, n_features)
        coverage: ArrayLike = 0.9,  # () or (k,)
        kind: _Kind | Sequence[_Kind] = "hdi",  # one, or (k,)
        *,
        mean: _Floats | None = None,  # (n,) or (n, n_outputs)
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
        centres: ArrayLike | None = None,  # (n_leaves.sum(),)
    ) -> _Floats: ...  # (n, [n_outputs,] 2) or (n, [n_outputs,] 2, k)
    def quantiles(
        self,
        X: ArrayLike,  # (n, n_features)
        quantiles: ArrayLike,  # () or (k,)
        interpolation: _Interpolation = "inverted_cdf",
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # (n, [n_outputs]) or (n, [n_outputs,] k)
    def cdf(
        self,
        X: ArrayLike,  # (n, n_features)
        y: ArrayLike,  # (n, [n_outputs]) or (n, [n_outputs,] k)
        *,
        inclusive: bool = True,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # as y
    def draws(
        self,
        X: ArrayLike,  # (n, n_features)
        uniforms: ArrayLike,  # (n, [n_outputs]) or (n, [n_outputs,] k)
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
        out: _Floats | None = None,
    ) -> _Floats: ...  # as uniforms
    def weights(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], _Floats]: ...  # (n + 1,), (nnz,), (nnz,)
    def proximities(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        leave_out: ArrayLike | None = None,  # (n,)
        n_threads: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]: ...
    def n_samples(
        self,
        X: ArrayLike,  # (n, n_features)
        *,
        n_threads: int = 0,
    ) -> NDArray[np.int64]: ...  # (n,)

def available_threads() -> int: ...
def instructions() -> _Instructions: ...
def _centred_oob_intervals(
    index: LeafIndex,
    leaves: ArrayLike,  # (n, n_trees)
    counts: ArrayLike,  # (n, n_trees)
    y: ArrayLike,  # (n,)
    centres: ArrayLike,  # (n,)
    leaf_weight: ArrayLike,  # (n_leaves.sum(),)
    rows: ArrayLike,  # (m,)
    coverage: ArrayLike,  # () or (k,)
    kinds: Sequence[_Kind],
    *,
    draw_weight: ArrayLike | None = None,  # (n,)
    scale: float = 1.0,
    offsets: ArrayLike | None = None,  # (n,)
    n_threads: int = 0,
) -> _Floats: ...  # (len(kinds), m, 2) or (len(kinds), m, 2, k)
def weighted_hdi(
    values: ArrayLike,  # (s,) or (n, s)
    weights: ArrayLike | None = None,  # (s,) or (n, s)
    coverage: ArrayLike = 0.9,  # () or (k,)
    *,
    n_threads: int = 0,
) -> _Floats: ...  # (2,), (2, k), (n, 2) or (n, 2, k)

c_api: Final[CapsuleType]  # const hdicore_api *, see hdicore/c_api.h
