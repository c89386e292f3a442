"""The subcommands fit, calibrate and recalibrate: from tables to a calibrated model file."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit

from hdiforest._cli.arguments import (
    UsageError,
    in_options,
    of_usage,
    require_writable,
    written_form,
)
from hdiforest._cli.console import say, stages
from hdiforest._cli.fit_report import Report, write_page
from hdiforest._cli.fit_survival import check_survival, fit_survival
from hdiforest._cli.inputs import inputs_of, read_labelled_tables, read_model
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.censoring import MIN_SAMPLES_LEAF
from hdiforest._tables.row_counts import RowCounts
from hdiforest._tables.training_table import Roles, TrainingTable, read_training_tables
from hdiforest._utils.checks import CallError, count_text, printable, size_text, time_text
from hdiforest._utils.optional import need
from hdiforest.calibration import Calibration, CVPlus, OutOfBag, Split
from hdiforest.calibration._candidates import DEFAULT_COVERAGES
from hdiforest.calibration._method import ignore_infinite_intervals
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.exceptions import InfiniteIntervalsWarning
from hdiforest.monitoring import recalibrate


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
    is_survival = options.event is not None
    if is_survival:
        check_survival(options)
    if options.min_samples_leaf is None:
        options.min_samples_leaf = MIN_SAMPLES_LEAF if is_survival else 5
    table = _training_table(options)
    may_order = not is_survival and options.order is None and options.calibrate == "oob"
    order = "--order {} measures the coverage of later rows" if may_order else ""
    say(f"Columns:\n{table.summary(order)}\n")
    kind = ExtraTreesRegressor if options.extra_trees else RandomForestRegressor
    grown = _given(options, "min_samples_leaf", "max_depth", "max_features", "max_samples")
    grown |= {"bootstrap": True, "random_state": options.seed, "n_jobs": options.jobs}
    forest = kind(options.trees, **grown)  # whose trees leave rows out
    if is_survival:
        with stages():
            survival, told = fit_survival(options, table, forest)
        survival._read_by(table.encoder)
        say(told + _saved(survival, options, **_given(options, "training_rows")))
        return
    how: dict[str, Any] = {"weights": options.weights, "n_jobs": options.jobs}
    model = HDIForestRegressor(forest, calibration=False, **how)
    with stages():
        not_calibrated = _fit_and_calibrate(model, table, options)
    report = Report(model, not_calibrated)
    model._read_by(table.encoder)
    written = _saved(model, options, **_given(options, "training_rows", "diagnostics"))
    if options.report is not None:
        write_page(report, options, table.columns)
        written += f"\nReport written to {printable(options.report)}"
    n_trees, n_leaves = model.scorer_.forest.n_trees, model.scorer_.forest.n_leaves.sum()
    took, n_rows = time_text(time.perf_counter() - start), count_text(model.n_training_rows_)
    say(
        f"{n_trees:,} trees with {count_text(n_leaves)} leaves from {n_rows} rows and "
        f"{model.n_features_in_} features in {took}\n\n{report.text}\n\n{not_calibrated}{written}"
    )


def _saved(model: Any, options: Any, **kept: bool) -> str:
    """Write a model; return what is said of the file."""
    model.save(options.output, **kept)
    size = size_text(options.output.stat().st_size)
    return f"Model written to {printable(options.output)} ({size})"


def _given(options: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}


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
    needs["mean"] = ["oob", "split", "cv+"]
    if options.objective != OutOfBag.objective:
        needs["objective"] = needs["mean"]
    for name, methods in needs.items():
        if getattr(options, name) is not None and method not in methods:
            needed = f"--calibrate {' or '.join(methods)}"
            raise UsageError(f"--{name} needs {needed}, got --calibrate {method}")
    if options.mean is not None and options.weights != "all":
        raise UsageError(f"--mean needs --weights all, got --weights {options.weights}")
    if method == "none" and options.coverage is not None:
        raise UsageError("--coverage must not be given with --calibrate none")


def _training_table(options: Any) -> TrainingTable:
    """Read what the forest is fitted on; UsageError if it lacks what the calibration asks for."""
    named = ("target", "drop", "sample_weight", "groups", "event", "missing")
    roles = Roles(
        **_given(options, *named, "drop_missing_target"),
        ids=options.id,
        categorical=[name for name in options.categorical if name != "auto"],
        written=written_form(options),
    )
    opened = [source.open for source in options.tables.of_missing(options.missing)]
    table = read_training_tables(opened, str(options.tables), roles)
    columns, encoder, order = table.X.column_names, table.encoder, options.order
    for name, column in _given(options, "by", "order").items():
        if column is not None and column not in columns:
            got = f"got {column!r}; they are {', '.join(columns)}"
            raise UsageError(f"--{name} must be a column that the forest is fitted on, {got}")
    if order and encoder and columns.index(order) not in encoder.ordered:
        got = f"{order!r} holds categories"
        raise UsageError(f"--order must be a column of numbers or dates, and {got}")
    return table


def _fit_and_calibrate(model: HDIForestRegressor, table: TrainingTable, options: Any) -> str:
    """Fit and calibrate a model; say in a line why, or at which levels, that could not be done."""
    how = _given(options, "mean", "by")
    how |= {"method": options.calibrate, "random_state": options.seed}
    objective = _given(options, "objective")
    if options.calibrate == "oob":
        how["method"] = OutOfBag(**objective, order=options.order)
    n_rows = n = len(table.y)
    groups, what = np.arange(n), "rows"  # that are not divided
    if table.groups is not None:
        groups, n, what = table.groups, len(np.unique(table.groups)), "groups"
    if options.calibrate == "split":
        if n < 2:
            raise UsageError(f"--calibrate split needs 2 {what} or more, and the table has {n}")
        splitter = GroupShuffleSplit(1, test_size=1 / 5, random_state=options.seed)
        kept, held_out = next(splitter.split(groups, groups=groups))
        table, apart, n_rows = table.rows(kept), table.rows(held_out), len(held_out)
        how |= {"X": apart.X, "y": apart.y, "method": Split(**objective)}
    elif options.calibrate == "cv+":
        n_folds = 10 if options.folds is None else options.folds
        if n_folds > n:
            most = f"at most the number of {what} of {options.tables}, {n:,}"
            raise UsageError(f"--folds must be {most}, got {n_folds:,}")
        how["method"] = CVPlus(n_folds, table.groups, **objective)
    _require_rows(options.coverage, n_rows)
    model.fit(table.X, table.y, sample_weight=table.weights)
    if options.calibrate == "none":
        return ""
    if options.coverage is None:
        return _calibrate_as_far(model, n_rows, how)
    with _words_of_the_command(options):
        model.calibrate(coverage=options.coverage, **how)
    return ""


def _require_rows(coverages: Any, n_rows: int, confidence: float | None = None) -> None:
    """Raise UsageError if so many calibration rows are too few for a coverage of --coverage."""
    for coverage in coverages or ():
        needed = rows_needed(coverage, confidence=confidence)
        if n_rows < needed:
            rows = f"{needed:,} calibration rows, and there are {n_rows:,}"
            raise UsageError(f"--coverage {coverage:g} needs {rows}")


def _calibrate_as_far(model: HDIForestRegressor, n_rows: int, how: dict[str, Any]) -> str:
    """Calibrate at the `DEFAULT_COVERAGES` that rows allow; returns as `_fit_and_calibrate`."""
    usual = [coverage for coverage in DEFAULT_COVERAGES if rows_needed(coverage) <= n_rows]
    try:
        with ignore_infinite_intervals():
            calibration = model.calibrate(coverage=usual, **how).calibration_
            finite = calibration.finite_coverages or usual[:1]
            if len(finite) < len(usual):
                model.calibrate(coverage=finite, **how)
    except ValueError as error:
        if not isinstance(how["method"], OutOfBag):
            raise
        return f"Not calibrated: {in_options(error)}\n"
    calibrated = model.calibration_.coverages
    left_out = ", ".join(f"{level:g}" for level in DEFAULT_COVERAGES if level not in calibrated)
    note = f"Not calibrated at {left_out}: {calibration.n} calibration rows are too few\n"
    return note if left_out else ""


@contextmanager
def _words_of_the_command(options: Any) -> Iterator[None]:
    """Say in options what a calibration refuses of them, and refuse infinite intervals."""
    with warnings.catch_warnings(), of_usage(CallError, options.tables):
        warnings.simplefilter("error", InfiniteIntervalsWarning)
        yield


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
    method = Split(options.confidence, options.objective)
    how = _given(options, "mean") | {"method": method}
    with _words_of_the_command(options), stages():
        model.calibrate(X, y, coverage=options.coverage or usual, random_state=0, **how)
    _write(model, options, counts)


def run_recalibrate(options: Any) -> None:
    """Move the quantiles of a model of one target by a table in its order, and write it."""
    _prepare_outputs(options)
    model = read_model(options)
    if model._fitted_forest().calibration is None:
        raise ValueError(f"{options.model} has no calibration; 'hdiforest calibrate' makes one")
    X, y, counts, _ = read_labelled_tables(model, options)
    with _words_of_the_command(options):
        recalibrate(model, X, y, **_given(options, "method", "window", "rate"))
    calibration = cast("Calibration", model.calibration_)
    step = calibration.history[-1]
    pairs = zip(calibration.coverages, step.coverage, strict=True)
    covered = ", ".join(f"{share:.3f} at {level:g}" for level, share in pairs)
    note = f"Covered of {step.n:,} rows, each before it was taken in: {covered}\n"
    _write(model, options, counts, note)


def _write(model: HDIForestRegressor, options: Any, counts: RowCounts, note: str = "") -> None:
    """Write a model with the rows that it has, and say what its calibration is."""
    has_rows = model._fitted_forest().training_rows is not None
    written = _saved(model, options, training_rows=has_rows)
    say(f"{model.calibration_!r}\n\n{note}{written}\n{counts}".rstrip())
