"""The subcommand score: predicts for many tables, checked before, resumed after."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from hdiforest._cli.arguments import kind_and_levels, of_usage, require_writable
from hdiforest._cli.console import Progress, progress, say
from hdiforest._cli.inputs import Inputs, Keep, Settings, Source, features_of, inputs_of
from hdiforest._cli.score_table import score_table
from hdiforest._tables.formats import ending
from hdiforest._tables.names import listed
from hdiforest._tables.read import TableError, TableReader, refuse
from hdiforest._utils.checks import count_text, printable, thread_count, time_text
from hdiforest._utils.files import folder_beside, is_standard_output
from hdiforest._utils.optional import need
from hdiforest.serving._batch_scorer import BatchScorer
from hdiforest.serving._model_file import open_model

Origin = dict[str, Any]  # what an output depends on, as JSON's types

KEY = b"hdiforest"  # of origins in metadata
_SIZE = "size of the input"
_ROWS_FOR_A_RATE = 5000  # of fewer the time is that of the start
_FIRST_ROWS = 4096  # that are read before anything is scored
_SMALL_BYTES = 1 << 16
_PREFIX = "hdiforest_"  # of results whose names are taken
_SMALL_AT_ONCE = 4


def origin_of(source: Source, scorer: BatchScorer, keep: Keep) -> Origin:
    """Return what the output for a source depends on, each by a word for it."""
    size, changed = source.size_and_time()
    return {
        "model": scorer.digest,
        "--kind": scorer.kind,
        "--coverage": scorer.coverage,
        "--diagnose": scorer.diagnose,
        "--prefix": scorer.prefix,
        "--keep": keep,
        "input": str(source.path if source.system else source.path.resolve()),
        _SIZE: size,
        "time of the input": changed,
        "names of folders": source.keys,
        "form of text": asdict(source.form),
    }


def why_again(origin: Origin, out: Path) -> str | None:
    """Say why an output must be made again: None if it is there and equal, empty if missing."""
    if not out.exists():
        return ""
    try:
        record = _origin_in(out)
    except (OSError, KeyError, RecursionError, TypeError, ValueError):  # as ArrowInvalid is
        return "what it was made from is not known"
    others = (name for name, value in origin.items() if record.get(name) != value)
    return next((f"another {name}" for name in others), None)


def _origin_in(out: Path) -> Origin:
    """Return what an output was made from, or raise one of several errors if that is not known."""
    if _is_parquet(out):
        return dict(json.loads(need("pyarrow.parquet").read_schema(out).metadata[KEY]))
    record = json.loads(_beside(out).read_bytes())
    if record["output"] != _identity(out):
        raise ValueError("the output was replaced")
    return dict(record["origin"])


def _json(record: Any) -> bytes:
    return json.dumps(record, sort_keys=True).encode()


def _identity(out: Path) -> list[int]:
    status = out.stat()
    return [status.st_size, status.st_mtime_ns]


def _beside(out: Path) -> Path:
    return out.with_name(f".{out.name}.hdiforest.json")


def _is_parquet(out: Path) -> bool:
    return ending(out) == ".parquet"


def require_folder(inputs: Inputs, folder: Path) -> None:
    """Raise ValueError for a folder that is a file, or whose outputs would replace other files."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"several tables need a folder as output, and {folder} is a file")
    output = folder.resolve()
    for given in inputs.folders:
        if output.is_relative_to(given.resolve()):
            raise ValueError(f"the output {folder} must not lie in the input {given}")
    read, made = {path.resolve() for path in inputs.files}, dict[Path, Path]()
    for source in inputs.sources:
        out, other = folder / source.name, made.setdefault(source.name, source.path)
        if output / source.name in read:
            raise ValueError(f"the output {out} must not be one of the inputs")
        if other != source.path:
            raise ValueError(f"{other} and {source.path} would both be written to {out}")


def require_readable(scorer: BatchScorer, sources: Sequence[Source], keep: Keep) -> None:
    """Raise one TableError for all tables whose header, or first rows of text, are refused."""
    faults = []
    for source in sources:
        try:
            with source.open() as table:
                features = features_of(scorer, table, keep)
                if table.is_text:
                    with warnings.catch_warnings(), features.naming_the_file():
                        warnings.simplefilter("ignore")  # scoring warns of the same
                        for batch in islice(features.batches(_FIRST_ROWS), 1):
                            scorer.model.fitted.encode(features.raw(batch), features.encoder)
        except TableError as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"cannot read {source.path}: {error.strerror or error}")
    refuse(faults, f"{len(faults)} of {len(sources)} tables cannot be scored")


