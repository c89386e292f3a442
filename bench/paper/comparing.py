"""Compares systems on the same splits: means with errors, paired ratios with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import tasks
from matching import Ratio, level_reaching, width_ratio
from protocol import CANONICAL, matched_target
from published import SYSTEMS, TABLE_2

# Widths at coverages further apart than this, or than a quarter of the rows that may be missed, are
# not compared without a mark.
_PICP_APART = 0.01
_UNREACHED = 0.002
_TEST_SHARE = 0.25  # n_test / n_train of all splits, to within a group
# The paper's data sets; the variants stand apart in counts and tests.
PAPER_TASKS = tuple(TABLE_2)


def target_rules() -> dict[str, Callable[[str], float]]:
    """Return the target PICPs at which pairs are compared: what gives each for a data set."""
    rules: dict[str, Callable[[str], float]] = {"paper's PICP": matched_target}
    for target in CANONICAL:
        rules[f"PICP {target:.2f}"] = lambda _, target=target: target
    return rules


class Pair(NamedTuple):
    """One data set: width of a system over that of another at the same target."""

    task: str
    target: float
    n_splits: int
    picp: float
    other_picp: float
    ratio: Ratio

    @property
    def is_matched(self) -> bool:
        """Whether both cover about as much."""
        return is_close(self.picp, self.other_picp, self.target)

    @property
    def verdict(self) -> str:
        """Say what the interval of the ratio shows."""
        if self.ratio.upper < 1:
            return "narrower"
        return "wider" if self.ratio.lower > 1 else "no difference shown"


def is_close(picp: float, other: float, target: float) -> bool:
    """Whether two coverages are so close that widths may be compared."""
    return abs(picp - other) <= min(_PICP_APART, (1 - target) / 4)


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
    means = grouped[["target", "training_picp", "picp", "mpiw", "interval_score"]].mean()
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
        target = float(a["target"].mean())
        picp = a["picp"].mean(), b["picp"].mean()
        found.append(Pair(str(task), target, len(shared), *picp, ratio))
    return found


def pairs_at_equal_picp(
    curves: pd.DataFrame, system: str, other: str, target_of: Callable[[str], float]
) -> list[Pair]:
    """Compare two systems where both cover the target on the test parts, pooled over the splits.

    The level at which each does is found on its mean trade-off curve, and the widths of each split
    at these two levels are paired. The interval is by the jackknife over splits, so that finding
    the levels is in it, corrected for training parts that overlap as in `width_ratio`. Data sets
    are left out that have fewer than three splits, or whose curves do not reach the target.
    """
    found = []
    for task, rows in curves.groupby("task", observed=True):
        target = target_of(str(task))
        tables = [_by_level(rows[rows["system"] == name]) for name in (system, other)]
        shared = tables[0][0].index.intersection(tables[1][0].index)
        n = len(shared)
        if n < 3:
            continue
        estimates = [
            _at_target(tables, shared.delete(left_out), target)
            for left_out in ([], *([i] for i in range(n)))
        ]
        if any(estimate is None for estimate in estimates):
            continue
        (log_ratio, picps), *without = estimates
        spread = np.array([estimate[0] for estimate in without])
        variance = (n - 1) / n * ((spread - spread.mean()) ** 2).sum() * (1 + n * _TEST_SHARE)
        reach = stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
        ratio = Ratio(*np.exp([log_ratio, log_ratio - reach, log_ratio + reach]).tolist())
        found.append(Pair(str(task), target, n, *picps, ratio))
    return found


def _by_level(curves: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return PICP and MPIW, a row for each split and a column for each level."""
    whole = curves.dropna()
    picp, mpiw = (whole.pivot_table(of, "seed", "level") for of in ("picp", "mpiw"))
    return picp, mpiw


def _at_target(
    tables: list[tuple[pd.DataFrame, pd.DataFrame]], seeds: pd.Index, target: float
) -> tuple[float, list[float]] | None:
    """Return the mean log ratio of widths at the target, and both PICPs; None if out of reach."""
    picps, logs = [], []
    for picp, mpiw in tables:
        levels = picp.columns.to_numpy()
        mean = picp.loc[seeds].mean().to_numpy()
        level = level_reaching(levels, mean, target)
        picps.append(float(np.interp(level, levels, mean)))
        widths = np.array([np.interp(level, levels, row) for row in mpiw.loc[seeds].to_numpy()])
        if abs(picps[-1] - target) > _UNREACHED or widths.min() <= 0:
            return None
        logs.append(np.log(widths))
    return float((logs[0] - logs[1]).mean()), picps


def signed_rank(compared: list[Pair]) -> float:
    """Return Wilcoxon's two-sided p of the mean log ratios of the paper's data sets."""
    logs = [np.log(pair.ratio.mean) for pair in compared if pair.task in PAPER_TASKS]
    return float(stats.wilcoxon(logs).pvalue)


def along_curve(
    curves: pd.DataFrame, task: str, system: str, measure: str, value: float, wanted: str
) -> float:
    """Return a measure of the mean trade-off curve where the other has a value; NaN if nowhere."""
    mine = curves[(curves["task"] == task) & (curves["system"] == system)]
    curve = mine.groupby("level", observed=True)[["picp", "mpiw"]].mean().sort_values(measure)
    if curve.empty or not curve[measure].min() <= value <= curve[measure].max():
        return float("nan")
    return float(np.interp(value, curve[measure], curve[wanted]))
