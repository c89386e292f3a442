"""The reports of check and inspect as text: how a model's intervals do, what its file holds."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._cli.console import aligned
from hdiforest._model.fitted import FittedForest
from hdiforest._model.predict import AnyKind
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils.checks import significant
from hdiforest._utils.warnings import hints_that_name
from hdiforest.calibration._result import CalibrationResult
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
        rows = [
            [
                *("nominal", "coverage", "mean width", "interval score"),
                *("narrow third", "middle third", "wide third"),
            ]
        ]
        for level in self.levels:
            cells = [
                f"{level.nominal:g}",
                f"{level.coverage:.3f} ± {level.standard_error:.3f}",
                *(
                    "inf" if each is None else significant(each)
                    for each in (level.mean_width, level.interval_score)
                ),
                *("-" if third is None else f"{third:.3f}" for third in level.coverage_by_width),
            ]
            rows.append(cells)
        left_out = ""
        if self.rows_without_interval:
            left_out = f"; {self.rows_without_interval:,} rows without an interval are left out"
        title = f"Intervals of kind {self.kind} on {self.rows:,} rows{left_out}"
        return f"{title}; coverage of each third by width:\n{aligned(rows)}"


def check(
    model: HDIForestRegressor,
    X: Any,
    y: NDArray[np.float64],
    kind: AnyKind,
    levels: list[float],
    counts: RowCounts,
) -> Check:
    """Measure intervals of a model of one target.

    Parameters
    ----------
    model : HDIForestRegressor
    X : (n, n_features) table or array
    y : (n,) array
        Finite.
    kind : {"calibrated", "hdi", "equal_tailed", "smoothed_hdi"}
    levels : list of k floats
        Above 0 and below 1.
    counts : RowCounts
        Of the rows.

    Raises
    ------
    ValueError
        If the model has several targets, or no row has an interval.
    """
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
        fitted = self.fitted
        forest, index = fitted.scorer.forest, fitted.scorer.index
        names, encoder, calibration = fitted.feature_names, fitted.encoder, fitted.calibration
        return json.dumps(
            {
                "file": str(self.path),
                "bytes": self.path.stat().st_size,
                "hdicore": self.facts["hdicore"],
                "scikit_learn": self.facts["scikit_learn"],
                "format_version": self.facts["format_version"],
                "trees": forest.n_trees,
                "leaves": int(forest.n_leaves.sum()),
                "training_rows": fitted.n_training_rows,
                "has_training_rows": fitted.training_rows is not None,
                "weights": fitted.weights,
                "bytes_in_memory": {"forest": forest.nbytes, "leaf_index": index.nbytes},
                "targets": [_range(index.atoms(output)) for output in range(fitted.n_outputs)],
                "n_features": fitted.n_features,
                "features": None if names is None else [str(name) for name in names],
                "encoder": None if encoder is None else encoder.facts(),
                "calibration": None
                if calibration is None
                else {
                    "method": calibration.method,
                    "rows": calibration.n,
                    "coverages": list(calibration.coverages),
                },
            },
            indent=2,
            allow_nan=False,
        )

    def text(self) -> str:
        """Return the contents in aligned lines."""
        fitted, facts = self.fitted, self.facts
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
        for output in range(fitted.n_outputs):
            low, high, n = _range(index.atoms(output)).values()
            name = "target" if fitted.n_outputs == 1 else f"target {output}"
            rows.append([name, f"{low:g} to {high:g}, {n:,} distinct values"])
        calibration, encoder = fitted.calibration, fitted.encoder
        levels = "none" if calibration is None else f"at {_levels(calibration)}"
        rows.append(["calibration", levels])
        rows.append(["features", f"{fitted.n_features}: {_features(fitted)}"])
        if encoder is not None and encoder.ids:
            rows.append(["columns that name rows", ", ".join(encoder.ids)])
        facts_of_file = aligned(rows, left=2)
        return facts_of_file if calibration is None else f"{facts_of_file}\n\n{calibration!r}"


def contents(path: Path) -> Contents:
    """Load a model file after checking everything in it.

    Raises
    ------
    OSError, ValueError
        As `HDIForestRegressor.load`.
    """
    loaded = model_file.load(path, verify=True)
    return Contents(path, loaded.content, loaded.facts)


def _features(fitted: FittedForest) -> str:
    if fitted.encoder is not None:
        return str(fitted.encoder)
    names = fitted.feature_names
    return "without names" if names is None else ", ".join(map(str, names))


def _range(atoms: NDArray[np.float64]) -> dict[str, Any]:
    return {"min": float(atoms[0]), "max": float(atoms[-1]), "n_distinct": len(atoms)}


def _levels(calibration: CalibrationResult) -> str:
    return ", ".join(f"{coverage:g}" for coverage in calibration.coverages)


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
