"""The results in plain words, each sentence counted from them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from comparing import (
    PAPER_TASKS,
    Pair,
    along_curve,
    at_matched_target,
    at_own_target,
    averaged,
    is_close,
    pairs,
    pairs_at_equal_picp,
    signed_rank,
    target_rules,
)
from protocol import SAME_FOREST
from published import TABLE_2
from tables import FOREST_PAIRS, label, ratio_text

_CLOSE = 0.05
_FEW = 6  # data sets below which a signed-rank test can show nothing
_VERDICTS = ("narrower", "no difference shown", "wider")


def summary(scores: pd.DataFrame, curves: pd.DataFrame) -> list[str]:
    """Return paragraphs on the paper's figures, on HDI against QRF, and on all other systems."""
    said = [_against_the_paper(scores), _along_the_curve(curves)]
    for heading, (system, other) in FOREST_PAIRS.items():
        rules = target_rules()
        for title in rules if system == "HDI-Forest" else ["paper's PICP"]:
            compared = pairs_at_equal_picp(curves, system, other, rules[title])
            how = f"{heading}; both at the {title} on the test parts"
            said += _reading(f"{system} against {other}", how, compared)
    for system in ("HDI-Forest", "HDI-Forest, padded"):
        said += _others(scores, system)
    return said


def _against_the_paper(scores: pd.DataFrame) -> str:
    means = averaged(at_own_target(scores[scores["system"] == "HDI-Forest"])).reset_index("system")
    groups: dict[str, list[str]] = {
        "within 5 %": [],
        "narrower": [],
        "wider": [],
        "PICP missed": [],
    }
    for task in PAPER_TASKS:
        if task not in means.index:
            continue
        mean = means.loc[task]
        ratio = mean["mpiw"] / TABLE_2[task].mpiw[0]
        if not is_close(mean["picp"], mean["target"], mean["target"]):
            group = "PICP missed"
        elif abs(ratio - 1) <= _CLOSE:
            group = "within 5 %"
        else:
            group = "narrower" if ratio < 1 else "wider"
        shown = f"{label(task)} {100 * (ratio - 1):+.0f} % at PICP {mean['picp']:.3f}"
        groups[group].append(f"{shown} for {mean['target']:.2f}")
    return (
        "**HDI-Forest against the paper's own figures**, tuned on the training part for its PICP. "
        f"MPIW within 5 %: {_listed(groups['within 5 %'])}. Narrower than printed: "
        f"{_listed(groups['narrower'])}. Wider: {_listed(groups['wider'])}. The PICP on the test "
        f"parts is not the target's: {_listed(groups['PICP missed'])}."
    )


def _along_the_curve(curves: pd.DataFrame) -> str:
    close, apart = [], []
    for task in PAPER_TASKS:
        picp, mpiw = TABLE_2[task].picp[0], TABLE_2[task].mpiw[0]
        ratio = along_curve(curves, task, "HDI-Forest", "picp", picp, "mpiw") / mpiw
        if not np.isnan(ratio):
            where = close if abs(ratio - 1) <= _CLOSE else apart
            where.append(f"{label(task)} {100 * (ratio - 1):+.0f} %")
    return (
        "The same where HDI-Forest has the paper's PICP on the test parts (level found there, "
        f"settings chosen for 0.90). MPIW within 5 %: {_listed(close)}. Further apart: "
        f"{_listed(apart)}."
    )


def _reading(names: str, how: str, compared: list[Pair]) -> list[str]:
    """Say where one reading of the forests is narrower, and by how much over all."""
    compared = [pair for pair in compared if pair.task in PAPER_TASKS]
    if not compared:
        return []
    sentences = []
    for verdict in _VERDICTS:
        mine = [f"{label(p.task)} {ratio_text(p)}" for p in compared if p.verdict == verdict]
        sentences.append(f"{verdict}: {_listed(mine)}")
    mean = np.exp(np.mean([np.log(pair.ratio.mean) for pair in compared]))
    test = f", signed-rank p = {signed_rank(compared):.2g}" if len(compared) >= _FEW else ""
    return [
        f"**{names}** ({how}), ratio of widths with its 95 % interval. {'. '.join(sentences)}. "
        f"Geometric mean over these {len(compared)} data sets {mean:.3f}{test}."
    ]


def _others(scores: pd.DataFrame, system: str) -> list[str]:
    chosen = at_matched_target(scores)
    lines = []
    for other in scores["system"].cat.categories:
        if other in (system, SAME_FOREST):
            continue
        compared = [p for p in pairs(chosen, system, other) if p.task in PAPER_TASKS]
        if not compared:
            continue
        fair = [pair for pair in compared if pair.is_matched]
        found = [
            f"{verdict}: {_listed([label(p.task) for p in fair if p.verdict == verdict])}"
            for verdict in _VERDICTS
        ]
        apart = [label(pair.task) for pair in compared if not pair.is_matched]
        lines.append(f"* {other}. {'; '.join(found)}; coverages too far apart: {_listed(apart)}.")
    if not lines:
        return []
    return [f"**{system} against the others**, each tuned for the paper's PICP:", "\n".join(lines)]


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
