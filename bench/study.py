"""What the benchmarks share: options, results that are kept and resumed, units of work, tables.

Results are JSON-lines files of one result a line, sorted by name and seed:
{"name": ..., "seed": ..., "result": ...}. They stay out of the repository; `archive.py` packs them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
from filelock import FileLock
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hdiforest._utils.files import replacing

HOW_TO_GET = (
    "The archive of a release holds what this version was measured with: "
    "python bench/archive.py unpack, or with --data FILE"
)
Key = tuple[str, int]  # name, and seed of the split


class NotHereError(Exception):
    """Says in one sentence which rows or results are not in the tree."""


def _in_one_sentence(kind: Any, error: BaseException, trace: Any) -> None:
    if isinstance(error, NotHereError):
        print(f"{Path(sys.argv[0]).name}: {error} {HOW_TO_GET}.", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _in_one_sentence


def parser(about: str, folder: Path | None = None) -> argparse.ArgumentParser:
    """Return a parser with the first line of `about`, `--quick` and, with a folder, `--results`."""
    made = argparse.ArgumentParser(description=about.splitlines()[0])
    made.add_argument("--quick", action="store_true", help="a small run, on the data of the tree")
    if folder is not None:
        made.add_argument("--results", type=Path, default=folder, help="folder for the results")
    return made


def chosen(
    asked: argparse.ArgumentParser, names: dict[str, Any], **quick: Any
) -> argparse.Namespace:
    """Read the command line; with `--quick` constants of the script get the values given here.

    Parameters
    ----------
    asked : ArgumentParser
        Made by `parser`.
    names : dict
        The script's `globals()`. Its `FOLDER`, if it has one, becomes the folder for the results.
    **quick : Any
        Constants of a small run.
    """
    options = asked.parse_args()
    if options.quick:
        os.environ["HDICORE_SMALL_DATA"] = "1"  # of processes that are started later, too
        names.update(quick)
    if "results" in options:
        if options.quick and options.results == asked.get_default("results"):
            script = Path(names["__file__"])
            options.results = script.parent / "results" / "quick" / script.stem
        names["FOLDER"] = options.results
        say_if_empty(options.results)
    return options


def say_if_empty(folder: Path) -> None:
    """Say that results behind tables that are there are not."""
    if folder.exists() and any(folder.rglob("*.md")) and not any(folder.rglob("*.jsonl")):
        print(f"{folder} has tables without results; all is measured anew. {HOW_TO_GET}.")


def path_of(folder: Path, name: str) -> Path:
    """Return the file of one data set, or of one question."""
    return folder / f"{name}.jsonl"


def read(path: Path) -> dict[Key, Any]:
    """Return the results of a file by name and seed; none if there is no file.

    Raises
    ------
    ValueError
        If a line is not a result.
    """
    results = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            results[entry["name"], entry["seed"]] = entry["result"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"line {number} of {path} was expected to be a JSON object with name, seed and "
                f"result, but is {line[:80]!r}"
            ) from None
    return results


def add(path: Path, results: Mapping[Key, Any]) -> None:
    """Add results to a file, or replace those of the same name and seed: all of them or none.

    Processes that add to one file wait for each other. The file is replaced as a whole, so that a
    process that is killed leaves it as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        merged = read(path) | dict(results)
        lines = [
            json.dumps({"name": name, "seed": seed, "result": merged[name, seed]}) + "\n"
            for name, seed in sorted(merged)
        ]
        with replacing(path) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8", newline="\n")


def keep(path: Path, key: Key, measured: Callable[[], Any], version: object = None) -> None:
    """Add what is measured to a file, unless it is there, of the same version if there are any."""
    found = read(path).get(key)
    if found is None or (version is not None and found["version"] != version):
        result = measured()
        add(path, {key: result if version is None else {"version": version, **result}})
        print(f"{path.stem}: {key[0]}, {key[1]}", flush=True)


