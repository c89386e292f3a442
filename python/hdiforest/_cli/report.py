"""The subcommands check and inspect: how a model's intervals do, and what its file holds."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest import metrics
from hdiforest._cli.arguments import UsageError, kind_and_levels, written_form
from hdiforest._cli.console import facts_of, say, thirds
from hdiforest._cli.inputs import inputs_of, read_labelled_tables, read_model
from hdiforest._tables.columns import is_text, plain
from hdiforest._tables.encoder import TableEncoder
from hdiforest._tables.forms import ISO_DATE, ColumnError, Form, NumberForm, form_of
from hdiforest._utils import Array
from hdiforest._utils.checks import aligned, count_text, printable, significant, size_text
from hdiforest._utils.optional import pc
from hdiforest.calibration._result import USUAL_COVERAGE
from hdiforest.displays._coverage import THIRDS
from hdiforest.exceptions import NewGroupsWarning
from hdiforest.inspection import diagnose
from hdiforest.serving import _model_file as model_file

_N_PERIODS = 10
_MAX_GROUPS = 30  # in a text
_MISSING = "(missing)"

Groups = tuple[list[str], NDArray[np.intp]]  # their names, and which of them each row is of


def run_check(options: Any) -> None:
    """Measure the intervals of a model of one target on a table, and print what was found.

    ValueError if no row has an interval. As JSON it is an object of all rows by level, and of
    groups of rows at the level next to 0.9; what is not finite is null.
    """
    options.tables = inputs_of(options.tables, options)
    model = read_model(options)
    fitted = model._fitted_forest()
    kind, levels = kind_and_levels(fitted, options)
    if options.coverage is None and kind == "calibrated":
        levels = list(model.calibration_.coverages)
    for name, _ in options.date_format:
        if name != options.order:
            raise UsageError(f"--date-format must be of the column of --order, got {name!r}")
    names = list(dict.fromkeys(name for name in (options.order, options.by) if name is not None))
    X, y, counts, kept = read_labelled_tables(model, options, names)
    columns = {name: plain(kept[name].combine_chunks()) for name in names}
    groups, sorted_as = list[tuple[str, Groups]](), None
    if options.order is not None:
        periods, sorted_as = _periods(columns[options.order], fitted.encoder, options)
        groups.append((options.order, periods))
    if options.by is not None:
        groups.append((options.by, _groups(columns[options.by])))
    if fitted.has_reference:
        made = fitted.calibration
        level = levels[0] if made is None else made.coverages[0]  # no flag depends on it
        flag = diagnose(model, X, level)["flag"]
        groups.append(("flag", (["unlike the training rows", "others"], np.where(flag, 0, 1))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NewGroupsWarning)  # counts tell it
        intervals = model.predict_interval(X, levels, kind=kind)
    has_interval = ~np.isnan(intervals).any(axis=(1, 2))
    if not has_interval.any():
        raise ValueError(f"none of {len(y)} rows has an interval: all leaves of each are empty")
    usual = int(np.argmin(np.abs(np.array(levels) - USUAL_COVERAGE)))
    y, intervals = y[has_interval], intervals[has_interval]
    groupings = [
        _grouping(column, names, of_row[has_interval], y, intervals[..., usual], levels[usual])
        for column, (names, of_row) in groups
    ]
    report = {
        "kind": kind,
        "rows": len(y),
        "rows_without_interval": int((~has_interval).sum()),
        "levels": [_of_level(y, intervals[..., j], level) for j, level in enumerate(levels)],
        "missing_cells": {name: n for name, n in counts.missing.items() if n > 0},
        "unknown_categories": {name: n for name, n in counts.unseen.items() if n > 0},
        "out_of_range": dict(counts.out_of_range),
        "rows_out_of_range": counts.n_rows_out_of_range,
        "rows_without_values": counts.n_rows_without_values,
        "rows_of_new_groups": counts.n_rows_of_new_groups,
        "groupings": groupings,
        "periods_sorted_as": sorted_as,
    }
    text = f"{_check_text(report)}\n{counts}".rstrip()
    say(json.dumps(report, indent=2, allow_nan=False) if options.json else text)


def _of_level(y: Array, ends: Array, level: float) -> dict[str, Any]:
    share = float(metrics.coverage_score(y, ends))
    return {
        "nominal": level,
        "coverage": share,
        "standard_error": math.sqrt(share * (1 - share) / len(y)),  # binomial
        "mean_width": _finite(metrics.mean_width_score(ends)),
        "interval_score": _finite(metrics.interval_score(y, ends, level)),
        # Narrow, middle, wide: thirds of the intervals that are wider than zero.
        "coverage_by_width": list(map(_finite, metrics.coverage_by_width(y, ends, 3).coverage[1:])),
    }


def _grouping(
    column: str, names: list[str], of_row: NDArray[np.intp], y: Array, ends: Array, level: float
) -> dict[str, Any]:
    """Return what is told of groups of rows."""
    by_group = metrics.coverage_by_group(y, ends, of_row, level)
    table = {
        "name": [names[group] for group in by_group.groups],
        "rows": by_group.counts.tolist(),
        "coverage": by_group.coverage.tolist(),
        "chance": by_group.chance.T.tolist(),
        "mean_width": map(_finite, by_group.mean_width),
    }
    groups = [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]
    return {"column": column, "nominal": level, "groups": groups}


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _check_text(report: dict[str, Any]) -> str:
    """Return what was found as tables with titles."""
    rows = [["nominal", "coverage", "mean width", "interval score", *THIRDS]]
    for level in report["levels"]:
        cells = [_number(level[name]) for name in ("mean_width", "interval_score")]
        share = f"{level['coverage']:.3f} ± {level['standard_error']:.3f}"
        rows.append([f"{level['nominal']:g}", share, *cells, *thirds(level["coverage_by_width"])])
    n = report["rows_without_interval"]
    left_out = f"; {count_text(n)} rows without an interval are left out" if n else ""
    title = f"Intervals of kind {report['kind']} on {count_text(report['rows'])} rows{left_out}"
    whole = f"{title}; coverage of each third by width:\n{aligned(rows)}"
    tables = [whole, *map(_grouping_text, report["groupings"])]
    if report["periods_sorted_as"] is not None:
        tables.append(f"Periods are sorted as {report['periods_sorted_as']}")
    return "\n\n".join(tables)


def _grouping_text(grouping: dict[str, Any]) -> str:
    """Return a table with a title, of the groups with most rows."""
    groups = grouping["groups"]
    most = sorted(groups, key=lambda group: -group["rows"])[:_MAX_GROUPS]
    rows = [["group", "rows", "coverage", "range of chance", "mean width"]]
    for group in groups:
        if group in most:
            low, high = group["chance"]
            share = f"{group['coverage']:.3f}{' ' if low <= group['coverage'] <= high else '*'}"
            chance, width = f"{low:.3f} to {high:.3f}", _number(group["mean_width"])
            rows.append([group["name"], f"{group['rows']:,}", share, chance, width])
    n_more = len(groups) - len(most)
    more = f"\n{n_more:,} groups of fewer rows are told by --json" if n_more else ""
    return (
        f"Coverage at {grouping['nominal']:g} by {printable(grouping['column'])} (*: beyond what "
        f"chance gives exact intervals in 95 of 100 groups):\n{aligned(rows)}{more}"
    )


def _number(value: float | None) -> str:
    return "inf" if value is None else significant(value)


def _periods(column: Any, encoder: Any, options: Any) -> tuple[Groups, str | None]:
    """Return the periods of --order, and as what they are sorted, if they are text."""
    name, form, sorted_as = options.order, None, None
    if is_text(column.type):
        entries = encoder.entries if isinstance(encoder, TableEncoder) else ()
        forms = [getattr(entry, "form", None) for entry in entries if entry.name == name]
        try:
            form = next(filter(None, forms), None) or form_of(column, name, written_form(options))
        except ColumnError as error:
            raise UsageError(f"--order: {error.sentence(f'column {name!r}')}") from None
        if form is not None:
            sorted_as = None if form == NumberForm() else str(form)
        elif not pc.all(pc.match_substring_regex(column, ISO_DATE)).as_py():
            sorted_as = "text"
    names, of_row = _groups(column, form)
    for group, name in enumerate(names):
        if name == _MISSING or not name.strip():
            row = int(np.argmax(of_row == group)) + 1
            raise UsageError(f"--order must have a value in each row, and row {row} has none")
    counts = np.bincount(of_row)
    middle = np.cumsum(counts) - counts / 2  # rows of one value stay together
    period = (middle * _N_PERIODS / len(of_row)).astype(np.intp)
    _, begins, of_value = np.unique(period, return_index=True, return_inverse=True)
    periods = np.split(np.array(names, dtype=object), begins[1:])
    labels = [" to ".join(dict.fromkeys([values[0], values[-1]])) for values in periods]
    return (labels, of_value[of_row]), sorted_as


def _groups(column: Any, form: Form | None = None) -> Groups:
    """Group the rows by each value of a pyarrow column.

    Values are ordered by what their `form` says, or as numbers if all are, else as texts, as dates
    such as 2024-05-31 may be.
    """
    cells = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    try:
        numbers = [float(cell or "nan") for cell in cells] if form is None else form.read(column)
        keys: Any = np.array(numbers)
    except ValueError:
        keys = np.array(cells)
    _, first, of_row = np.unique(keys, return_index=True, return_inverse=True)
    return [cells[row] or _MISSING for row in first], of_row


def run_inspect(options: Any) -> None:
    """Print what a model file holds; raises as `contents`."""
    say(contents(options.model, options.trust, as_json=options.json))


def contents(path: Path, trusted: Sequence[str] = (), *, as_json: bool = False) -> str:
    """Say what a model file holds, if all of it is sound; raises as `HDIForestRegressor.load`."""
    loaded = model_file.load(path, verify=True, trusted=trusted)
    versions, fitted, n_bytes = loaded.versions, loaded.content, path.stat().st_size
    forest, index, encoder = fitted.scorer.forest, fitted.scorer.index, fitted.encoder
    names = (
        None if fitted.facts.feature_names is None else list(map(str, fitted.facts.feature_names))
    )
    made, has_rows = fitted.calibration, fitted.training_rows is not None
    atoms = [index.atoms(output) for output in range(fitted.n_outputs)]
    if as_json:
        report = {
            "file": str(path),
            "bytes": n_bytes,
            **versions._asdict(),
            "trees": forest.n_trees,
            "leaves": int(forest.n_leaves.sum()),
            "training_rows": fitted.n_training_rows,
            "has_training_rows": has_rows,
            "weights": fitted.facts.weights,
            "bytes_in_memory": {"forest": forest.nbytes, "leaf_index": index.nbytes},
            "targets": [{"min": a[0], "max": a[-1], "n_distinct": len(a)} for a in atoms],
            "n_features": fitted.n_features,
            "features": names,
            "encoder": encoder and encoder.facts(),
            "calibration": made
            and {"method": made.method, "rows": made.n, "coverages": list(made.coverages)},
        }
        return json.dumps(report, indent=2, allow_nan=False)
    facts = {
        "file": f"{path} ({size_text(n_bytes)})",
        "written by": f"hdicore {versions.hdicore}, scikit-learn {versions.scikit_learn}",
        "format version": str(versions.format_version),
        **facts_of(fitted),
        "in memory": f"forest {size_text(forest.nbytes)}, leaf index {size_text(index.nbytes)}",
    }
    facts["training rows"] += f" ({'' if has_rows else 'not '}in the file)"
    for output, values in enumerate(atoms):
        ends = f"{significant(values[0])} to {significant(values[-1])}"
        name = "target" if len(atoms) == 1 else f"target {output}"
        facts[name] = f"{ends}, {len(values):,} distinct values"
    levels = "none" if made is None else f"at {', '.join(f'{c:g}' for c in made.coverages)}"
    features = "without names" if names is None else ", ".join(names)
    facts["calibration"], facts["features"] = levels, f"{fitted.n_features}: {encoder or features}"
    if names is not None:
        columns = encoder if isinstance(encoder, TableEncoder) else TableEncoder.of_numbers(names)
        facts |= columns.described(fitted.facts.feature_range)
    shown = aligned([*facts.items()], left=2)
    return shown if made is None else f"{shown}\n\n{made!r}"
