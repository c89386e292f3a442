"""Recalibration: conformal quantiles that follow the scores of new rows, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdicore import moving_quantiles
from hdiforest._utils import Array
from hdiforest._utils.checks import CallError, check_choice, check_whole_number
from hdiforest.calibration._quantiles import conformal_quantile, rows_needed
from hdiforest.calibration._result import Calibration, FixedLevel, Recalibrating, Recent, Step

_GUARANTEES: dict[Recalibrating, str] = {
    "rolling": "At least with probability c a new row is covered, if it is exchangeable with the "
    "last {window} rows; nothing is promised where rows keep changing.",
    "aci": "Row by row, and in whatever order rows come, the share of n rows that is missed "
    "exceeds 1 - c by at most (1 - c + {rate:g}) / ({rate:g} n), counted from the first of them "
    "that was taken in by this method and rate; intervals may be infinite for it. Batches that "
    "were predicted before their rows were taken in have no such bound.",
}
_MAX_STEPS = 1000  # in the history
_N_SCORES = 200  # of each coverage that stand for those of the calibration


def scores_to_start(
    scores: Sequence[Array], coverages: Sequence[float], weights: Array | None
) -> Recent:
    """Return quantiles of the scores (n,) of each coverage, in random order."""
    n = len(scores[0])
    m = min(n, max(_N_SCORES, rows_needed(coverages[-1])))
    columns = []
    for of_level in scores:
        order = np.argsort(of_level, kind="stable")
        until = np.cumsum(np.ones(n) if weights is None else weights[order])
        positions = np.searchsorted(until, (np.arange(m) + 0.5) / m * until[-1])
        columns.append(of_level[order[np.minimum(positions, n - 1)]])
    mixed = np.random.default_rng(0).permutation(m)
    return Recent(np.stack(columns, axis=1)[mixed], tuple(1 - c for c in coverages))


def check_recalibration(calibration: Calibration, method: str, window: int, rate: float) -> None:
    """Raise ValueError unless quantiles of such a window can move, as far as arguments tell."""
    check_choice("method", method, ("rolling", "aci"))
    check_whole_number("window", window)
    needed = rows_needed(calibration.coverages[-1])
    if window < needed:
        raise CallError(
            f"{{window}} must be at least {needed} for a coverage of "
            f"{calibration.coverages[-1]:g}, got {window}"
        )
    if isinstance(rate, bool) or not isinstance(rate, float | int) or not 0 < rate <= 1:
        raise ValueError(f"rate must be a number above 0 and at most 1, got {rate!r}")
    if calibration.recent is None:
        raise ValueError(
            "the file of this model holds no scores to move; calibrate the model again"
        )
    if calibration.groups is not None:
        raise ValueError("recalibrate moves quantiles of all rows: calibrate without by")


def recalibrated(
    calibration: Calibration,
    ends: Array,
    y: Array,
    method: Recalibrating,
    window: int,
    rate: float,
) -> Calibration:
    """Return the calibration with quantiles that followed new rows, the latest last.

    `ends` (n, 2, len(bases)) are the ends that `Calibration.intervals` takes. Quantiles are of the
    last `window` scores. By "rolling" they are conformal. By "aci" their share of misses moves, too
    (Gibbs and Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021). It
    starts at the share asked for if the call before was by another method or rate.

    Nothing is clipped any more, because new targets may leave the range of the training targets.
    O(window) for each score.
    """
    postprocess = replace(calibration.postprocess, clip=False)
    recent = calibration.recent
    assert recent is not None  # by `check_recalibration`
    continues = [(s.method, s.rate) for s in recent.history[-1:]] == [(method, rate)]
    levels: list[FixedLevel] = []
    scores, misses, coverage = [], [], []
    for j, level in enumerate(calibration.levels):
        new = postprocess.engine.scores(ends[..., j], y)
        target = 1 - level.coverage
        miss, moves = (recent.misses[j] if continues else target), rate if method == "aci" else 0.0
        quantiles, miss = moving_quantiles(recent.scores[:, j], new, window, target, miss, moves)
        kept = np.concatenate([recent.scores[:, j], new])[-window:]
        scores.append(kept)
        misses.append(miss)
        coverage.append(float((new <= quantiles).mean()))
        levels.append(replace(level, q_hat=float(conformal_quantile(kept, 1 - miss))))
    q_hats = tuple(level.q_hat for level in levels)
    step = Step(method, int(window), float(rate), len(y), tuple(coverage), q_hats)
    history = (*recent.history, step)[-_MAX_STEPS:]
    latest = Recent(np.stack(scores, axis=1), tuple(misses), history)
    guarantee = _GUARANTEES[method].format(window=window, rate=rate)
    moved: Any = {"levels": tuple(levels), "postprocess": postprocess, "recent": latest}
    return replace(calibration, **moved, guarantee=guarantee)
