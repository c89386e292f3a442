"""The schema of stored models: which metadata and arrays there are, and their validation."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS

Facts = dict[str, Any]


Arrays = dict[str, NDArray[Any]]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(least: int, most: int) -> Callable[[Any], bool]:
    # A bool is an int.
    return lambda value: type(value) is int and least <= value <= most


def _is_number(value: Any) -> bool:
    # Some ints are no floats.
    return type(value) is float or (type(value) is int and abs(value) < 2**53)


def _or_null(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or holds(value)


def _are(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def _is_mean(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"share", "baseline"}
        and type(value["share"]) is float
        and (value["baseline"] is None or type(value["baseline"]) is float)
    )


def _are_steps(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) == {"library", "columns", "numbers", "texts"}
        and value["library"] in (None, "pandas", "polars")
        and _or_null(_are(_is_name))(value["columns"])
        and _are(_is_name)(value["numbers"])
        and isinstance(value["texts"], dict)
        and all(map(_is_name, value["texts"].values()))
    )


def _is_lattice(value: Any) -> bool:
    return _are(_is_number)(value) and len(value) == 3


class Fact(NamedTuple):
    """One of the facts."""

    expected: str
    holds: Callable[[Any], bool]
    required: bool = True


class Array(NamedTuple):
    """One of the arrays."""

    dtypes: tuple[str, ...]
    shape: tuple[int | str, ...]  # a name stands for a number that `check_arrays` may be given
    required: bool = True


class Origin(NamedTuple):
    """Where facts and arrays come from, and when they are checked."""

    source: str | None = None  # what errors begin with
    lazy: bool = False  # whether what large arrays hold is checked at its first use

    def part(self, name: str) -> Origin:
        """Return the origin of a part."""
        return self if self.source is None else self._replace(source=f"{self.source}: {name}")


_ROWS = _is_whole(1, 2**63 - 1)


VERSIONS = {
    "format_version": Fact("a whole number", _is_whole(0, 2**31 - 1)),
    "hdicore": Fact("a version", _is_text),
    "scikit_learn": Fact("a version", _is_text),
}


# These are fields of `FittedForest` as they are, and so are these arrays.
FIELDS = {
    "weights": Fact(ANY_WEIGHTING, lambda value: value in tuple(WEIGHTINGS)),
    "n_training_rows": Fact("a whole number in [1, 2**63)", _ROWS),
    "allow_nan": Fact("true or false", _is_flag),
    "matches_forest": Fact("true or false", _is_flag),
    "training_digest": Fact("32 hexadecimal digits", _is_digest),
}


ARRAY_FIELDS = {"feature_range": Array(("float32",), (2, "n_features"))}


FACTS = FIELDS | {
    "n_features": Fact("a whole number in [1, 2**31)", _is_whole(1, 2**31 - 1)),
    "feature_names": Fact("null or a list of texts", _or_null(_are(_is_name))),
    "scalar_output": Fact("true or false", _is_flag),
    "counts_are_weighted": Fact("true or false", _is_flag),
    "encoder": Fact("null or an encoder of tables", _or_null(_is_object)),
    "steps": Fact("null, or what the steps before the forest read", _or_null(_are_steps)),
    "calibration": Fact("null or a calibration", _or_null(_is_object)),
    "mean": Fact("null, or a share and a baseline", _or_null(_is_mean)),
    "folds": Fact("a list of the facts of each fold's forest", _are(_is_object)),
}


_FOREST = {
    "nodes": Array(("uint32",), ("n_nodes", "n_words")),
    "tree_offsets": Array(("int64",), ("n_trees + 1",)),
    "leaf_nodes": Array(("int32",), ("n_leaves",)),
}


_INDEX = {
    "leaf_offsets": Array(("int64",), ("n_trees + 1",)),
    "atom_offsets": Array(("int64",), ("n_outputs + 1",)),
    "atoms": Array(("float64",), ("n_atoms",)),
    "tree_begin": Array(("int64",), ("n_outputs * n_trees + 1",)),
    "leaf_begin": Array(("uint32",), ("n_outputs * (n_leaves + n_trees)",)),
    "ranks": Array(("uint16", "uint32"), ("n_entries",)),
    "units": Array(("uint32", "uint64"), ("n_entries",), required=False),
    "copies": Array(("uint8", "uint32"), ("n_entries",), required=False),
    "seen": Array(("uint64",), ("n_words",), required=False),
}


def _in_group(group: str, table: Mapping[str, Array], *, required: bool) -> dict[str, Array]:
    return {
        f"{group}.{name}": entry if required else entry._replace(required=False)
        for name, entry in table.items()
    }


_POSTPROCESS = {
    "low": Fact("a number", _is_number),
    "high": Fact("a number", _is_number),
    "lattice": Fact("null or three numbers", _or_null(_is_lattice)),
    "clip": Fact("true or false", _is_flag),
}


# Of a `Calibration`, and of a `CrossCalibration`.
FIXED_FACTS = _POSTPROCESS | {
    "method": Fact("'oob' or 'split'", _is_name),
    "confidence": Fact("null or a number", _or_null(_is_number)),
    "weighted": Fact("true or false", _is_flag),
    "n": Fact("a whole number in [1, 2**63)", _ROWS),
    "families": Fact("a list of names", _are(_is_name)),
    "kinds": Fact("a list of names", _are(_is_name)),
}


CROSS_FACTS = _POSTPROCESS | {
    "method": Fact("'cv+' or 'jackknife+'", _is_name),
    "fold_sizes": Fact("positive numbers", _are(_ROWS)),
    "grouped": Fact("true or false", _is_flag),
}


def _of_levels(*sizes: int | str) -> Array:
    return Array(("float64",), sizes)


# Numbers of a `FixedLevel` beside its base and its cross-check.
LEVEL_FIELDS = ("coverage", "q_hat", "mean_width", "interval_score", "realised")


_CROSS_CHECKS = {"coverage": _of_levels("n_levels"), "cross_check": _of_levels("n_levels", 7)}


_TARGETS = {"targets": Array(("float64",), ("n_targets",), required=False)}


FIXED_ARRAYS = {
    **{name: _of_levels("n_levels") for name in ("level", *LEVEL_FIELDS)},
    **_CROSS_CHECKS,
    **_TARGETS,
}


CROSS_ARRAYS = {
    **_CROSS_CHECKS,
    **_TARGETS,
    "scores": _of_levels("n_rows", "n_levels"),
    "weights": _of_levels("n_rows", "n_levels")._replace(required=False),
}


_TRAINING = {
    "X": Array(("float32",), ("n_training_rows", "n_features")),
    "y": Array(("float64",), ("n_training_rows", "n_outputs")),
    "sample_weight": Array(("float64",), ("n_training_rows",)),
    "counts": Array(("uint8", "uint16", "uint32", "uint64"), ("n_training_rows", "n_trees")),
}


_CALIBRATION = _in_group("calibration", FIXED_ARRAYS | CROSS_ARRAYS, required=False)


# Those of a fold's forest have a name such as fold0 in front.
ARRAYS = {
    **ARRAY_FIELDS,
    **_in_group("forest", _FOREST, required=True),
    **_in_group("index", _INDEX, required=True),
    **_in_group("training", _TRAINING, required=False),
    **_CALIBRATION,
    **_in_group("residuals", _INDEX, required=False),
    **_in_group("inbag", _INDEX, required=False),
    **_in_group("mean_forest", _FOREST, required=False),
    "centred.leaf_means": Array(("float64",), ("n_leaves",), required=False),
    "centred.mean_values": Array(("float64",), ("n_leaves of the mean",), required=False),
    "jackknife.drawn": Array(("uint8",), ("n_left_out", "n_trees"), required=False),
}


# Of a file alone: what `hdiforest.serving._objects` makes of objects.
OBJECTS = {"objects": Array(("uint8",), ("n_bytes",))}


# Of a `LeafModel`.
LEAF_FACTS = {
    "scalar_output": FACTS["scalar_output"],
    "n_training_rows": Fact("null or a whole number", _or_null(_is_whole(0, 2**63 - 1))),
    "calibration": FACTS["calibration"],
}


_POOLED = Array(("uint8",), (0,), required=False)  # there if the leaves of a row are pooled


LEAF_ARRAYS = _in_group("index", _INDEX | {"pooled": _POOLED}, required=True) | _CALIBRATION


def check_facts(facts: Mapping[str, Any], table: Mapping[str, Fact]) -> None:
    """Check names, types and ranges of facts.

    Raises
    ------
    ValueError
        If a fact is missing, not known, or not what the table says.
    """
    _check_names("fact", facts, table)
    for name, value in facts.items():
        if not table[name].holds(value):
            raise ValueError(f"{name} must be {table[name].expected}, got {reprlib.repr(value)}")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]],
    table: Mapping[str, Array],
    sizes: Mapping[str, int | None],
) -> None:
    """Check names, types and shapes of arrays; what they hold is checked by those who read them.

    Parameters
    ----------
    arrays : mapping
    table : mapping
    sizes : mapping
        Numbers for the names in shapes. None: there is no such axis. Others may be any.

    Raises
    ------
    ValueError
        If an array is missing, not known, or not what the table says.
    """
    _check_names("tensor", arrays, table)
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
    arrays: Mapping[str, NDArray[Any]],
    atoms: list[NDArray[np.float64]],
    *,
    allow_nan: bool,
    moved: bool,
) -> None:
    """Check the values of training rows, whose shapes have been checked, against the index.

    Parameters
    ----------
    arrays : mapping
        X, y, and sample_weight and counts if they are there.
    atoms : list of (n_atoms,) arrays
        Distinct targets of each output of the index.
    allow_nan : bool
        Whether X may hold missing values.
    moved : bool
        Whether leaves hold targets that were moved, within the range of all.

    Raises
    ------
    ValueError
        If they do not fit.
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
    kind: str, names: Collection[str], table: Mapping[str, Fact] | Mapping[str, Array]
) -> None:
    for name, entry in table.items():
        if entry.required and name not in names:
            raise ValueError(f"the {kind} {name} is missing")
    for name in names:
        if name not in table:
            raise ValueError(
                f"it has the {kind} {reprlib.repr(name)}, which this version does not know; "
                "upgrade hdicore"
            )
