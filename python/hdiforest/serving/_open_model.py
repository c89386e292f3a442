"""Models that are open in this process: each file is read once, and again if it has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import (
    AnyKind,
    Rows,
    predict_mean_and_intervals,
    resolve_kind_and_levels,
)
from hdiforest._utils.checks import shares
from hdiforest._utils.typing import Array
from hdiforest.serving import _model_file as model_file


class _Identity(NamedTuple):
    """What changes when a file is replaced or written to."""

    n_bytes: int
    changed: int  # in nanoseconds
    device: int
    inode: int


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model, the digest of its file, and what the file was like when it was read."""

    fitted: FittedForest
    digest: str  # SHA-256 that stands for everything in the file
    identity: _Identity

    def kind_and_levels(
        self,
        kind: AnyKind | None,
        coverage: float | Sequence[float] | None,
    ) -> tuple[AnyKind, list[float]]:
        """Return the kind of intervals and their levels, by default those that the model has.

        Raises
        ------
        ValueError
            If the model has several targets, or not such intervals.
        """
        if self.fitted.n_outputs != 1:
            raise ValueError(
                f"the model has {self.fitted.n_outputs} targets; tables are scored for one"
            )
        levels = None
        if coverage is not None:
            levels = shares("coverage", coverage, one=True).reshape(-1).tolist()
            if not levels:
                raise ValueError(
                    f"coverage must be one or more numbers in (0, 1], got {coverage!r}"
                )
        return resolve_kind_and_levels(self.fitted, kind, levels)

    def mean_and_intervals(
        self,
        X: Rows,
        levels: Sequence[float],
        kind: AnyKind,
        n_threads: int,
        of_folds: Sequence[Rows] = (),
    ) -> tuple[Array, Array]:
        """Return means (n,) and intervals (n, 2, k) of rows that were checked."""
        return predict_mean_and_intervals(self.fitted, X, levels, kind, n_threads, of_folds)


# By absolute path. A copy is freed with the last scorer that holds it.
_mapped: dict[str, OpenModel] = {}


_copies: WeakValueDictionary[str, OpenModel] = WeakValueDictionary()


_lock = threading.Lock()


def open_model(
    path: str, *, mapped: bool = True, digest: str | None = None, trusted: Sequence[Any] = ()
) -> OpenModel:
    """Return the model at `path`; it is read once, and again if the file has changed.

    If it is not `mapped`, it is a copy in memory that was checked whole, and one of that `digest`
    is returned whatever the file is now, as long as something else holds it.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a model, is damaged, or comes from a newer version.
    """
    path = os.path.abspath(path)
    held: MutableMapping[str, OpenModel] = _mapped if mapped else _copies
    known = held.get(path)
    if known is not None and not mapped and known.digest == digest:
        return known
    identity = _identity(path)
    if known is not None and known.identity == identity:
        return known
    with _lock:
        known = held.get(path)  # another thread may have read it
        if known is not None and known.identity == identity:
            return known
        held.pop(path, None)
        loaded = model_file.load(Path(path), mapped=mapped, trusted=trusted)
        model = OpenModel(loaded.content, loaded.digest, identity)
        if _identity(path) != identity:
            raise ValueError(f"{path} was replaced while it was read")
        held[path] = model
        return model


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no model file {path}") from None
    return _Identity(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino)
