"""The subcommands check and inspect: how a model's intervals do, and what its file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._cli.arguments import kind_and_levels
from hdiforest._cli.console import THIRDS, aligned, say, thirds
from hdiforest._cli.inputs import read_labelled_table, read_model
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils.checks import significant
from hdiforest._utils.hints import hints_that_name
from hdiforest.metrics import coverage_by_width, coverage_score, interval_score, mean_width_score
from hdiforest.serving import _model_file as model_file

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor


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
        return f"{title}; coverage of each third by width:\n{aligned(rows)}"


def run_check(options: Any) -> None:
    """Measure the intervals of a model of one target on a table, and print what was found."""
    model = read_model(options)
    kind, levels = kind_and_levels(model.fitted_forest(), options.kind, options.coverage)
    if options.coverage is None and kind == "calibrated":
        levels = list(model.calibration_.coverages)
    X, y, counts = read_labelled_table(model, options)
    found = check(model, X, y, kind, levels, counts)
    say(found.json() if options.json else f"{found.text()}\n{counts}".rstrip())


def check(
    model: HDIForestRegressor,
    X: Any,
    y: NDArray[np.float64],
    kind: AnyKind,
    levels: list[float],
    counts: RowCounts,
) -> Check:
    """Measure intervals of rows with finite targets; ValueError if no row has an interval."""
    fit = "the table of 'hdiforest fit' or its --report"
    usual, hdi = f"{fit} (oob_interval in Python)", f"{fit} (oob_interval(kind='hdi') in Python)"
    with hints_that_name(usual, hdi, fit):
        intervals = model.predict_interval(X, levels, kind=kind)
    has_interval = ~np.isnan(intervals).any(axis=(1, 2))
    if not has_interval.any():
        raise ValueError(f"none of {len(y)} rows has an interval: all leaves of each are empty")
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
    )


def _measured(y: NDArray[np.float64], ends: NDArray[np.float64], level: float) -> LevelCheck:
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
