"""The command `hdiforest` in fresh processes: what it writes and prints of tables on disk."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

import names
from records import Answers

TRAIN = ("--target", "rent", "--id", "key", "--trees", "100", "--jobs", "1")


def run(*arguments: str | Path, cwd: Path) -> str:
    """Run the command; what it prints. RuntimeError with its last line if it fails."""
    command = [sys.executable, "-P", "-m", "hdiforest", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.splitlines() or ["no message"])[-1])
    return done.stdout


def table_in(path: Path) -> Any:
    """Return a CSV or JSON lines as bytes, and other formats as a table."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read()
    return feather.read_table(path) if path.suffix == ".feather" else path.read_bytes()


def score_to(model: Path, table: Path, out: Path, *options: str) -> Any:
    run("score", model, table, "-o", out, "--jobs", "1", *options, cwd=out.parent)
    return table_in(out)


def score_model(answers: Answers, model: Path, rows: Any, folder: Path) -> None:
    """Score rows by a model file, as CSV, as Parquet and as batches."""
    frame = rows if hasattr(rows, "iloc") else pd.DataFrame(rows).add_prefix("x")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", index=False)
    tables = ("rows.csv", "rows.parquet")
    answers.ask("scored/files", lambda: score_all(model, tables, folder / "scored"))
    answers.ask("scored/batch of pandas", lambda: names.batch_scorer(model)(frame))
    batch = pa.Table.from_pandas(frame, preserve_index=False)
    hdi = {"kind": "hdi", "coverage": [0.5, 0.9]}
    answers.ask("scored/batch of arrow", lambda: names.batch_scorer(model, **hdi)(batch))


def score_all(model: Path, tables: Sequence[str], out: Path, *options: str) -> dict[str, Any]:
    """Score several tables at once; what each became."""
    run("score", model, *tables, "-o", out, "--jobs", "1", *options, cwd=out.parent)
    return {table: table_in(out / table) for table in tables}


def write_tables(draw: Callable[[int, int], pd.DataFrame], folder: Path) -> None:
    """Write training rows, others to calibrate on, and new ones in several formats."""
    draw(500, 0).to_csv(folder / "train.csv", index=False)
    draw(300, 2).to_parquet(folder / "other.parquet", index=False)
    new = draw(200, 1)
    new.to_csv(folder / "new.csv", index=False)
    new.to_csv(folder / "new.csv.gz", index=False)
    new.to_parquet(folder / "new.parquet", index=False)
    new.to_feather(folder / "new.feather")
    new.to_json(folder / "new.jsonl", orient="records", lines=True, date_format="iso")
    for part in (0, 1):
        hive = folder / "hive" / f"part={part}"
        hive.mkdir(parents=True)
        new[part::2].to_parquet(hive / "rows.parquet", index=False)


FITS = {
    "oob": ("--training-rows",),
    "cv+": ("--calibrate", "cv+", "--folds", "3", "--groups", "group"),
    "split": ("--calibrate", "split", "--coverage", "0.7", "0.9"),
    "boost": ("--mean", "boosting", "--objective", "interval_score", "--extra-trees"),
    "weights": ("--sample-weight", "weight", "--categorical", "group", "--min-samples-leaf", "2"),
}


def run_all(answers: Answers, draw: Callable[[int, int], pd.DataFrame], folder: Path) -> None:
    """Fit models by the command, score tables of all formats, check and calibrate."""
    write_tables(draw, folder)
    for title, options in FITS.items():
        ask_fit(answers, title, options, folder)
    model = folder / "oob.hdi"
    tables = [f"new.{suffix}" for suffix in ("csv", "csv.gz", "parquet", "feather", "jsonl")]
    answers.ask("scored/all", lambda: score_all(model, tables, folder / "all", "--keep-all"))
    options = ("--kind", "equal_tailed", "--coverage", "0.5", "0.9", "--keep", "rent")
    paths = (folder / "new.parquet", folder / "kind.parquet")
    answers.ask("scored/kind", partial(score_to, model, *paths, *options))
    answers.ask("scored/folder", lambda: score_folder(model, folder))
    ask_calibrate(answers, model, folder)


def ask_fit(answers: Answers, title: str, options: tuple[str, ...], folder: Path) -> None:
    model = folder / f"{title}.hdi"
    answers.ask(
        f"loaded/fit, {title}",
        lambda: bool(run("fit", "train.csv", *TRAIN, *options, "-o", model, cwd=folder)),
    )
    answers.ask(
        f"calibration/{title}",
        lambda: dict(names.calibration_numbers(names.load(model).calibration_)),
    )
    paths = (folder / "new.csv", folder / f"{title}.csv")
    answers.ask(f"scored/fit, {title}", partial(score_to, model, *paths))
    check = ("check", model, "new.parquet", "--target", "rent", "--json")
    answers.ask(f"metrics/check, {title}", lambda: json.loads(run(*check, cwd=folder)))


def score_folder(model: Path, folder: Path) -> Any:
    """Return what a folder of parts is scored to, in the order of its paths."""
    out = folder / "hive-scored"
    run("score", model, "hive", "-o", out, "--jobs", "1", cwd=folder)
    tables = sorted(path for path in out.rglob("*.parquet") if path.is_file())
    return {str(path.relative_to(out)): table_in(path) for path in tables}


def ask_calibrate(answers: Answers, model: Path, folder: Path) -> None:
    """Calibrate a model on other rows, and score by it."""
    again = folder / "again.hdi"
    where = ("calibrate", model, "other.parquet", "--target", "rent", "-o", again)
    answers.ask("loaded/calibrate", lambda: bool(run(*where, cwd=folder)))
    answers.ask(
        "calibration/calibrate",
        lambda: dict(names.calibration_numbers(names.load(again).calibration_)),
    )
    paths = (folder / "new.csv", folder / "again.csv")
    answers.ask("scored/calibrate", partial(score_to, again, *paths))
