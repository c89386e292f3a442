"""The subcommands fit and calibrate: from tables to a calibrated model file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit

from hdiforest._cli.arguments import UsageError, in_options, require_writable, written_form
from hdiforest._cli.console import say, stages
from hdiforest._cli.fit_report import Report, write_page
from hdiforest._cli.inputs import Inputs, inputs_of, read_labelled_tables, read_model
from hdiforest._estimators.hdi_forest import HDIForestRegressor, attach_encoder, calibrate_as_far
from hdiforest._tables.row_counts import RowCounts
from hdiforest._tables.training_table import Roles, TrainingTable, read_training_tables
from hdiforest._utils.checks import CallError, count_text, printable, size_text, time_text
from hdiforest._utils.optional import need
from hdiforest.calibration import Calibration, CVPlus, Split
from hdiforest.calibration._bases import DEFAULT_COVERAGES
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.exceptions import InfiniteIntervalsWarning


def run_fit(options: Any) -> None:
    """Fit a model to a table, calibrate it, and write what the arguments ask for."""
    start = time.perf_counter()
    need("safetensors")
    if options.report is not None:
        need("matplotlib.figure")
        if os.path.realpath(options.report) == os.path.realpath(options.output):
            raise UsageError(f"the report {options.report} must not be the model file")
    _prepare_outputs(options, options.report)
    _check_calibration(options)
    named = ("target", "drop", "sample_weight", "groups", "missing", "drop_missing_target")
    roles = {name: getattr(options, name) for name in named}
    roles |= {"ids": options.id, "categorical": [c for c in options.categorical if c != "auto"]}
    roles["written"] = written_form(options)
    opened = [source.open for source in options.tables.of_missing(options.missing)]
    table = read_training_tables(opened, str(options.tables), Roles(**roles))
    is_ordered = options.order is not None or options.calibrate != "oob"
    columns = table.told("" if is_ordered else "--order {} measures the coverage of later rows")
    say(f"Columns:\n{columns}\n")
    kind = ExtraTreesRegressor if options.extra_trees else RandomForestRegressor
    same = ("min_samples_leaf", "max_depth", "max_features", "max_samples")
    grown = {name: getattr(options, name) for name in same}
    grown |= {"bootstrap": True, "random_state": options.seed, "n_jobs": options.jobs}
    forest = kind(options.trees, **grown)  # whose trees leave rows out
    how: dict[str, Any] = {"weights": options.weights, "n_jobs": options.jobs}
    model = HDIForestRegressor(forest, calibration=False, **how)
    with stages():
        not_calibrated = _fit_and_calibrate(model, table, options)
    report = Report(model, not_calibrated)
    attach_encoder(model, table.encoder)
    model.save(options.output, training_rows=options.training_rows, diagnostics=options.diagnostics)
    size = size_text(options.output.stat().st_size)
    written = f"Model written to {printable(options.output)} ({size})"
    if options.report is not None:
        write_page(report, options, table.columns)
        written += f"\nReport written to {printable(options.report)}"
    n_trees, n_leaves = model.scorer_.forest.n_trees, model.scorer_.forest.n_leaves.sum()
    took, n_rows = time_text(time.perf_counter() - start), count_text(model.n_training_rows_)
    say(
        f"{n_trees:,} trees with {count_text(n_leaves)} leaves from {n_rows} rows and "
        f"{model.n_features_in_} features in {took}\n\n{report.text()}\n\n{not_calibrated}{written}"
    )


def _prepare_outputs(options: Any, report: Path | None = None) -> None:
    """Find the input tables, and refuse what cannot be written; the output may be the model."""
    options.tables = inputs_of(options.tables, options)
    options.output = options.output or options.model
    for output in filter(None, (options.output, report)):
        require_writable(output, *options.tables.files)


def _check_calibration(options: Any) -> None:
    """Raise UsageError if options of the calibration do not go together."""
    method = options.calibrate
    needs = {"groups": ["cv+", "split"], "folds": ["cv+"], "by": ["oob", "split"], "order": ["oob"]}
    for name, methods in needs.items():
        if getattr(options, name) is not None and method not in methods:
            needed = f"--calibrate {' or '.join(methods)}"
            raise UsageError(f"--{name} needs {needed}, got --calibrate {method}")
    if options.mean is not None and options.weights != "all":
        raise UsageError(f"--mean needs --weights all, got --weights {options.weights}")
    for name, unset in {"coverage": None, "mean": None, "objective": "balanced"}.items():
        if method == "none" and getattr(options, name) != unset:
            raise UsageError(f"--{name} must not be given with --calibrate none")


def _fit_and_calibrate(model: HDIForestRegressor, table: TrainingTable, options: Any) -> str:
    """Fit and calibrate a model; say in a line why, or at which levels, that could not be done."""
    how = {name: getattr(options, name) for name in ("objective", "mean", "by", "order")}
    how |= {"method": options.calibrate, "random_state": options.seed}
    columns = table.X.column_names
    for name in ("by", "order"):
        if how[name] is not None and how[name] not in columns:
            got = f"got {how[name]!r}; they are {', '.join(columns)}"
            raise UsageError(f"--{name} must be a column that the forest is fitted on, {got}")
    order, encoder = options.order, table.encoder
    if order and encoder and columns.index(order) not in encoder.ordered:
        got = f"{order!r} holds categories"
        raise UsageError(f"--order must be a column of numbers or dates, and {got}")
    fitted_on, n_rows = table, len(table.y)
    if options.calibrate == "split":
        kept, held_out = _held_out_rows(table, options.seed)
        fitted_on, apart, n_rows = table.rows(kept), table.rows(held_out), len(held_out)
        how |= {"X": apart.X, "y": apart.y}
    elif options.calibrate == "cv+":
        n_folds, (n, what) = 10 if options.folds is None else options.folds, _units(table)
        if n_folds > n:
            most = f"at most the number of {what} of {options.tables}, {n:,}"
            raise UsageError(f"--folds must be {most}, got {n_folds:,}")
        how["method"] = CVPlus(n_folds, table.groups)
    _require_rows(options.coverage, n_rows)
    model.fit(fitted_on.X, fitted_on.y, sample_weight=fitted_on.weights)
    if options.calibrate == "none":
        return ""
    if options.coverage is None:
        return _calibrate_as_far(model, n_rows, how)
    with _words_of_the_command(options.tables, asked=True):
        model.calibrate(coverage=options.coverage, **how)
    return ""


def _units(table: TrainingTable) -> tuple[int, str]:
    """Return the number of what is not divided, and its name."""
    if table.groups is None:
        return len(table.y), "rows"
    return len(np.unique(table.groups)), "groups"


def _held_out_rows(table: TrainingTable, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return four fifths of the rows to fit on, and the others; groups are not divided."""
    n, what = _units(table)
    if n < 2:
        raise UsageError(f"--calibrate split needs two {what} or more, and the table has {n}")
    groups = np.arange(n) if table.groups is None else table.groups
    splitter = GroupShuffleSplit(1, test_size=1 / 5, random_state=seed)
    kept, held_out = next(splitter.split(table.y, groups=groups))
    return kept, held_out


