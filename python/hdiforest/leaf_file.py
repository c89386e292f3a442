"""Writes and reads files of indices; each version of the format has a reader in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hdicore import LeafIndex
from hdiforest import tensor_file
from hdiforest.tensor_file import Facts, Tensors

Indexed = tuple[LeafIndex, int | None]


def save(index: LeafIndex, n_training_rows: int | None, path: Path) -> None:
    """Write an index; see `LeafModel.save`."""
    facts = {"scalar_output": index.scalar_output, "n_training_rows": n_training_rows}
    tensors: dict[str, Any] = dict(index.arrays())
    tensor_file.write(path, LEAF_INDEX, facts, tensors)


def load(path: Path) -> Indexed:
    """Return an index and its number of training rows; see `LeafModel.load`."""
    return tensor_file.load(path, LEAF_INDEX)


def _read_version_1(facts: Facts, tensors: Tensors) -> Indexed:
    scalar_output, n_training_rows = facts.get("scalar_output"), facts.get("n_training_rows")
    if type(scalar_output) is not bool:
        raise ValueError("scalar_output must be true or false")
    if n_training_rows is not None and not (type(n_training_rows) is int and n_training_rows >= 0):
        raise ValueError("n_training_rows must be null or a whole number")
    arrays: Any = tensors
    return LeafIndex.from_arrays(arrays, scalar_output, copy=False), n_training_rows


LEAF_INDEX = tensor_file.Format(
    noun="file of LeafModel.save",
    content="index",
    key="hdicore_leaf_index",
    readers={1: _read_version_1},
)