def score_dataset(
    scorer: BatchScorer,
    sources: Sequence[Source],
    folder: Path,
    settings: Settings,
    advance: Progress,
) -> tuple[int, int, list[str]]:
    """Score each source to a table of its own name in a folder, which is made if need be.

    Returns numbers of rows and tables that were scored, and lines that say which were not, or why.
    `advance` is called with a number of rows, and the share of all bytes that is done. TableError
    for all tables whose header or first rows say that they cannot be scored, before anything is
    scored; or for the first one that turns out not to be readable. OSError if an output cannot be
    written. Outputs that are finished stay.
    """
    todo, again = [], []
    for source in sources:
        origin = origin_of(source, scorer, settings.keep)
        why = why_again(origin, folder / source.name) if settings.resume else ""
        if why:
            again.append(f"{printable(source.name)}: {why}")
        if why is not None:
            todo.append((source, origin))
    require_readable(scorer, [source for source, _ in todo], settings.keep)
    n_rows = n_bytes = 0
    total = sum(origin[_SIZE] for _, origin in todo)

    def score_into(within: Path, table: tuple[Source, Origin]) -> int:
        source, origin = table

        def show(n_scored: int, share: float | None) -> None:
            advance(n_scored, (n_bytes + origin[_SIZE] * (share or 0)) / max(1, total))

        out, metadata = folder / source.name, {KEY: _json(origin)}
        how: dict[str, Any] = {"metadata": metadata, "within": within, "advance": show}
        n_scored = score_table(scorer, source.open(), out, settings, **how)
        if not _is_parquet(out):
            # In place and not synced: if it is cut or lost, the output is made again.
            _beside(out).write_bytes(_json({"origin": origin, "output": _identity(out)}))
        return n_scored

    def place(table: tuple[Source, Origin]) -> tuple[Path, bool]:
        source, origin = table
        is_small = source.system is None and origin[_SIZE] <= _SMALL_BYTES
        return (folder / source.name).parent, is_small

    for (parent, is_small), group in groupby(todo, place):
        parent.mkdir(parents=True, exist_ok=True)
        outputs, tables = Path(os.path.realpath(parent), "outputs"), list(group)
        with folder_beside(outputs) as within, ExitStack() as ends:
            # Scoring a small one costs less than opening, syncing and naming files: they overlap.
            pool = ThreadPoolExecutor(_SMALL_AT_ONCE, thread_name_prefix="hdiforest-small")
            ends.callback(pool.shutdown, cancel_futures=True)
            results = (pool.map if is_small else map)(partial(score_into, within), tables)
            for (_, origin), n_scored in zip(tables, results, strict=True):
                n_rows, n_bytes = n_rows + n_scored, n_bytes + origin[_SIZE]
    n_there = len(sources) - len(todo)
    notes = [f"{n_there:,} outputs were there and stay as they are"] if n_there else []
    notes += [f"Scored again: {listed(again)}"] if again else []
    return n_rows, len(todo), notes


def run_score(options: Any) -> None:
    """Score tables as the arguments say, and say how many."""
    n_threads = thread_count(options.jobs)
    inputs = _inputs(options)
    # One model for the whole run, whatever becomes of its file; all of it is read to be checked.
    # It is held, so that the scorer gets the same.
    model = open_model(str(options.model), mapped=False, trusted=options.trust)
    kind, levels = kind_and_levels(model.fitted, options)
    if options.diagnose and not model.fitted.has_reference:
        raise ValueError(
            f"--diagnose needs training rows, and {options.model} was saved without any; fit it "
            "again with --diagnostics"
        )
    how = {"kind": kind, "mapped": False, "diagnose": options.diagnose, "prefix": options.prefix}
    scorer = BatchScorer(options.model, levels, **how)
    keep: Keep = "all" if options.keep_all else options.keep
    settings = Settings(keep, n_threads, options.batch_rows, options.resume)
    start, tables, notes = time.perf_counter(), "", list[str]()
    sources = inputs.of_missing(model.fitted.missing_words)
    table = sources[0].open() if inputs.is_one_file else None
    if not options.prefix and (name := _taken(scorer, keep, table, sources[0])):
        scorer.prefix = _PREFIX
        why = f"because {name!r} is a column that is kept"
        notes.append(f"The names of the results begin with {_PREFIX}, {why} (see --prefix)")
    with progress() as advance:
        if table is not None:
            n_rows = score_table(scorer, table, options.output, settings, advance=advance)
        else:
            sources = sources[options.part or slice(None)]
            n_rows, n, more = score_dataset(scorer, sources, options.output, settings, advance)
            notes += more
            tables = f" of {n:,} tables"
    seconds = time.perf_counter() - start
    rate = f" ({n_rows / seconds:,.0f} rows/s)" if n_rows >= _ROWS_FOR_A_RATE else ""
    what = f"{count_text(n_rows)} rows{tables} scored in {time_text(seconds)}{rate}"
    done = f"{what}, written to {printable(options.output)}"
    shown = "\n".join(filter(None, [done, *notes, str(scorer.counts)]))
    say(shown, sys.stderr if is_standard_output(options.output) else None)


def _taken(scorer: BatchScorer, keep: Keep, table: TableReader | None, first: Source) -> str | None:
    """Return the first column to keep that has the name of a result; of all, those of one table."""
    names: Sequence[str] = keep or scorer.model.fitted.id_columns
    if keep == "all":
        names = []
        with suppress(OSError, TableError), nullcontext(table) if table else first.open() as opened:
            names = opened.names
    return next((name for name in names if name in scorer.results), None)


def _inputs(options: Any) -> Inputs:
    """Return what is to be scored, if the arguments go together."""
    with of_usage():
        if ":/" in str(options.output):  # Path has one slash of two
            raise ValueError(f"the output must be a file or folder here, got {options.output}")
        if options.keep_all and options.keep:
            raise ValueError("--keep-all must not be given with --keep")
        inputs = inputs_of(options.tables, options)
        if inputs.is_one_file:
            ending(options.output)
            if options.resume or options.part is not None:
                raise ValueError("--resume and --part need a folder or several tables to score")
            require_writable(options.output, *inputs.files, options.model)
        else:
            require_folder(inputs, options.output)
    return inputs
