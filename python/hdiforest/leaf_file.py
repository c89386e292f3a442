"""Indices of training rows as files, in the layout of model files but without a forest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hdicore import LeafIndex, __version__
from hdiforest.atomic import replacing
from hdiforest.model_file import _digest, _map_tensors, _require_safetensors

FORMAT_VERSION = 1
METADATA_KEY = "hdicore_leaf_index"


def save(index: LeafIndex, n_training_rows: int | None, path: Path) -> None:
    """Write an index; see `LeafModel.save`."""
    _require_safetensors()
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    tensors: dict[str, Any] = dict(index.arrays())
    facts = {
        "format_version": FORMAT_VERSION,
        "hdicore": __version__,
        "scalar_output": index.scalar_output,
        "n_training_rows": n_training_rows,
    }
    metadata = {METADATA_KEY: json.dumps({"facts": facts, "sha256": _digest(facts, tensors)})}
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


def load(path: Path) -> tuple[LeafIndex, int | None]:
    """Return an index and its number of training rows; see `LeafModel.load`."""
    _require_safetensors()
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        # Proves that the header is well-formed and its ranges tile the file.
        with safe_open(path, framework="np"):
            pass
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a file of LeafModel.save, or is damaged: {error}"
        ) from None
    metadata, tensors = _map_tensors(path)
    facts, sha256 = _checked_facts(path, metadata)
    if sha256 != _digest(facts, tensors):
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    arrays: Any = tensors
    try:
        index = LeafIndex.from_arrays(arrays, facts["scalar_output"], copy=False)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a valid index: {error}") from None
    return index, facts["n_training_rows"]


def _checked_facts(path: Path, metadata: dict[str, str]) -> tuple[dict[str, Any], str]:
    try:
        found = json.loads(metadata[METADATA_KEY])
        facts, sha256 = dict(found["facts"]), str(found["sha256"])
        format_version = int(facts["format_version"])
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):
        raise ValueError(
            f"{path} is not a file of LeafModel.save: it holds other tensors"
        ) from None
    if format_version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {format_version}, written by hdicore {facts.get('hdicore')!r}; "
            f"this version reads format {FORMAT_VERSION}: upgrade hdicore"
        )
    n_training_rows = facts.get("n_training_rows")
    if type(facts.get("scalar_output")) is not bool or not (
        n_training_rows is None or (type(n_training_rows) is int and n_training_rows >= 0)
    ):
        raise ValueError(f"{path} is not a valid index: its facts are {facts}")
    return facts, sha256