def _require_rows(coverages: Any, n_rows: int, confidence: float | None = None) -> None:
    """Raise UsageError if so many calibration rows are too few for a coverage of --coverage."""
    for coverage in coverages or ():
        needed = rows_needed(coverage, confidence=confidence)
        if n_rows < needed:
            rows = f"{needed:,} calibration rows, and there are {n_rows:,}"
            raise UsageError(f"--coverage {coverage:g} needs {rows}")


def _calibrate_as_far(model: HDIForestRegressor, n_rows: int, how: dict[str, Any]) -> str:
    """Calibrate at the `DEFAULT_COVERAGES` that rows allow; returns as `_fit_and_calibrate`."""
    usual, method = [c for c in DEFAULT_COVERAGES if rows_needed(c) <= n_rows], how["method"]
    try:
        if isinstance(method, CVPlus):
            model.calibrate(coverage=usual, **how)
        else:
            n_rows = calibrate_as_far(model, coverage=usual, **how)
    except ValueError as error:
        if method != "oob":
            raise
        return f"Not calibrated: {in_options(error)}\n"
    calibration = model._fitted_forest().calibration
    known = () if calibration is None else calibration.coverages
    if not known and method != "oob":
        raise ValueError(f"{n_rows:,} calibration rows are too few for every coverage")
    left_out = ", ".join(f"{level:g}" for level in DEFAULT_COVERAGES if level not in known)
    told = f"Not calibrated at {left_out}: {n_rows} calibration rows are too few\n"
    return told if left_out else ""


@contextmanager
def _words_of_the_command(table: Inputs, *, asked: bool) -> Iterator[None]:
    """Say in options what `calibrate` refuses, and refuse intervals that would be infinite.

    It is a UsageError if an option or the table is at fault, such as rows of the fit, or coverages
    that were `asked` for.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", InfiniteIntervalsWarning)
        try:
            yield
        except InfiniteIntervalsWarning as warning:
            raise (UsageError if asked else ValueError)(str(warning)) from None
        except CallError as error:
            raise UsageError(in_options(error, table)) from None


def run_calibrate(options: Any) -> None:
    """Calibrate a model of one target on a table, and write it."""
    _prepare_outputs(options)
    model = read_model(options)
    fitted = model._fitted_forest()
    if fitted.training_rows is None:
        raise ValueError(
            f"{options.model} must hold the training rows to be calibrated; fit it again with "
            "--training-rows"
        )
    X, y, counts, _ = read_labelled_tables(model, options)
    _require_rows(options.coverage, len(y), options.confidence)
    usual = DEFAULT_COVERAGES if fitted.calibration is None else fitted.calibration.coverages
    how: dict[str, Any] = {"objective": options.objective, "mean": options.mean, "random_state": 0}
    how |= {"coverage": options.coverage or usual, "method": Split(options.confidence)}
    with _words_of_the_command(options.tables, asked=options.coverage is not None), stages():
        model.calibrate(X, y, **how)
    _write(model, options, counts)


def run_recalibrate(options: Any) -> None:
    """Move the quantiles of a model of one target by a table in its order, and write it."""
    _prepare_outputs(options)
    model = read_model(options)
    if model._fitted_forest().calibration is None:
        raise ValueError(f"{options.model} has no calibration; 'hdiforest calibrate' makes one")
    X, y, counts, _ = read_labelled_tables(model, options)
    with _words_of_the_command(options.tables, asked=True):
        model.recalibrate(X, y, method=options.method, window=options.window, rate=options.rate)
    calibration = cast("Calibration", model.calibration_)
    step = calibration.history[-1]
    pairs = zip(calibration.coverages, step.coverage, strict=True)
    covered = ", ".join(f"{share:.3f} at {level:g}" for level, share in pairs)
    told = f"Covered of {step.n:,} rows, each before it was taken in: {covered}\n"
    _write(model, options, counts, told)


def _write(model: HDIForestRegressor, options: Any, counts: RowCounts, told: str = "") -> None:
    """Write a model with the rows that it has, and say what its calibration is."""
    has_rows = model._fitted_forest().training_rows is not None
    model.save(options.output, training_rows=has_rows)
    written = f"Model written to {printable(options.output)}"
    say(f"{model.calibration_!r}\n\n{told}{written}\n{counts}".rstrip())
