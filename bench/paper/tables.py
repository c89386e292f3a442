"""The tables of the evaluation, as data frames of text."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

import tasks
from comparing import (
    PAPER_TASKS,
    Pair,
    along_curve,
    at_matched_target,
    at_own_target,
    averaged,
    pairs,
    pairs_at_equal_picp,
    target_rules,
)
from frames import STRATA
from protocol import CANONICAL, SAME_FOREST
from published import SYSTEMS, TABLE_1, TABLE_2

# The readings of the same forests that are compared: what differs between them is the rule.
FOREST_PAIRS = {
    "each tuned": ("HDI-Forest", "QRF"),
    "same forest": ("HDI-Forest", SAME_FOREST),
    "both padded": ("HDI-Forest, padded", "QRF, padded"),
}
_MOST_VALUES = 12  # of a setting that is tried on a grid
_SHORT = 0.002  # by which the training part may miss its target without a mark
_LEVELLED = ["HDI-Forest", "QRF", "MVE", "MC dropout"]
_MARKS = {"online_news": "online_news (a fifth of the rows)"}


def table_1() -> pd.DataFrame:
    """Return sizes here and in the paper."""
    rows = []
    for name in tasks.NAMES:
        task = tasks.load(name)
        paper = "{} x {}".format(*TABLE_1[name]) if name in TABLE_1 else ""
        n, d = task.X.shape
        rows.append(
            {
                "data set": label(name),
                "rows x features": f"{n} x {d}",
                "paper": paper,
                "distinct targets": len(np.unique(task.y)),
                "rows that repeat another": n
                - len(np.unique(np.column_stack([task.X, task.y]), axis=0)),
                "sd of the target": f"{task.y.std():.4g}",
                "splits": tasks.n_splits(name),
            }
        )
    return pd.DataFrame(rows)


def table_2(scores: pd.DataFrame, curves: pd.DataFrame) -> pd.DataFrame:
    """Return ours beside the paper's, each system at the PICP the paper gives for it.

    The last columns read our own trade-off curve: at the paper's PICP, and at its MPIW.
    """
    means = averaged(at_own_target(scores))
    rows = []
    for (task, system), mean in means.iterrows():
        paper = TABLE_2[tasks.VARIANTS.get(task, task)]
        at = SYSTEMS.index(system)
        ratio = mean["mpiw"] / paper.mpiw[at]
        rows.append(
            {
                "data set": label(task),
                "system": system,
                "splits": int(mean["splits"]),
                "PICP": _with_error(mean["picp"], mean["picp_error"]),
                "paper's PICP": f"{paper.picp[at]:.2f}",
                "MPIW": _with_error(mean["mpiw"], mean["mpiw_error"]),
                "paper's MPIW": f"{paper.mpiw[at]:.2f}",
                "difference": f"{100 * (ratio - 1):+.0f} %",
                "our MPIW at the paper's PICP": _three(
                    along_curve(curves, task, system, "picp", paper.picp[at], "mpiw")
                ),
                "our PICP at the paper's MPIW": _three(
                    along_curve(curves, task, system, "mpiw", paper.mpiw[at], "picp")
                ),
            }
        )
    return pd.DataFrame(rows)


def widths(scores: pd.DataFrame, systems: list[str]) -> pd.DataFrame:
    """Return MPIW with its error and PICP of each system, one row a data set."""

    def cell(mean: pd.Series) -> str:
        short = "" if mean["training_picp"] > mean["target"] - _SHORT else " (short)"
        return f"{_with_error(mean['mpiw'], mean['mpiw_error'])} @ {mean['picp']:.3f}{short}"

    return _wide(averaged(scores), systems, cell, with_target=True)


def interval_scores(scores: pd.DataFrame, systems: list[str]) -> pd.DataFrame:
    """Return the mean interval score of each system, one row a data set."""
    return _wide(
        averaged(scores), systems, lambda mean: _short(mean["interval_score"]), with_target=True
    )


def nominal(curves: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return MPIW and PICP at a nominal level, of the systems that have levels of their own."""
    means = (
        curves[np.isclose(curves["level"], level)]
        .groupby(["task", "system"], observed=True)[["picp", "mpiw"]]
        .mean()
    )
    return _wide(means, _LEVELLED, lambda mean: f"{mean['mpiw']:.3f} @ {mean['picp']:.3f}")


