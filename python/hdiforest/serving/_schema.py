"""What model files may hold: tables of their facts and tensors by version, and the checks."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.training_rows import ANY_WEIGHTING, WEIGHTINGS


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 100


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(least: int, most: int) -> Callable[[Any], bool]:
    # A bool is an int.
    return lambda value: type(value) is int and least <= value <= most


def _are_names(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    )


def _is_digest(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None
    )


def _is_mean(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) == {"share", "baseline"}
        and all(type(number) is float for number in value.values())
    )


def _are_folds(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(fold, dict)
        and set(fold) == {"n_training_rows", "mean", "calibration"}
        and _is_number(1, 2**63 - 1)(fold["n_training_rows"])
        and _is_mean(fold["mean"])
        for fold in value
    )


class Fact(NamedTuple):
    """One entry of the facts."""

    expected: str
    holds: Callable[[Any], bool]
    required: bool = True


class Tensor(NamedTuple):
    """One array of the file."""

    dtypes: tuple[str, ...]
    n_dimensions: tuple[int, ...] = (1,)
    required: bool = True


FACTS = {
    "format_version": Fact("a whole number", _is_number(0, 2**31 - 1)),
    "hdicore": Fact("a version", _is_text),
    "scikit_learn": Fact("a version", _is_text),
    "weights": Fact(ANY_WEIGHTING, lambda value: value in tuple(WEIGHTINGS)),
    "n_features": Fact("a whole number in [1, 2**31)", _is_number(1, 2**31 - 1)),
    "feature_names": Fact("null or a list of texts", _are_names),
    "scalar_output": Fact("true or false", _is_flag),
    "n_training_rows": Fact("a whole number in [1, 2**63)", _is_number(1, 2**63 - 1)),
    "allow_nan": Fact("true or false", _is_flag),
    "counts_are_weighted": Fact("true or false", _is_flag),
}


TENSORS = {
    "forest.nodes": Tensor(("uint32",), (2,)),
    "forest.tree_offsets": Tensor(("int64",)),
    "forest.leaf_nodes": Tensor(("int32",)),
    "index.leaf_offsets": Tensor(("int64",)),
    "index.atom_offsets": Tensor(("int64",)),
    "index.atoms": Tensor(("float64",)),
    "index.tree_begin": Tensor(("int64",)),
    "index.leaf_begin": Tensor(("uint32",)),
    "index.ranks": Tensor(("uint16", "uint32")),
    "index.units": Tensor(("uint32", "uint64"), required=False),
    "index.copies": Tensor(("uint8", "uint32"), required=False),
    "index.seen": Tensor(("uint64",), required=False),
    "training.X": Tensor(("float32",), (2,), required=False),
    "training.y": Tensor(("float64",), (1, 2), required=False),
    "training.sample_weight": Tensor(("float64",), required=False),
    "training.counts": Tensor(("uint8", "uint16", "uint32", "uint64"), (2,), required=False),
}


# What version 2 adds: a calibration, and what its intervals need: the index of residuals, the
# boosted trees whose mean is in their centres, the index and the draws of the jackknife+, and all
# this for the forests of folds, in tensors whose names begin with fold0, fold1, ...
ADDED_FACTS = {
    "calibration": Fact("null or a calibration", lambda value: isinstance(value, dict | None)),
    "mean": Fact("null, or a share and a baseline", _is_mean),
    "folds": Fact("a list of the facts of each fold's forest", _are_folds),
    "matches_forest": Fact("true or false", _is_flag, required=False),
    "training_digest": Fact("null or 32 hexadecimal digits", _is_digest, required=False),
}


ADDED_TENSORS = {
    **{
        f"calibration.{name}": Tensor(("float64",), required=False)
        for name in (
            "coverage",
            "level",
            "pad",
            "mean_width",
            "interval_score",
            "realised",
            "targets",
        )
    },
    **{
        f"calibration.{name}": Tensor(("float64",), (2,), required=False)
        for name in ("audit", "scores", "weights")
    },
    "centred.leaf_means": Tensor(("float64",), required=False),
    "centred.mean_values": Tensor(("float64",), required=False),
    "jackknife.drawn": Tensor(("uint8",), (2,), required=False),
    **{
        name.replace(of, to): entry._replace(required=False)
        for of, to in (
            ("index.", "residuals."),
            ("index.", "inbag."),
            ("forest.", "mean_forest."),
        )
        for name, entry in TENSORS.items()
        if name.startswith(of)
    },
}


def check_facts(facts: Mapping[str, Any], version: int) -> None:
    """Check names, types and ranges of the facts of a version.

    Raises
    ------
    ValueError
        If a fact is missing, not known, or not what the table says.
    """
    table = FACTS if version == 1 else FACTS | ADDED_FACTS
    _check_names("fact", facts, table)
    for name, value in facts.items():
        if not table[name].holds(value):
            raise ValueError(f"{name} must be {table[name].expected}, got {reprlib.repr(value)}")
    names = facts["feature_names"]
    if names is not None and len(names) != facts["n_features"]:
        raise ValueError(f"it names {len(names)} features of {facts['n_features']}")


def check_tensors(tensors: Mapping[str, NDArray[Any]], version: int) -> None:
    """Check names, types and dimensions of a version; the engine checks contents.

    Raises
    ------
    ValueError
        If an array is missing, not known, or not what the table says.
    """
    table = TENSORS if version == 1 else TENSORS | ADDED_TENSORS
    _check_names("tensor", tensors, table)
    for name, array in tensors.items():
        dtypes, n_dimensions, _ = table[name]
        if array.dtype.name not in dtypes or array.ndim not in n_dimensions:
            raise ValueError(
                f"{name} must be {' or '.join(dtypes)} of {' or '.join(map(str, n_dimensions))} "
                f"dimensions, got {array.dtype.name} of {array.ndim}"
            )


def check_training_shapes(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], n_trees: int, n_outputs: int
) -> None:
    """Check the shapes of the training rows against the facts.

    Parameters
    ----------
    arrays : mapping
        Tensors of the group training, whose types have been checked.
    facts : mapping
        Checked facts.
    n_trees, n_outputs : int

    Raises
    ------
    ValueError
        If they do not fit.
    """
    n = facts["n_training_rows"]
    shapes = {
        "X": (n, facts["n_features"]),
        "y": (n,) if facts["scalar_output"] else (n, n_outputs),
        "sample_weight": (n,),
        "counts": (n, n_trees),
    }
    for name in ("X", "y"):
        if name not in arrays:
            raise ValueError(f"the tensor training.{name} is missing")
    for name, array in arrays.items():
        if array.shape != shapes[name]:
            raise ValueError(f"training.{name} must have shape {shapes[name]}, got {array.shape}")


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
        Tensors of the group training.
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
    kind: str, names: Collection[str], table: Mapping[str, Fact] | Mapping[str, Tensor]
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
