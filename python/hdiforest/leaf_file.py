"""Indices of training rows as files, without a forest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hdicore import LeafIndex
from hdiforest import tensor_file
from hdiforest.text import printable

LEAF_INDEX = tensor_file.Format("file of LeafModel.save", "hdicore_leaf_index", 1)


def save(index: LeafIndex, n_training_rows: int | None, path: Path) -> None:
    """Write an index; see `LeafModel.save`."""
    facts = {"scalar_output": index.scalar_output, "n_training_rows": n_training_rows}
    tensors: dict[str, Any] = dict(index.arrays())
    tensor_file.write(path, LEAF_INDEX, facts, tensors)


def load(path: Path) -> tuple[LeafIndex, int | None]:
    """Return an index and its number of training rows; see `LeafModel.load`."""
    facts, tensors = tensor_file.read(path, LEAF_INDEX)
    scalar_output, n_training_rows = facts.get("scalar_output"), facts.get("n_training_rows")
    try:
        if type(scalar_output) is not bool:
            raise ValueError("scalar_output must be true or false")
        if n_training_rows is not None and not (
            type(n_training_rows) is int and n_training_rows >= 0
        ):
            raise ValueError("n_training_rows must be null or a whole number")
        arrays: Any = tensors
        index = LeafIndex.from_arrays(arrays, scalar_output, copy=False)
    except ValueError as error:
        raise ValueError(f"{path} is not a valid index: {printable(str(error))}") from None
    return index, n_training_rows
