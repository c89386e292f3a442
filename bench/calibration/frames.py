"""Reads results into a data frame: one row for each data set, system, split and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from protocol import EVALUATION, N_FEATURES, N_FIFTHS, study
from systems import SYSTEMS

# Strata by width with a smaller share of a data set's test rows are too few to judge.
_LEAST_SHARE = 0.02
_STRATA = range(N_FIFTHS + 1)  # width zero, then fifths


def read_scores(folder: Path, names: Sequence[str] = EVALUATION.sets) -> pd.DataFrame:
    """Return the measures on the test rows; "width rows 0" is of intervals of width 0."""
    rows = []
    for name in names:
        for (system, seed), result in study.read(study.path_of(folder, name)).items():
            if system not in SYSTEMS or result["version"] != SYSTEMS[system].version:
                continue
            shared = {key: value for key, value in result.items() if key not in ("version", "at")}
            for nominal, found in result["at"].items():
                strata = _strata(found["by"])
                keys = {"set": name, "system": system, "seed": seed, "nominal": float(nominal)}
                measures = {key: value for key, value in found.items() if key != "by"}
                rows.append({**keys, **shared, **measures, **strata})
    if not rows:
        raise study.NotHereError(f"{folder} holds no results; run.py measures them.")
    frame = pd.DataFrame(rows)
    return frame.assign(
        set=pd.Categorical(frame["set"], names, ordered=True),
        system=pd.Categorical(frame["system"], list(SYSTEMS), ordered=True),
    )


def _strata(found: dict[str, dict[str, list[int]]]) -> dict[str, int]:
    """Return the counts by width, by prediction and by feature (1, 2, ...), a column each."""
    names = {"width": "width", "prediction": "prediction"}
    features = [name for name in found if name not in names]
    names |= {name: f"feature {i}" for i, name in enumerate(features, 1)}
    return {
        f"{names[name]} {key} {i}": counts[i]
        for name, stratum in found.items()
        for key, counts in stratum.items()
        for i in _STRATA
    }


def at(scores: pd.DataFrame, nominal: float) -> pd.DataFrame:
    """Return the rows of one nominal coverage."""
    return scores[np.isclose(scores["nominal"], nominal)]


def by_set(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means over the splits by data set and system, of one nominal coverage.

    "worst by ..." is the least coverage of a fifth by width (or of the intervals of width zero), by
    predicted value, or by one of the main features, of all splits together.
    """
    groups = scores.groupby(["set", "system"], observed=True)
    measures = ["coverage", "width", "width_of_range", "interval_score"]
    means = groups[[*measures, "fit_seconds", "predict_seconds"]].mean()
    means["splits"] = groups.size()
    for by in ("width", "prediction"):
        means[f"worst by {by}"] = _worst(scores, by)
    features = [_worst(scores, f"feature {i}") for i in range(1, N_FEATURES + 1)]
    means["worst by feature"] = pd.concat(features, axis=1).min(axis=1)
    return means


def _worst(scores: pd.DataFrame, by: str) -> pd.Series:
    return coverage_of_strata(scores, ["set", "system"], by).min(axis=1)


def coverage_of_strata(scores: pd.DataFrame, keys: list[str], by: str = "width") -> pd.DataFrame:
    """Return the coverage of each stratum; NaN for one with too few rows."""
    groups = scores.groupby(keys, observed=True)
    columns = [f"{by} rows {i}" for i in _STRATA]
    if not set(columns) <= set(scores):
        return pd.DataFrame(np.nan, index=groups.size().index, columns=list(_STRATA))
    rows = groups[columns].sum().to_numpy()
    held = groups[[f"{by} held {i}" for i in _STRATA]].sum()
    enough = rows >= _LEAST_SHARE * rows.sum(axis=1, keepdims=True)
    shares = np.where(enough, held.to_numpy() / np.maximum(rows, 1), np.nan)
    return pd.DataFrame(shares, index=held.index, columns=list(_STRATA))
