"""Writes and reads files of indices; each version of the format has a reader in a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from hdicore import LeafIndex
from hdiforest.calibration._arrays import from_arrays, to_arrays
from hdiforest.calibration._result import Calibration
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._tensor_file import Facts, Loaded, Origin, Tensors

_PREFIX = "calibration."  # of the names of a calibration's arrays


@dataclass(frozen=True, eq=False)
class Indexed:
    """What a file holds of a `LeafModel`."""

    index: LeafIndex
    n_training_rows: int | None
    calibration: Calibration | None = None


def save(indexed: Indexed, path: Path) -> None:
    """Write an index; see `LeafModel.save`."""
    index = indexed.index
    facts: Facts = {
        "scalar_output": index.scalar_output,
        "n_training_rows": indexed.n_training_rows,
        "calibration": None,
    }
    tensors: dict[str, Any] = dict(index.arrays())
    if indexed.calibration is not None:
        arrays, facts["calibration"] = to_arrays(indexed.calibration)
        tensors |= {f"{_PREFIX}{name}": array for name, array in arrays.items()}
    tensor_file.write(path, LEAF_INDEX, facts, tensors)


def load(path: Path, *, verify: bool = False, mapped: bool = True) -> Loaded[Indexed]:
    """Return what `save` wrote; see `LeafModel.load`."""
    return tensor_file.load(path, LEAF_INDEX, verify=verify, mapped=mapped)


def _read_version_2(facts: Facts, tensors: Tensors, origin: Origin) -> Indexed:
    stored = {name: array for name, array in tensors.items() if name.startswith(_PREFIX)}
    arrays = {name.removeprefix(_PREFIX): array for name, array in stored.items()}
    given = facts.get("calibration")
    if not isinstance(given, dict | None) or (given is None) != (not arrays):
        raise ValueError("the facts and the tensors of its calibration do not fit")
    of_index = {name: array for name, array in tensors.items() if name not in stored}
    indexed = _read_version_1(facts, of_index, origin)
    if given is None:
        return indexed
    calibration = from_arrays(arrays, given)
    check_leaf_calibration(indexed.index, calibration)
    return replace(indexed, calibration=cast("Calibration", calibration))


def check_leaf_calibration(index: LeafIndex, calibration: Any) -> None:
    """Raise ValueError unless a `LeafModel` of the index can have the calibration."""
    if (
        not isinstance(calibration, Calibration)
        or calibration.method != "split"
        or index.n_outputs > 1
        or calibration.bases[0].family != "raw"
        or len(set(calibration.bases)) > 1
    ):
        raise ValueError("the calibration does not fit an index of leaves")


def _read_version_1(facts: Facts, tensors: Tensors, origin: Origin) -> Indexed:
    scalar_output, n_training_rows = facts.get("scalar_output"), facts.get("n_training_rows")
    if type(scalar_output) is not bool:
        raise ValueError("scalar_output must be true or false")
    if n_training_rows is not None and not (type(n_training_rows) is int and n_training_rows >= 0):
        raise ValueError("n_training_rows must be null or a whole number")
    arrays: Any = tensors
    index = LeafIndex.from_arrays(arrays, scalar_output, copy=False, **origin._asdict())
    return Indexed(index, n_training_rows)


LEAF_INDEX = tensor_file.Format(
    noun="file of LeafModel.save",
    content="index",
    key="hdicore_leaf_index",
    readers={1: _read_version_1, 2: _read_version_2},
)
