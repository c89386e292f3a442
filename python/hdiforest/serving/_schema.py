"""The schema of stored models: which metadata and arrays there are, and their validation."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Test = Callable[[Any], bool]


def _is_a(kind: type) -> Test:
    return lambda value: isinstance(value, kind)


def _is_whole(least: int, most: int) -> Test:
    # A bool is an int.
    return lambda value: type(value) is int and least <= value <= most


def _is_number(value: Any) -> bool:
    # Some ints are no floats.
    return type(value) is float or (type(value) is int and abs(value) < 2**53)


def _or_null(holds: Test) -> Test:
    return lambda value: value is None or holds(value)


def _are(holds: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _matches(pattern: str) -> Test:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _has(**entries: Test) -> Test:
    """Test objects for having these entries and no others."""
    return lambda value: (
        isinstance(value, dict)
        and set(value) == set(entries)
        and all(holds(value[name]) for name, holds in entries.items())
    )


class Fact(NamedTuple):
    """One of the facts."""

    expected: str
    holds: Test


class Array(NamedTuple):
    """One of the arrays."""

    dtypes: tuple[str, ...]
    shape: tuple[int | str, ...]  # a name stands for a number that `check_arrays` may be given
    required: bool = True


def _floats(*shape: int | str, required: bool = True) -> Array:
    return Array(("float64",), shape, required)


def _in_group(group: str, table: Mapping[str, Array], required: bool = False) -> dict[str, Array]:
    return {f"{group}.{n}": e._replace(required=e.required and required) for n, e in table.items()}


class Origin(NamedTuple):
    """Where facts and arrays come from, and when they are checked."""

    source: str | None = None  # what errors begin with
    lazy: bool = False  # whether what large arrays hold is checked at its first use

    def part(self, name: str) -> Origin:
        """Return the origin of a part."""
        return self if self.source is None else self._replace(source=f"{self.source}: {name}")


_FLAG = Fact("true or false", _is_a(bool))
_VERSION = Fact("a version", _matches("(?s).{1,100}"))
_ROWS = Fact("a whole number in [1, 2**63)", _is_whole(1, 2**63 - 1))
_NUMBER = Fact("a number", _is_number)
_NAMES = Fact("a list of names", _are(_is_a(str)))
_TEXTS_OR_NULL = Fact("null or a list of texts", _or_null(_are(_is_a(str))))
_CALIBRATION_FACTS = Fact("null or a calibration", _or_null(_is_a(dict)))

VERSIONS = {
    "format_version": Fact("a whole number", _is_whole(0, 2**31 - 1)),
    "hdicore": _VERSION,
    "scikit_learn": _VERSION,
}

# These are fields of `FittedForest` as they are, and so are these arrays.
FIELDS = {
    "weights": Fact(ANY_WEIGHTING, lambda value: value in tuple(WEIGHTINGS)),
    "n_training_rows": _ROWS,
    "allow_nan": _FLAG,
    "matches_forest": _FLAG,
    "training_digest": Fact("32 hexadecimal digits", _matches("[0-9a-f]{32}")),
}
ARRAY_FIELDS = {"feature_range": Array(("float32",), (2, "n_features"))}

_MEAN = _has(share=_is_a(float), baseline=_or_null(_is_a(float)), penalty=_or_null(_is_a(float)))
_STEPS = _has(
    library=lambda value: value in (None, "pandas", "polars"),
    columns=_or_null(_are(_is_a(str))),
    numbers=_are(_is_a(str)),
    texts=lambda value: isinstance(value, dict) and _are(_is_a(str))(list(value.values())),
)
FACTS = FIELDS | {
    "n_features": Fact("a whole number in [1, 2**31)", _is_whole(1, 2**31 - 1)),
    "feature_names": _TEXTS_OR_NULL,
    "target_names": _TEXTS_OR_NULL,
    "scalar_output": _FLAG,
    "counts_are_weighted": _FLAG,
    "encoder": Fact("null or an encoder of tables", _or_null(_is_a(dict))),
    "steps": Fact("null, or what the steps before the forest read", _or_null(_STEPS)),
    "calibration": _CALIBRATION_FACTS,
    "mean": Fact("null, or a share, a baseline and a penalty", _or_null(_MEAN)),
    "folds": Fact("a list of the facts of each fold's forest", _are(_is_a(dict))),
    "outputs": Fact("a list of the facts of each output's forest", _are(_is_a(dict))),
}

# Of a `LeafModel`.
LEAF_FACTS = {
    "scalar_output": _FLAG,
    "n_training_rows": Fact("null or a whole number", _or_null(_is_whole(0, 2**63 - 1))),
    "target_names": _TEXTS_OR_NULL,
    "calibration": _CALIBRATION_FACTS,
}


def _is_label(value: Any) -> bool:
    return value is None or isinstance(value, str) or _is_number(value)


_GROUPS = _has(labels=_are(_is_label), feature=_or_null(_is_whole(0, 2**31 - 1)))

_POSTPROCESS = {
    "low": _NUMBER,
    "high": _NUMBER,
    "lattice": Fact(
        "null or three numbers", _or_null(lambda v: _are(_is_number)(v) and len(v) == 3)
    ),
    "clip": _FLAG,
}

# Of a `Calibration`, and of a `CrossCalibration`.
FIXED_FACTS = _POSTPROCESS | {
    "method": Fact("'oob' or 'split'", _is_a(str)),
    "confidence": Fact("null or a number", _or_null(_is_number)),
    "weighted": _FLAG,
    "n": _ROWS,
    "families": _NAMES,
    "kinds": _NAMES,
    "min_samples_leaf": _ROWS,
    "groups": Fact("null, or the labels and the feature of groups", _or_null(_GROUPS)),
}
CROSS_FACTS = _POSTPROCESS | {
    "method": Fact("'cv+' or 'jackknife+'", _is_a(str)),
    "fold_sizes": Fact("positive numbers", _are(_ROWS.holds)),
    "grouped": _FLAG,
}

_FOREST = {
    "nodes": Array(("uint32",), ("n_nodes", "n_words")),
    "tree_offsets": Array(("int64",), ("n_trees + 1",)),
    "leaf_nodes": Array(("int32",), ("n_leaves",)),
}
_INDEX = {
    "leaf_offsets": Array(("int64",), ("n_trees + 1",)),
    "atom_offsets": Array(("int64",), ("n_outputs + 1",)),
    "atoms": _floats("n_atoms"),
    "tree_begin": Array(("int64",), ("n_outputs * n_trees + 1",)),
    "leaf_begin": Array(("uint32",), ("n_outputs * (n_leaves + n_trees)",)),
    "ranks": Array(("uint16", "uint32"), ("n_entries",)),
    "units": Array(("uint32", "uint64"), ("n_entries",), required=False),
    "copies": Array(("uint8", "uint32"), ("n_entries",), required=False),
    "seen": Array(("uint64",), ("n_words",), required=False),
}


# Numbers of a `FixedLevel` beside its base and its cross-check.
LEVEL_FIELDS = ("coverage", "q_hat", "slope", "unit", "mean_width", "interval_score", "realised")

_ANY_CALIBRATION = {
    "coverage": _floats("n_levels"),
    "cross_check": _floats("n_levels", 7),
    "targets": _floats("n_targets", required=False),
}
FIXED_ARRAYS = (
    _ANY_CALIBRATION
    | {name: _floats("n_levels") for name in ("level", *LEVEL_FIELDS)}
    | {
        "later": _floats("n_levels", 7, required=False),
        "group_q_hat": _floats("n_groups", "n_levels", required=False),
        "group_counts": Array(("int64",), ("n_groups",), required=False),
    }
    | {name: _floats("n_known", required=False) for name in ("known_levels", "known_scores")}
)
CROSS_ARRAYS = _ANY_CALIBRATION | {
    "scores": _floats("n_rows", "n_levels"),
    "weights": _floats("n_rows", "n_levels", required=False),
}

_TRAINING = {
    "X": Array(("float32",), ("n_training_rows", "n_features")),
    "y": _floats("n_training_rows", "n_outputs"),
    "sample_weight": _floats("n_training_rows"),
    "counts": Array(("uint8", "uint16", "uint32", "uint64"), ("n_training_rows", "n_trees")),
}

# Of a local linear mean.
LOCAL = {
    "columns": Array(("int64",), ("n_local",)),
    "centre": _floats("n_local"),
    "scale": _floats("n_local"),
    "features": Array(("float32",), ("n_training_rows", "n_local")),
    "targets": _floats("n_training_rows"),
}

# Of boxes; `levels` are mean width, realised coverage and cross-check.
JOINT = {"q_hat": _floats("n_levels", "n_targets"), "levels": _floats("n_levels", 9)}

_CALIBRATION = _in_group("calibration", FIXED_ARRAYS | CROSS_ARRAYS)

# Those of the forest of a fold or an output have a name such as fold0 in front.
ARRAYS = {
    **ARRAY_FIELDS,
    **_in_group("forest", _FOREST, required=True),
    **_in_group("index", _INDEX, required=True),
    **_in_group("training", _TRAINING),
    **_CALIBRATION,
    **_in_group("joint", JOINT),
    **_in_group("residuals", _INDEX),
    **_in_group("inbag", _INDEX),
    **_in_group("mean_forest", _FOREST),
    **_in_group("drawn", _INDEX),
    **_in_group("local", LOCAL),
    "centred.leaf_means": _floats("n_leaves", required=False),
    "centred.mean_values": _floats("n_leaves of the mean", required=False),
    "jackknife.drawn": Array(("uint8",), ("n_left_out", "n_trees"), required=False),
}

# Of a file alone: fitted objects of scikit-learn, as skops stores them.
OBJECTS = {"objects": Array(("uint8",), ("n_bytes",))}

_POOLED = Array(("uint8",), (0,), required=False)  # there if the leaves of a row are pooled

LEAF_ARRAYS = _in_group("index", _INDEX | {"pooled": _POOLED}, required=True) | _CALIBRATION


def check_facts(facts: Mapping[str, Any], table: Mapping[str, Fact]) -> None:
    """Raise ValueError if a fact is missing, not known, or not what the table says."""
    _check_names("fact", facts, table, table)
    for name, value in facts.items():
        if not table[name].holds(value):
            raise ValueError(f"{name} must be {table[name].expected}, got {reprlib.repr(value)}")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], table: Mapping[str, Array], sizes: Mapping[str, int | None]
) -> None:
    """Raise ValueError if an array is missing, not known, or not of the type and shape in a table.

    `sizes` are numbers for the names in shapes. None: there is no such axis; others may be any.
    What arrays hold is checked by those who read them.
    """
    required = [name for name, entry in table.items() if entry.required]
    _check_names("tensor", arrays, table, required)
    for name, array in arrays.items():
        entry = table[name]
        shape = [sizes.get(size, size) if isinstance(size, str) else size for size in entry.shape]
        shape = [size for size in shape if size is not None]
        fits = len(shape) == array.ndim and all(
            isinstance(size, str) or size == n for size, n in zip(shape, array.shape, strict=True)
        )
        if array.dtype.name not in entry.dtypes or not fits:
            raise ValueError(
                f"{name} must be {' or '.join(entry.dtypes)} of shape "
                f"({', '.join(map(str, shape))}), got {array.dtype} of shape "
                f"{reprlib.repr(array.shape)}"
            )


def check_training_values(
    arrays: Arrays, atoms: list[NDArray[np.float64]], *, allow_nan: bool, moved: bool
) -> None:
    """Raise ValueError if the values of training rows do not fit the index.

    `arrays` are X, y, and sample_weight and counts if they are there, of shapes that have been
    checked; `atoms` are the distinct targets of each output, (n_atoms,), which have been `moved`,
    within the range of all, if the index is monotonic.
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


def _check_names(
    kind: str, names: Collection[str], known: Collection[str], required: Iterable[str]
) -> None:
    for name in required:
        if name not in names:
            raise ValueError(f"the {kind} {name} is missing")
    for name in names:
        if name not in known:
            own = f"the {kind} {reprlib.repr(name)}"
            raise ValueError(f"it has {own}, which this version does not know; upgrade hdicore")
