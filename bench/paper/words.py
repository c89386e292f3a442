"""The results in plain words, each sentence counted from them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from comparing import (
    PAPER_TASKS,
    PICP_APART,
    at_matched_target,
    at_own_target,
    averaged,
    pairs,
    signed_rank,
)
from protocol import SAME_FOREST
from published import TABLE_2
from tables import FOREST_PAIRS, ratio_text

_CLOSE = 0.05
_FEW = 6  # data sets below which a signed-rank test can show nothing


def summary(scores: pd.DataFrame) -> list[str]:
    """Return a paragraph for the paper's figures, one for each pair of readings, one for all."""
    return [_against_the_paper(scores), *_readings(scores), *_others(scores)]


def _against_the_paper(scores: pd.DataFrame) -> str:
    means = averaged(at_own_target(scores[scores["system"] == "HDI-Forest"])).reset_index("system")
    close, narrower, wider = [], [], []
    for task in PAPER_TASKS:
        if task not in means.index:
            continue
        ratio = means.loc[task, "mpiw"] / TABLE_2[task].mpiw[0]
        text = f"{task} ({100 * (ratio - 1):+.0f} %)"
        where = close if abs(ratio - 1) <= _CLOSE else narrower if ratio < 1 else wider
        where.append(text)
    return (
        f"**HDI-Forest against the paper's own figures**, tuned for its PICP: MPIW within 5 % on "
        f"{len(close)} of {len(close) + len(narrower) + len(wider)} data sets ({_listed(close)}); "
        f"narrower than printed on {_listed(narrower)}; wider on {_listed(wider)}."
    )


def _readings(scores: pd.DataFrame) -> list[str]:
    chosen = at_matched_target(scores)
    said = []
    for heading, (system, other) in FOREST_PAIRS.items():
        compared = [p for p in pairs(chosen, system, other) if p.task in PAPER_TASKS]
        if not compared:
            continue
        by_verdict: dict[str, list[str]] = {}
        for pair in compared:
            by_verdict.setdefault(pair.verdict, []).append(f"{pair.task} {ratio_text(pair)}")
        mean = np.exp(np.mean([np.log(pair.ratio.mean) for pair in compared]))
        sentences = [f"{verdict}: {_listed(names)}" for verdict, names in by_verdict.items()]
        test = f", signed-rank p {signed_rank(compared):.3g}" if len(compared) >= _FEW else ""
        said.append(
            f"**{system} against {other}** ({heading}), ratio of widths at the paper's PICP with "
            f"its 95 % interval: {'; '.join(sentences)}. Geometric mean over {len(compared)} data "
            f"sets {mean:.3f}{test}."
        )
    return said


def _others(scores: pd.DataFrame) -> list[str]:
    chosen = at_matched_target(scores)
    said = []
    for other in scores["system"].cat.categories:
        if other in ("HDI-Forest", SAME_FOREST):
            continue
        compared = [p for p in pairs(chosen, "HDI-Forest", other) if p.task in PAPER_TASKS]
        if not compared:
            continue
        fair = [pair for pair in compared if pair.is_matched]
        count = {
            verdict: sum(pair.verdict == verdict for pair in fair)
            for verdict in ("narrower", "no difference shown", "wider")
        }
        apart = [pair.task for pair in compared if not pair.is_matched]
        left_out = f"; PICP more than {PICP_APART} apart on {_listed(apart)}" if apart else ""
        said.append(
            f"* HDI-Forest against {other}: narrower on {count['narrower']}, wider on "
            f"{count['wider']}, no difference shown on {count['no difference shown']} of "
            f"{len(fair)} data sets{left_out}."
        )
    return ["\n".join(said)]


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
