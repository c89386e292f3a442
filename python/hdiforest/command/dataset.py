"""Scores many tables into a folder: checked before, each output whole or absent, resumed after."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

from hdiforest._tables.read import TableError
from hdiforest._utils.files import folder_beside
from hdiforest.command.features import Features
from hdiforest.command.inputs import Inputs, Source
from hdiforest.command.progress import Progress, no_progress
from hdiforest.command.resume import Origin, as_metadata, keep_beside, origin_of, why_again
from hdiforest.command.scoring import Columns, features_of, score_table
from hdiforest.serving._batch_scorer import BatchScorer

_MAX_FAULTS = 20  # in one message
_FIRST_ROWS = 4096
_SMALL_BYTES = 1 << 16
_SMALL_AT_ONCE = 4


class Done(NamedTuple):
    """What was scored."""

    n_rows: int
    n_tables: int
    n_there: int  # outputs left as they were
    again: list[str]  # for each output that was made again, its name and why


@dataclass(frozen=True)
class Settings:
    """How all tables are scored; see `score_table`."""

    keep: Columns
    n_threads: int
    batch_rows: int | None
    resume: bool


def require_folder(inputs: Inputs, folder: Path) -> None:
    """Refuse a folder of outputs that is a file, or lies in one of the inputs.

    Raises
    ------
    ValueError
        If so, or if two outputs would have one name.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"several tables need a folder as output, and {folder} is a file")
    own = folder.resolve()
    for given in inputs.folders:
        if own.is_relative_to(given.resolve()):
            raise ValueError(f"the output {folder} must not lie in the input {given}")
    read = {source.path.resolve() for source in inputs.sources if source.system is None}
    for source in inputs.sources:
        if own / source.name in read:
            raise ValueError(f"the output {folder / source.name} must not be one of the inputs")
    names: dict[Path, Path] = {}
    for source in inputs.sources:
        other = names.setdefault(source.name, source.path)
        if other != source.path:
            raise ValueError(
                f"{other} and {source.path} would both be written to {folder / source.name}"
            )


def require_readable(sources: Sequence[Source], scorer: BatchScorer, keep: Columns) -> None:
    """Raise one TableError for all tables that cannot be scored.

    That is what their headers say, and the first rows of those without types.
    """
    faults = []
    for source in sources:
        try:
            with source.open() as table:
                features = features_of(scorer, table, keep)
                if table.is_text:
                    _code_first_rows(features)
        except TableError as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"cannot read {source.path}: {error.strerror or error}")
    if len(faults) == 1:
        raise TableError(faults[0])
    if faults:
        more = f"; {len(faults) - _MAX_FAULTS} more" if len(faults) > _MAX_FAULTS else ""
        raise TableError(
            f"{len(faults)} of {len(sources)} tables cannot be scored: "
            f"{'; '.join(faults[:_MAX_FAULTS])}{more}"
        )


def _code_first_rows(features: Features) -> None:
    """Raise TableError if the first rows of a table, and those read with them, are not numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scoring warns of the same
        for batch in islice(features.batches(_FIRST_ROWS), 1):
            features.matrix(batch)


def score_dataset(
    scorer: BatchScorer,
    sources: Sequence[Source],
    folder: Path,
    settings: Settings,
    advance: Progress,
) -> Done:
    """Score each source to a table of its name in a folder.

    Parameters
    ----------
    scorer : BatchScorer
    sources : sequence of Source
        Their outputs have distinct names.
    folder : Path
        Made if it is not there.
    settings : Settings
    advance : callable
        Called with a number of rows, and the share of all bytes that is done.

    Raises
    ------
    TableError
        For all tables whose header or first rows say that they cannot be scored, before anything is
        scored; or for the first one that turns out not to be readable.
    OSError
        If an output cannot be written. Outputs that are finished stay.
    """
    todo, again = [], []
    for source in sources:
        origin = origin_of(source, scorer, settings.keep)
        why = why_again(origin, folder / source.name) if settings.resume else ""
        if why:
            again.append(f"{source.name}: {why}")
        if why is not None:
            todo.append((source, origin))
    require_readable([source for source, _ in todo], scorer, settings.keep)
    total = sum(origin["size"] for _, origin in todo)
    n_rows = n_bytes = 0
    for parent, group in groupby(todo, lambda each: (folder / each[0].name).parent):
        parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(Path(os.path.realpath(parent), "outputs")) as within, _pool() as pool:
            score = partial(_score_into, folder, scorer, settings, within)
            for is_small, tables in groupby(group, _is_small):
                together = list(tables)
                results = pool.map(score, together) if is_small else None
                for table in together:
                    size = table[1]["size"]
                    show = _of_all(advance, n_bytes, size, total)
                    if results is None:
                        n_rows += score(table, show)
                    else:
                        n_rows += (n_own := next(results))
                        show(n_own, 1.0)
                    n_bytes += size
    return Done(n_rows, len(todo), len(sources) - len(todo), again)


def _score_into(
    folder: Path,
    scorer: BatchScorer,
    settings: Settings,
    within: Path,
    table: tuple[Source, Origin],
    advance: Progress = no_progress,
) -> int:
    """Score a table to its output in a folder, and keep its origin; see `score_table`."""
    source, origin = table
    n_rows = score_table(
        scorer,
        source.open(),
        folder / source.name,
        keep=settings.keep,
        n_threads=settings.n_threads,
        batch_rows=settings.batch_rows,
        metadata=as_metadata(origin),
        within=within,
        advance=advance,
    )
    keep_beside(origin, folder / source.name)
    return n_rows


def _is_small(table: tuple[Source, Origin]) -> bool:
    """Whether scoring costs less than opening, syncing and naming files, which can overlap."""
    source, origin = table
    return source.system is None and origin["size"] <= _SMALL_BYTES


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(_SMALL_AT_ONCE, thread_name_prefix="hdiforest-small")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _of_all(advance: Progress, before: int, size: int, total: int) -> Progress:
    """Return what takes the share of one table, and tells that of the bytes of all."""

    def of_table(n_rows: int, share: float | None) -> None:
        advance(n_rows, (before + size * (share or 0)) / total if total else None)

    return of_table
