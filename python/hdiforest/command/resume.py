"""What an output was made from, kept with it, so that a later run can leave it as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hdiforest._tables.formats import ending
from hdiforest._utils.optional import need
from hdiforest.command.inputs import Source
from hdiforest.command.scoring import Columns
from hdiforest.serving._batch_scorer import BatchScorer

KEY = b"hdiforest"
# What of a record may differ, and what is said then.
_DIFFERENCES = {
    "model": "the model is another one",
    "kind": "the kind is another one",
    "coverage": "the coverage is another one",
    "keep": "other columns are kept",
    "input": "it was made from another input",
    "size": "the input has changed",
    "changed": "the input has changed",
    "keys": "the names of its folders have changed",
    "text": "--sep, --decimal or --encoding is another one",
}

Origin = dict[str, Any]


def origin_of(source: Source, scorer: BatchScorer, keep: Columns) -> Origin:
    """Return what the output for a source depends on, as JSON's types."""
    size, changed = source.size_and_time()
    return {
        "model": scorer.digest,
        "kind": scorer.kind,
        "coverage": scorer.coverage,
        "keep": "all" if keep.all else None if keep.names is None else list(keep.names),
        "input": str(source.path if source.system else source.path.resolve()),
        "size": size,
        "changed": changed,
        "keys": source.keys,
        "text": asdict(source.form),
    }


def as_metadata(origin: Origin) -> dict[bytes, bytes]:
    """Return an origin as metadata of a schema."""
    return {KEY: json.dumps(origin, sort_keys=True).encode()}


def keep_beside(origin: Origin, out: Path) -> None:
    """Write an origin to a hidden file beside an output whose format has no metadata.

    The file is written in place and not synced: if it is cut or lost, the output is made again.
    """
    if _is_parquet(out):
        return
    record = {"origin": origin, "output": _identity(out)}
    _beside(out).write_bytes(json.dumps(record, sort_keys=True).encode())


def why_again(origin: Origin, out: Path) -> str | None:
    """Say why an output must be made again: None if it is there and equal, empty if it is missing.

    An output whose origin cannot be read is of another origin.
    """
    if not out.exists():
        return ""
    found = _found(out)
    if found is None:
        return "what it was made from is not known"
    for name, difference in _DIFFERENCES.items():
        if found.get(name) != origin[name]:
            return difference
    return None


def _found(out: Path) -> Mapping[str, Any] | None:
    try:
        if _is_parquet(out):
            content = need("pyarrow.parquet").read_schema(out).metadata[KEY]
            found = json.loads(content)
        else:
            record = json.loads(_beside(out).read_bytes())
            found = record["origin"] if record["output"] == _identity(out) else None
    except (OSError, KeyError, RecursionError, TypeError, ValueError):  # as ArrowInvalid is
        return None
    return found if isinstance(found, dict) else None


def _identity(out: Path) -> list[int]:
    status = out.stat()
    return [status.st_size, status.st_mtime_ns]


def _beside(out: Path) -> Path:
    return out.with_name(f".{out.name}.hdiforest.json")


def _is_parquet(out: Path) -> bool:
    return ending(out) == ".parquet"
