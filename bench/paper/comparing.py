"""Compares systems on the same splits: means with errors, paired ratios with their intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import tasks
from matching import Ratio, width_ratio
from protocol import matched_target
from published import SYSTEMS, TABLE_2

# Widths at coverages further apart than this are not compared without a mark.
PICP_APART = 0.01
# The paper's data sets; the variants stand apart in counts and tests.
PAPER_TASKS = tuple(TABLE_2)


class Pair(NamedTuple):
    """One data set: width of a system over that of another at the same target."""

    task: str
    n_splits: int
    picp: float
    other_picp: float
    ratio: Ratio

    @property
    def is_matched(self) -> bool:
        """Whether both cover about as much."""
        return abs(self.picp - self.other_picp) <= PICP_APART

    @property
    def verdict(self) -> str:
        """Say what the interval of the ratio shows."""
        if self.ratio.upper < 1:
            return "narrower"
        return "wider" if self.ratio.lower > 1 else "no difference shown"


def at_own_target(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the paper's systems at the PICP that the paper gives for each."""
    kept = scores[scores["system"].isin(SYSTEMS)]
    wanted = [
        TABLE_2[tasks.VARIANTS.get(task, task)].picp[SYSTEMS.index(system)]
        for task, system in zip(kept["task"], kept["system"], strict=True)
    ]
    return kept[np.isclose(kept["target"], wanted)]


def at_matched_target(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at the PICP the paper gives for HDI-Forest, the same for all systems."""
    wanted = [matched_target(task) for task in scores["task"]]
    return scores[np.isclose(scores["target"], wanted)]


def averaged(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard error over the splits, by data set and system."""
    grouped = scores.groupby(["task", "system"], observed=True)
    means = grouped[["target", "picp", "mpiw", "interval_score"]].mean()
    errors = grouped[["picp", "mpiw"]].sem().add_suffix("_error")
    return means.join(errors).join(grouped.size().rename("splits"))


def pairs(scores: pd.DataFrame, system: str, other: str) -> list[Pair]:
    """Compare two systems on every data set with two splits or more that both have."""
    found = []
    for task, rows in scores.groupby("task", observed=True):
        a, b = (
            rows[rows["system"] == name].set_index("seed").sort_index() for name in (system, other)
        )
        shared = a.index.intersection(b.index)
        if len(shared) < 2:
            continue
        a, b = a.loc[shared], b.loc[shared]
        share = float((a["n_test"] / a["n_train"]).mean())
        ratio = width_ratio(a["mpiw"].to_numpy(), b["mpiw"].to_numpy(), share)
        found.append(Pair(str(task), len(shared), a["picp"].mean(), b["picp"].mean(), ratio))
    return found


def signed_rank(compared: list[Pair]) -> float:
    """Return Wilcoxon's two-sided p of the mean log ratios of the paper's data sets."""
    logs = [np.log(pair.ratio.mean) for pair in compared if pair.task in PAPER_TASKS]
    return float(stats.wilcoxon(logs).pvalue)


def ratio_at_equal_picp(curves: pd.DataFrame, task: str, system: str, other: str) -> float:
    """Return the geometric mean ratio of widths along the trade-off curves, at equal test PICP.

    The curves are means over the splits; PICPs from 0.8 to 0.99 that both reach are compared. NaN
    if there is none.
    """
    mine, theirs = (
        curves[(curves["task"] == task) & (curves["system"] == name)]
        .groupby("level", observed=True)[["picp", "mpiw"]]
        .mean()
        .dropna()
        .sort_values("picp")
        for name in (system, other)
    )
    if mine.empty or theirs.empty:
        return float("nan")
    lowest = max(mine["picp"].min(), theirs["picp"].min(), 0.8)
    highest = min(mine["picp"].max(), theirs["picp"].max(), 0.99)
    if lowest > highest:
        return float("nan")
    at = np.linspace(lowest, highest, 50)
    a, b = (np.interp(at, curve["picp"], curve["mpiw"]) for curve in (mine, theirs))
    return float(np.exp(np.log(a / b).mean()))
