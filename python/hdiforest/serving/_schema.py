"""What stored models are made of: facts as JSON, and arrays of types and shapes."""

from __future__ import annotations

import reprlib
import typing
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.training_rows import Weighting
from hdiforest._utils.checks import alternatives
from hdiforest._utils.codec import Arrays, require_none, text_form


class Origin(NamedTuple):
    """Where facts and arrays come from, and when they are checked."""

    source: str | None = None  # what errors begin with
    lazy: bool = False  # whether what large arrays hold is checked at its first use

    def part(self, name: str) -> Origin:
        """Return the origin of a part."""
        return self if self.source is None else self._replace(source=f"{self.source}: {name}")


_Version = typing.Annotated[str, text_form("a version", "(?s).{1,100}")]
_Digest = typing.Annotated[str, text_form("32 hexadecimal digits", "[0-9a-f]{32}")]


class Versions(NamedTuple):
    """Facts of every file."""

    format_version: int
    hdicore: _Version
    scikit_learn: _Version


class BoostedFacts(NamedTuple):
    """Numbers of a mean that is a line and boosted trees."""

    baseline: float
    low: float
    high: float


class MeanFacts(NamedTuple):
    """Of another regressor's mean: an object, if it is not boosted."""

    share: float
    boosted: BoostedFacts | None


class StepsFacts(NamedTuple):
    """What the steps before the forest read."""

    library: typing.Literal["pandas", "polars"] | None
    columns: list[str] | None
    numbers: list[str]
    texts: dict[str, str]


class ModelFacts(NamedTuple):
    """Facts of a model; those up to `training_digest` are fields of `FittedForest`."""

    weights: Weighting
    n_training_rows: int
    allow_nan: bool
    matches_forest: bool
    training_digest: _Digest
    n_features: int
    feature_names: list[str] | None
    target_names: list[str] | None
    scalar_output: bool
    counts_are_weighted: bool
    encoder: dict[str, Any] | None
    steps: StepsFacts | None
    calibration: dict[str, Any] | None
    mean: MeanFacts | None
    boxes: dict[str, Any] | None
    reference: dict[str, Any] | None
    folds: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


class LeafFacts(NamedTuple):
    """Facts of a `LeafModel`."""

    scalar_output: bool
    n_training_rows: int | None
    target_names: list[str] | None
    calibration: dict[str, Any] | None


Expected = Mapping[str, tuple[str, tuple[int, ...]]]  # types and shape by name


def check_arrays(
    group: str,
    arrays: Mapping[str, NDArray[Any]],
    expected: Expected,
    optional: Collection[str] = (),
) -> None:
    """Raise ValueError unless a group has arrays of these types and shapes, and no others."""
    require_none((f"{group}.{name}" for name in arrays if name not in expected), "tensor")
    for name, (dtypes, shape) in expected.items():
        array = arrays.get(name)
        if array is None and name not in optional:
            raise ValueError(f"the tensor {group}.{name} is missing")
        if array is not None and (array.dtype.name not in dtypes.split() or array.shape != shape):
            raise ValueError(
                f"{group}.{name} must be {alternatives(dtypes.split())} of shape {shape}, got "
                f"{array.dtype} of shape {reprlib.repr(array.shape)}"
            )


def check_training_values(
    arrays: Arrays, atoms: list[NDArray[np.float64]], *, allow_nan: bool, moved: bool
) -> None:
    """Raise ValueError if the values of training rows do not fit the index.

    `arrays` have been through `check_arrays`; `atoms` are the distinct targets of each output,
    (n_atoms,), `moved` within the range of all if the index is monotonic.
    """
    if np.isinf(arrays["X"]).any() or not (allow_nan or np.isfinite(arrays["X"]).all()):
        raise ValueError("training.X must be finite, but for missing values where they are allowed")
    if not np.isfinite(arrays["y"]).all():
        raise ValueError("training.y must be finite")
    for own, target in zip(atoms, arrays["y"].reshape(len(arrays["y"]), -1).T, strict=True):
        inside = own[[0, -1]].clip(target.min(), target.max()) == own[[0, -1]]
        if not (inside.all() if moved else np.isin(own, target).all()):
            raise ValueError("training.y lacks targets that leaves hold")
    if "sample_weight" in arrays:
        weights = arrays["sample_weight"]
        if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
            raise ValueError("training.sample_weight must be finite, not negative, not all zero")
    if "counts" in arrays:
        counts = arrays["counts"]
        if counts.max() > 2**31 - 1 or not (counts > 0).any(axis=0).all():
            raise ValueError("training.counts must be below 2**31, with a row for every tree")
