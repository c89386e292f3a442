"""Reads results into a data frame: one row for each data set, system, split and coverage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import store
from protocol import EVALUATION, N_FIFTHS
from systems import SYSTEMS

# Strata by width with a smaller share of a data set's test rows are too few to judge.
_LEAST_SHARE = 0.02
_STRATA = range(N_FIFTHS + 1)  # width zero, then fifths


def read_scores(folder: Path) -> pd.DataFrame:
    """Return the measures on the test rows; "rows 0" and "held 0" are of intervals of width 0."""
    rows = []
    for name in EVALUATION.sets:
        for (system, seed), result in store.read(store.path_of(folder, name)).items():
            if system not in SYSTEMS:
                continue
            shared = {key: value for key, value in result.items() if key not in ("version", "at")}
            for nominal, found in result["at"].items():
                strata = {
                    f"{key} {i}": found["by_width"][key][i]
                    for key in ("rows", "held")
                    for i in _STRATA
                }
                keys = {"set": name, "system": system, "seed": seed, "nominal": float(nominal)}
                measures = {key: value for key, value in found.items() if key != "by_width"}
                rows.append({**keys, **shared, **measures, **strata})
    if not rows:
        raise ValueError(f"{folder} was expected to hold results, but has none; run run.py first")
    frame = pd.DataFrame(rows)
    return frame.assign(
        set=pd.Categorical(frame["set"], EVALUATION.sets, ordered=True),
        system=pd.Categorical(frame["system"], list(SYSTEMS), ordered=True),
    )


def at(scores: pd.DataFrame, nominal: float) -> pd.DataFrame:
    """Return the rows of one nominal coverage."""
    return scores[np.isclose(scores["nominal"], nominal)]


def by_set(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means over the splits by data set and system, of one nominal coverage.

    "worst fifth" is the least coverage of a fifth by width (or of the intervals of width zero), of
    all splits together.
    """
    groups = scores.groupby(["set", "system"], observed=True)
    measures = ["coverage", "width", "width_of_range", "interval_score"]
    means = groups[[*measures, "fit_seconds", "predict_seconds"]].mean()
    means["splits"] = groups.size()
    means["worst fifth"] = coverage_of_strata(scores, ["set", "system"]).min(axis=1)
    return means


def coverage_of_strata(scores: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the coverage of each stratum by width; NaN for one with too few rows."""
    groups = scores.groupby(keys, observed=True)
    rows = groups[[f"rows {i}" for i in _STRATA]].sum().to_numpy()
    held = groups[[f"held {i}" for i in _STRATA]].sum()
    enough = rows >= _LEAST_SHARE * rows.sum(axis=1, keepdims=True)
    shares = np.where(enough, held.to_numpy() / np.maximum(rows, 1), np.nan)
    return pd.DataFrame(shares, index=held.index)
