"""Compares systems on the same splits: ratios of widths and scores, and each set's best peer."""

from __future__ import annotations

import numpy as np
import pandas as pd

from systems import SYSTEMS

# The stronger of the two QOOBs: its forest is tuned like that of the other peers.
REFERENCE = "QOOB, tuned"
# A system is valid on a data set if its mean coverage is at most this much below the nominal one.
TOLERANCE = 0.02


def is_valid(means: pd.DataFrame, nominal: float) -> pd.Series:
    """Return whether each system covers enough on each data set."""
    return means["coverage"] >= nominal - TOLERANCE


def best_peers(means: pd.DataFrame, nominal: float, measure: str) -> pd.Series:
    """Return the valid peer of the least width or score on each data set, known afterwards.

    Data sets without one are left out.
    """
    systems = means.index.get_level_values("system")
    is_peer = np.array([not SYSTEMS[system].is_ours for system in systems])
    peers = means[is_valid(means, nominal) & is_peer][measure]
    best = peers.groupby("set", observed=True).idxmin()
    return pd.Series({name: system for name, (_, system) in best.items()}, dtype=object)


def of_both(scores: pd.DataFrame, system: str, other: str) -> pd.DataFrame:
    """Return the rows of two systems on the splits that both have, of one nominal coverage."""
    rows = scores[scores["system"].isin((system, other))]
    is_shared = rows.groupby(["set", "seed"], observed=True)["system"].transform("count") == 2
    return rows[is_shared]


def ratios(scores: pd.DataFrame, system: str, others: pd.Series, measure: str) -> pd.Series:
    """Return a measure of a system over that of another by data set, on the splits of both."""
    found = {}
    for name, other in others.items():
        rows = scores[scores["set"] == name]
        table = rows.pivot_table(measure, "seed", "system", observed=True)
        if {system, other} <= set(table.columns):
            shared = table[table[system].notna() & table[other].notna()]
            found[name] = shared[system].mean() / shared[other].mean()
    return pd.Series(found, dtype=float)


def against_reference(scores: pd.DataFrame, system: str, measure: str) -> pd.Series:
    """Return a measure of a system over that of the reference by data set."""
    names = scores["set"].unique()
    return ratios(scores, system, pd.Series(REFERENCE, index=names), measure)


def geometric_mean(values: pd.Series) -> float:
    """Return the geometric mean; NaN of none."""
    return float(np.exp(np.log(values).mean()))
