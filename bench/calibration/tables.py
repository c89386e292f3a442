"""The tables of the report, as data frames of text, and what they say in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from comparing import (
    REFERENCE,
    TOLERANCE,
    against_reference,
    best_peers,
    geometric_mean,
    is_valid,
    of_both,
    ratios,
)
from frames import by_set
from systems import SYSTEMS
from systems.ours import EARLIER, UNCALIBRATED

# What "width" and "interval score" are compared by.
_MEASURES = {"width": "width", "interval score": "interval_score"}
_ROUNDED_AWAY = 0.005  # of a ratio with two decimals


def headline(scores: pd.DataFrame, nominal: float) -> pd.DataFrame:
    """Return each system over all its data sets, at one nominal coverage."""
    means = by_set(scores)
    best = {measure: best_peers(means, nominal, measure) for measure in _MEASURES.values()}
    rows = []
    for system in scores["system"].cat.categories:
        if system not in means.index.get_level_values("system"):
            continue
        mine = means.xs(system, level="system")
        row = {
            "system": system,
            "sets": str(len(mine)),
            "splits": _range(mine["splits"]),
            "mean coverage": _three(mine["coverage"].mean()),
            "mean distance from nominal": _three((mine["coverage"] - nominal).abs().mean()),
            "least coverage": f"{mine['coverage'].min():.3f} ({mine['coverage'].idxmin()})",
        }
        for title, measure in _MEASURES.items():
            to_reference = geometric_mean(against_reference(scores, system, measure))
            to_best = geometric_mean(ratios(scores, system, best[measure], measure))
            row[f"{title} / {REFERENCE}"] = _two(to_reference)
            row[f"{title} / best valid peer of each set"] = _two(to_best)
        for by in ("width", "prediction", "feature"):
            row[f"worst fifth by {by}"] = _three(mine[f"worst by {by}"].mean())
        row["s to fit"] = f"{mine['fit_seconds'].mean():.1f}"
        row["s to predict"] = f"{mine['predict_seconds'].mean():.2f}"
        rows.append(row)
    return pd.DataFrame(rows)


def split_by_split(scores: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Return one system beside another for each pair, on the splits that both have.

    Ratios are geometric means over data sets; coverages are means over them.
    """
    return pd.DataFrame(
        pair_row(rows, *pair) for pair in pairs if len(rows := of_both(scores, *pair))
    )


def pair_row(rows: pd.DataFrame, system: str, other: str) -> dict[str, str]:
    """Return what `split_by_split` says of one pair."""
    means = by_set(rows)
    mine, its = (means.xs(name, level="system") for name in (system, other))
    row = {
        "system": system,
        "beside": other,
        "sets": str(len(mine)),
        "splits": _range(mine["splits"]),
    }
    for title, measure in _MEASURES.items():
        # Without sets of points, whose intervals have no width.
        ratio = (mine[measure] / its[measure])[(mine[measure] > 0) & (its[measure] > 0)]
        row[f"{title}, ratio"] = _three(geometric_mean(ratio))
        row[f"{title}, median set"] = _three(ratio.median())
        row[f"{title}, largest"] = f"{ratio.max():.2f} ({ratio.idxmax()})"
    for title in ("coverage", "worst by width", "worst by prediction"):
        name = title.replace("worst", "worst fifth")
        row[name] = _three(mine[title].mean())
        row[f"{name}, beside"] = _three(its[title].mean())
    return row


def widths(scores: pd.DataFrame, nominal: float) -> pd.DataFrame:
    """Return mean width @ coverage by data set; the narrowest valid system is bold."""
    means = by_set(scores)
    valid = is_valid(means, nominal)
    narrowest = means[valid].groupby("set", observed=True)["width"].transform("min")

    def cell(key: tuple[str, str], mean: pd.Series) -> str:
        text = f"{mean['width']:.3f} @ {mean['coverage']:.3f}"
        if not valid[key]:
            return f"{text} (short)"
        return f"**{text}**" if mean["width"] == narrowest[key] else text

    return _wide(means, cell)


def one_measure(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return one measure by data set and system."""
    return _wide(by_set(scores), lambda _, mean: _three(mean[measure]))


def plain_words(scores: pd.DataFrame, nominal: float) -> list[str]:
    """Say where valid peers do better than each calibrated system of ours."""
    means = by_set(scores)
    said = []
    for system in means.index.get_level_values("system").unique():
        if not SYSTEMS[system].is_ours or system in (UNCALIBRATED, EARLIER):
            continue
        mine = means.xs(system, level="system")
        short = mine[~is_valid(mine, nominal)]
        covered = [f"{name} {coverage:.3f}" for name, coverage in short["coverage"].items()]
        lines = [f"* mean coverage more than {TOLERANCE} short: {_listed(covered)}"]
        for title, measure in _MEASURES.items():
            best = best_peers(means, nominal, measure)
            ratio = ratios(scores, system, best, measure)
            worse = ratio[ratio >= 1 + _ROUNDED_AWAY].sort_values(ascending=False)
            peers = [f"{name} ({best[name]}: {value:.2f})" for name, value in worse.items()]
            lines.append(
                f"* larger {title} than the best valid peer on {len(worse)} of {len(ratio)} sets "
                f"(peer: ours over its): {_listed(peers)}"
            )
        fifths = by_set(of_both(scores, system, REFERENCE))["worst by width"]
        fifths = fifths.unstack().reindex(columns=[system, REFERENCE])
        lower = fifths[fifths[system] < fifths[REFERENCE] - TOLERANCE]
        shown = [f"{name} ({own:.2f} for {other:.2f})" for name, own, other in lower.itertuples()]
        lines.append(
            f"* worst fifth by width covers more than {TOLERANCE} less than that of {REFERENCE} "
            f"on {len(shown)} of {len(fifths)} sets: {_listed(shown)}"
        )
        said.append("\n".join([f"**{system}, nominal {nominal:.2f}**", "", *lines]))
    return said


def _wide(means: pd.DataFrame, cell: Callable[..., str]) -> pd.DataFrame:
    text = pd.Series({key: cell(key, mean) for key, mean in means.iterrows()}, dtype=object)
    sets, systems = (means.index.get_level_values(level).categories for level in (0, 1))
    table = text.unstack()
    table = table.reindex(
        index=[name for name in sets if name in table.index],
        columns=[system for system in systems if system in table.columns],
    )
    return table.fillna("").rename_axis("data set").reset_index()


def _range(counts: pd.Series) -> str:
    least, most = counts.min(), counts.max()
    return str(least) if least == most else f"{least} to {most}"


def _two(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
