"""The subcommands check and inspect: how a model's intervals do, and what its file holds."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._cli.arguments import UsageError, kind_and_levels
from hdiforest._cli.console import THIRDS, aligned, say, thirds
from hdiforest._cli.inputs import read_labelled_table, read_model
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import USUAL_COVERAGE, AnyKind
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils import Array
from hdiforest._utils.checks import printable, significant
from hdiforest._utils.hints import hints_that_name
from hdiforest.displays._coverage import chance_range
from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from hdiforest.serving import _model_file as model_file

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor

_N_PERIODS = 10
_MAX_GROUPS = 30  # in a text


@dataclass(frozen=True)
class LevelCheck:
    """Measures of the intervals of one nominal level; None where they are not finite."""

    nominal: float
    coverage: float
    standard_error: float  # binomial, of the coverage
    mean_width: float | None
    interval_score: float | None
    # Narrow, middle, wide: thirds of the intervals that are wider than zero.
    coverage_by_width: tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class GroupCheck:
    """Measures of one group of rows."""

    name: str
    rows: int
    coverage: float
    chance: tuple[float, float]  # between which 95 % of the coverages of exact intervals lie
    mean_width: float | None


@dataclass(frozen=True)
class Grouping:
    """Measures of groups of rows, at one nominal level."""

    column: str
    nominal: float
    groups: list[GroupCheck]

    def text(self) -> str:
        """Return a table with a title, of the groups with most rows."""
        most = sorted(self.groups, key=lambda group: -group.rows)[:_MAX_GROUPS]
        shown = [group for group in self.groups if group in most]
        rows = [["group", "rows", "coverage", "range of chance", "mean width"]]
        for group in shown:
            low, high = group.chance
            mark = " " if low <= group.coverage <= high else "*"
            width = "inf" if group.mean_width is None else significant(group.mean_width)
            share, chance = f"{group.coverage:.3f}{mark}", f"{low:.3f} to {high:.3f}"
            rows.append([group.name, f"{group.rows:,}", share, chance, width])
        n_more = len(self.groups) - len(shown)
        more = f"\n{n_more:,} groups of fewer rows are told by --json" if n_more else ""
        return (
            f"Coverage at {self.nominal:g} by {printable(self.column)} (*: beyond what chance "
            f"gives exact intervals in 95 of 100 groups):\n{aligned(rows)}{more}"
        )


@dataclass(frozen=True)
class Check:
    """Measures of a model on labelled rows."""

    kind: AnyKind
    rows: int  # those measured
    rows_without_interval: int  # whose leaves are all empty
    levels: tuple[LevelCheck, ...]
    # See `RowCounts`; by column, if there are any.
    unknown_categories: dict[str, int]
    out_of_range: dict[str, int]
    rows_out_of_range: int
    rows_without_values: int
    rows_of_new_groups: int
    groupings: list[Grouping]

    def json(self) -> str:
        """Return an object of the attributes."""
        return json.dumps(asdict(self), indent=2, allow_nan=False)

    def text(self) -> str:
        """Return a table with a title."""
        head = ["nominal", "coverage", "mean width", "interval score"]
        rows = [[*head, *THIRDS]]
        for level in self.levels:
            numbers = level.mean_width, level.interval_score
            cells = ["inf" if number is None else significant(number) for number in numbers]
            share = f"{level.coverage:.3f} ± {level.standard_error:.3f}"
            rows.append([f"{level.nominal:g}", share, *cells, *thirds(level.coverage_by_width)])
        left_out = ""
        if self.rows_without_interval:
            left_out = f"; {self.rows_without_interval:,} rows without an interval are left out"
        title = f"Intervals of kind {self.kind} on {self.rows:,} rows{left_out}"
        whole = f"{title}; coverage of each third by width:\n{aligned(rows)}"
        return "\n\n".join([whole, *(grouping.text() for grouping in self.groupings)])


def run_check(options: Any) -> None:
    """Measure the intervals of a model of one target on a table, and print what was found."""
    model = read_model(options)
    kind, levels = kind_and_levels(model.fitted_forest(), options.kind, options.coverage)
    if options.coverage is None and kind == "calibrated":
        levels = list(model.calibration_.coverages)
    given = [(options.over, _N_PERIODS), (options.by, None)]
    names = list(dict.fromkeys(name for name, _ in given if name is not None))
    X, y, counts, kept = read_labelled_table(model, options, names)
    columns = dict(zip(names, kept, strict=True))
    groups = [(name, groups_of(columns[name], n)) for name, n in given if name is not None]
    if model.fitted_forest().has_reference:
        known = model.fitted_forest().calibration
        level = levels[0] if known is None else known.coverages[0]  # no flag depends on it
        flag = model.diagnose(X, level)["flag"]
        unlike = ("unlike the training rows", np.flatnonzero(flag))
        groups.append(("flag", [unlike, ("others", np.flatnonzero(~flag))]))
    found = check(model, X, y, kind, levels, counts, groups)
    say(found.json() if options.json else f"{found.text()}\n{counts}".rstrip())


def check(
    model: HDIForestRegressor,
    X: Any,
    y: Array,
    kind: AnyKind,
    levels: list[float],
    counts: RowCounts,
    groups: list[tuple[str, Groups]],
) -> Check:
    """Measure intervals of rows with finite targets; ValueError if no row has an interval."""
    fit = "the table of 'hdiforest fit' or its --report"
    named, hdi = f"{fit} (oob_interval in Python)", f"{fit} (oob_interval(kind='hdi') in Python)"
    with hints_that_name(named, hdi, fit), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* of groups that the calibration")  # counts tell it
        intervals = model.predict_interval(X, levels, kind=kind)
    has_interval = ~np.isnan(intervals).any(axis=(1, 2))
    if not has_interval.any():
        raise ValueError(f"none of {len(y)} rows has an interval: all leaves of each are empty")
    usual = int(np.argmin(np.abs(np.array(levels) - USUAL_COVERAGE)))
    groupings = []
    for column, own in groups:
        known = [(name, rows[has_interval[rows]]) for name, rows in own]
        checks = [
            _of_group(name, y[rows], intervals[rows, :, usual], levels[usual])
            for name, rows in known
            if len(rows)
        ]
        groupings.append(Grouping(column, levels[usual], checks))
    y, intervals = y[has_interval], intervals[has_interval]
    return Check(
        kind=kind,
        rows=len(y),
        rows_without_interval=int((~has_interval).sum()),
        levels=tuple(_measured(y, intervals[..., j], level) for j, level in enumerate(levels)),
        unknown_categories={name: n for name, n in counts.unseen.items() if n > 0},
        out_of_range=dict(counts.out_of_range),
        rows_out_of_range=counts.n_rows_out_of_range,
        rows_without_values=counts.n_rows_without_values,
        rows_of_new_groups=counts.n_rows_of_new_groups,
        groupings=groupings,
    )


def _measured(y: Array, ends: Array, level: float) -> LevelCheck:
    share = float(coverage_score(y, ends))
    narrow, middle, wide = map(_finite, coverage_by_width(y, ends, 3).coverage[1:])
    return LevelCheck(
        nominal=level,
        coverage=share,
        standard_error=math.sqrt(share * (1 - share) / len(y)),
        mean_width=_finite(mean_width_score(ends)),
        interval_score=_finite(interval_score(y, ends, level)),
        coverage_by_width=(narrow, middle, wide),
    )


Groups = list[tuple[str, NDArray[np.intp]]]  # their names and their rows


def groups_of(column: Any, n_periods: int | None = None) -> Groups:
    """Return the rows of each value of a pyarrow column, or of so many periods of its values.

    Values are ordered as numbers if all are, else as texts, as dates such as 2024-05-31 may be.
    """
    cells = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    try:
        keys: Any = np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        keys = np.array(cells)
    _, first, of_row, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    names = [cells[row] or "(missing)" for row in first]
    if n_periods is not None:
        if "" in cells:
            row = cells.index("") + 1
            raise UsageError(f"--over must have a value in each row, and row {row} has none")
        middle = np.cumsum(counts) - counts / 2  # rows of one value stay together
        period = (middle * n_periods / len(cells)).astype(np.intp)
        _, of_value, n_values = np.unique(period, return_inverse=True, return_counts=True)
        last = np.cumsum(n_values) - 1
        ends = [
            {names[i]: None, names[j]: None} for i, j in zip(last - n_values + 1, last, strict=True)
        ]
        names, of_row = [" to ".join(each) for each in ends], of_value[of_row]
    rows = np.split(np.argsort(of_row, kind="stable"), np.cumsum(np.bincount(of_row))[:-1])
    return list(zip(names, rows, strict=True))


def _of_group(name: str, y: Array, ends: Array, level: float) -> GroupCheck:
    low, high = chance_range(level, len(y), 0.95)
    share, width = coverage_score(y, ends), mean_width_score(ends)
    return GroupCheck(name, len(y), float(share), (float(low), float(high)), _finite(width))


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True)
class Contents:
    """A model file that was checked, and its facts."""

    path: Path
    fitted: FittedForest
    facts: dict[str, Any]

    def json(self) -> str:
        """Return an object of JSON: names and sizes, the encoder, and the calibration."""
        fitted, facts = self.fitted, self.facts
        forest, index = fitted.scorer.forest, fitted.scorer.index
        encoder, calibration = fitted.encoder, fitted.calibration
        names, levels = fitted.feature_names, None
        if calibration is not None:
            levels = {"method": calibration.method, "rows": calibration.n}
            levels["coverages"] = list(calibration.coverages)
        found = {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            **{name: facts[name] for name in ("hdicore", "scikit_learn", "format_version")},
            "trees": forest.n_trees,
            "leaves": int(forest.n_leaves.sum()),
            "training_rows": fitted.n_training_rows,
            "has_training_rows": fitted.training_rows is not None,
            "weights": fitted.weights,
            "bytes_in_memory": {"forest": forest.nbytes, "leaf_index": index.nbytes},
            "targets": self._ranges(),
            "n_features": fitted.n_features,
            "features": None if names is None else list(map(str, names)),
            "encoder": None if encoder is None else encoder.facts(),
            "calibration": levels,
        }
        return json.dumps(found, indent=2, allow_nan=False)

    def text(self) -> str:
        """Return the contents in aligned lines."""
        fitted, facts, calibration = self.fitted, self.facts, self.fitted.calibration
        forest, index = fitted.scorer.forest, fitted.scorer.index
        kept = "not in the file" if fitted.training_rows is None else "in the file"
        rows = [
            ["file", f"{self.path} ({_size(self.path.stat().st_size)})"],
            ["written by", f"hdicore {facts['hdicore']}, scikit-learn {facts['scikit_learn']}"],
            ["format version", str(facts["format_version"])],
            ["trees", f"{forest.n_trees:,}"],
            ["leaves", f"{forest.n_leaves.sum():,}"],
            ["training rows", f"{fitted.n_training_rows:,} ({kept})"],
            ["weights", f"{fitted.weights}: {WEIGHTINGS[fitted.weights]}"],
            ["in memory", f"forest {_size(forest.nbytes)}, leaf index {_size(index.nbytes)}"],
        ]
        for output, (low, high, n) in enumerate(each.values() for each in self._ranges()):
            name = "target" if fitted.n_outputs == 1 else f"target {output}"
            rows.append([name, f"{low:g} to {high:g}, {n:,} distinct values"])
        known = () if calibration is None else calibration.coverages
        levels = f"at {', '.join(f'{coverage:g}' for coverage in known)}" if known else "none"
        names: Any = fitted.feature_names
        features = "without names" if names is None else ", ".join(map(str, names))
        if fitted.encoder is not None:
            features = str(fitted.encoder)
        rows += [["calibration", levels], ["features", f"{fitted.n_features}: {features}"]]
        if fitted.id_columns:
            rows.append(["columns that name rows", ", ".join(fitted.id_columns)])
        shown = aligned(rows, left=2)
        return shown if calibration is None else f"{shown}\n\n{calibration!r}"

    def _ranges(self) -> list[dict[str, Any]]:
        all_atoms = map(self.fitted.scorer.index.atoms, range(self.fitted.n_outputs))
        return [{"min": float(a[0]), "max": float(a[-1]), "n_distinct": len(a)} for a in all_atoms]


def run_inspect(options: Any) -> None:
    """Print what a model file holds; raises as `contents`."""
    found = contents(options.model, options.trust)
    say(found.json() if options.json else found.text())


def contents(path: Path, trusted: Sequence[str] = ()) -> Contents:
    """Load a model file after checking all of it; raises as `HDIForestRegressor.load`."""
    loaded = model_file.load(path, verify=True, trusted=trusted)
    return Contents(path, loaded.content, loaded.facts)


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