def by_split(
    names: dict[str, Any],
    folder: Path,
    measure: Callable[[str, int], Mapping[Key, Any]],
    table: Callable[[Path], str],
    quick: Any,
    n_splits: int | None = None,
) -> None:
    """Measure the splits that the command line asks for and that have no result, then the table.

    Parameters
    ----------
    names : dict
        The script's `globals()`, with its `SCALE`: data sets, number of splits.
    folder : Path
        Where the results go, a file for each data set.
    measure : callable
        From a data set and a split to results.
    table : callable
        From a folder to the text of its tables.
    quick : Scale
        Of a small run.
    n_splits : int, optional
        If it is not that of the scale.
    """
    asked = parser(names["__doc__"], folder)
    asked.add_argument("--sets", nargs="+", choices=names["SCALE"].sets)
    asked.add_argument("--splits", type=int, default=n_splits)
    asked.add_argument("--tables", action="store_true", help="measure nothing")
    options = chosen(asked, names, SCALE=quick)
    scale = names["SCALE"]
    seeds = range(0 if options.tables else options.splits or scale.n_splits)
    for seed, name in product(seeds, options.sets or scale.sets):
        path = path_of(options.results, name)
        if not any(seed == done for _, done in read(path)):
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of coverages that few rows do not allow
                add(path, measure(name, seed))
            print(name, seed, flush=True)
    report = options.results / "tables.md"
    report.write_text(table(options.results), encoding="utf-8", newline="\n")
    print(f"tables: {report}")


class Unit(Protocol):
    """A piece of work that is done or not; `str` names it."""

    def work(self) -> None:
        """Measure, and add the results to their file."""


def run(units: Sequence[Unit], n_jobs: int | None) -> list[str]:
    """Work in processes of one thread each; say how each unit went, and return those that failed.

    The others are worth their time whatever happens to one.
    """
    failures = []
    attempts = (delayed(_attempt)(unit) for unit in units)
    done = Parallel(n_jobs, return_as="generator_unordered")(attempts)
    for number, (name, seconds, failure) in enumerate(done, 1):
        print(f"{number}/{len(units)}: {name}: {seconds:.1f} s", flush=True)
        if failure:
            failures.append(name)
            print(f"{name} failed:\n{failure}", file=sys.stderr)
    return failures


def _attempt(unit: Unit) -> tuple[str, float, str]:
    start = time.perf_counter()
    failure = ""
    logging.disable(logging.INFO)
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            unit.work()
    except NotHereError:
        raise
    except Exception:
        failure = traceback.format_exc()
    return str(unit), time.perf_counter() - start, failure


def end(failures: Sequence[str], n_units: int) -> None:
    """Leave with the names of what failed, if anything did."""
    if failures:
        sys.exit(f"{len(failures)} of {n_units} units failed: {'; '.join(failures)}")


def markdown(rows: pd.DataFrame | Iterable[Mapping[str, Any]], digits: str | None = None) -> str:
    """Return a table in Markdown, with cells as they are, or numbers in digits such as ".2f"."""
    table = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    if digits is None:
        return table.to_markdown(index=False, disable_numparse=True)
    return table.to_markdown(index=False, floatfmt=digits)


def write_tables(path: Path, sections: Mapping[str, str], introduction: str = "") -> Path:
    """Write sections with headings of the second level, those that have a text."""
    parts = [f"## {title}\n\n{body}" for title, body in sections.items() if body]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join([introduction, *parts] if introduction else parts)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
    print(f"tables: {path}")
    return path


def save_picture(figure: Any, path: Path, dpi: int) -> None:
    """Save a figure as a PNG of at most 256 colours, a third of the size of one with all."""
    from PIL import Image

    figure.savefig(path, dpi=dpi)
    with Image.open(path) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def write_run(path: Path, about: Mapping[str, Any], text: str) -> None:
    """Write the page of a run that is measured as a whole, and beside it all its figures."""
    add(path.with_suffix(".jsonl"), {(path.stem, 0): about})
    path.write_text(text, encoding="utf-8", newline="\n")