def forest_pairs(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of widths HDI / QRF with their 95 % intervals, tuned on training parts."""
    rows: dict[str, dict[str, str]] = {}
    for heading, (system, other) in FOREST_PAIRS.items():
        for title, chosen in _targets(scores).items():
            for pair in pairs(chosen, system, other):
                rows.setdefault(pair.task, {"data set": label(pair.task)})
                rows[pair.task][f"{heading}, {title}"] = ratio_text(pair)
    return pd.DataFrame(_in_order(rows)).fillna("")


def forest_pairs_at_equal_picp(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of widths HDI / QRF where both cover as much on the test parts."""
    rows: dict[str, dict[str, str]] = {}
    for heading, (system, other) in FOREST_PAIRS.items():
        for title, target_of in target_rules().items():
            for pair in pairs_at_equal_picp(curves, system, other, target_of):
                rows.setdefault(pair.task, {"data set": label(pair.task)})
                rows[pair.task][f"{heading}, {title}"] = ratio_text(pair)
    return pd.DataFrame(_in_order(rows)).fillna("")


def against_all(scores: pd.DataFrame, system: str) -> pd.DataFrame:
    """Return the ratios of widths of a system over each other at the matched target."""
    chosen = at_matched_target(scores)
    rows: dict[str, dict[str, str]] = {}
    for other in scores["system"].cat.categories:
        if other in (system, SAME_FOREST):
            continue
        for pair in pairs(chosen, system, other):
            rows.setdefault(pair.task, {"data set": label(pair.task)})
            rows[pair.task][other] = ratio_text(pair)
    return pd.DataFrame(_in_order(rows)).fillna("")


def coverage_by_width(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the PICP of each system's zero, narrow, middle and wide intervals at 0.90."""
    chosen = scores[np.isclose(scores["target"], CANONICAL[0])].copy()
    for name in STRATA:
        chosen[f"covered_{name}"] = chosen[f"picp_{name}"].fillna(0) * chosen[f"rows_{name}"]
    kinds = [f"{kind}_{name}" for kind in ("covered", "rows") for name in STRATA]
    sums = chosen.groupby(["task", "system"], observed=True)[kinds].sum()

    def share(sums: pd.Series, name: str) -> str:
        n = sums[f"rows_{name}"]
        return f"{sums[f'covered_{name}'] / n:.2f}" if n else "-"

    return _wide(
        sums,
        list(scores["system"].cat.categories),
        lambda sums: " / ".join(share(sums, name) for name in STRATA),
    )


def seconds(scores: pd.DataFrame) -> pd.DataFrame:
    """Return median seconds of one core to tune, to fit what was chosen, to predict the test part.

    Systems of one family are tuned together.
    """
    columns = ["tuning_seconds", "fit_seconds", "predict_seconds"]
    medians = scores.groupby(["task", "system"], observed=True)[columns].median()
    shown = [name for name in scores["system"].cat.categories if name != SAME_FOREST]
    return _wide(
        medians,
        shown,
        lambda median: " / ".join(_short(median[column]) for column in columns),
    )


def choices(settings: pd.DataFrame) -> pd.DataFrame:
    """Return how often each value of a setting was chosen at the matched target."""
    chosen = at_matched_target(settings)
    rows = []
    for (system, setting), mine in chosen.groupby(["system", "setting"], observed=True):
        counts = mine["value"].map(_setting_text).value_counts()
        if system == SAME_FOREST or not 1 < len(counts) <= _MOST_VALUES:
            continue
        values = sorted(counts.index, key=_in_size)
        shown = ", ".join(f"{value}: {counts[value]}" for value in values)
        rows.append({"system": system, "setting": setting, "value: times chosen": shown})
    return pd.DataFrame(rows)


def hours(scores: pd.DataFrame, systems_of: dict[str, list[str]]) -> pd.DataFrame:
    """Return the work in the results: units, splits where they are fewer, and hours of a core."""
    rows = []
    for family, systems in systems_of.items():
        mine = scores[scores["system"] == systems[0]]
        units = mine.drop_duplicates(["task", "seed"])
        done = units.groupby("task", observed=True).size()
        fewer = [
            f"{label(task)} {done.get(task, 0)}"
            for task in tasks.NAMES
            if done.get(task, 0) < tasks.n_splits(task)
        ]
        rows.append(
            {
                "family": family,
                "systems": ", ".join(systems),
                "units": len(units),
                "fewer splits than planned for all": ", ".join(fewer),
                "hours of one core": f"{units['unit_seconds'].sum() / 3600:.1f}",
            }
        )
    return pd.DataFrame(rows)


def ratio_text(pair: Pair) -> str:
    """Return ratio and interval, marked where coverages differ."""
    mark = "" if pair.is_matched else " (!)"
    return f"{pair.ratio.mean:.3f} [{pair.ratio.lower:.3f}, {pair.ratio.upper:.3f}]{mark}"


def label(task: str) -> str:
    """Return a data set's name, with what must be said at its row."""
    return _MARKS.get(task, task)


def _targets(scores: pd.DataFrame) -> dict[str, pd.DataFrame]:
    found = {"paper's PICP": at_matched_target(scores)}
    for target in CANONICAL:
        found[f"{target:.2f}"] = scores[np.isclose(scores["target"], target)]
    return found


def _wide(
    means: pd.DataFrame,
    systems: list[str],
    cell: Callable[[pd.Series], str],
    *,
    with_target: bool = False,
) -> pd.DataFrame:
    """Return a row for each data set and a column for each system."""
    rows: dict[str, dict[str, str]] = {}
    for (task, system), mean in means.iterrows():
        if system in systems:
            row = rows.setdefault(str(task), {"data set": label(str(task))})
            if with_target:
                row["target"] = f"{mean['target']:.2f}"
            row[system] = cell(mean)
    frame = pd.DataFrame(_in_order(rows))
    shown = [name for name in ("data set", "target", *systems) if name in frame]
    return frame[shown].fillna("")


def _in_order(rows: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    """Return the paper's data sets first, then the variants."""
    return [rows[name] for name in (*PAPER_TASKS, *tasks.VARIANTS) if name in rows]


def _with_error(mean: float, error: float) -> str:
    return f"{mean:.3f}" if math.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def _setting_text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _in_size(text: str) -> tuple[float, str]:
    """Sort numbers by their size, after words."""
    try:
        return float(text), text
    except ValueError:
        return -math.inf, text


def _three(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def _short(value: float) -> str:
    return f"{value:.3g}"
