"""Selects the distribution and the level whose intervals are narrowest once they are widened."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._model.bases import BASE_LEVELS, Base
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import conformal_quantile
from hdiforest.metrics._intervals import interval_scores, weighted_mean

Objective = Literal["balanced", "width", "interval_score"]

# Weights of the logarithms of mean width and mean interval score, whose sum is made least. The
# weight 1.5 was chosen on the data sets that chose in bench/calibration: with 1 the score is 1 %
# larger, with 2 the width is.
OBJECTIVES: dict[Objective, tuple[float, float]] = {
    "balanced": (1.0, 1.5),
    "width": (1.0, 0.0),
    "interval_score": (0.0, 1.0),
}

# Fewer rows compare no levels: the narrowest would cover too little.
MIN_ROWS_TO_SELECT = 500
# Of twice as many rows so many select, and the others find the quantiles.
MAX_ROWS_TO_SELECT = 2000
_FIXED_LEVEL = 0.8  # of fewer rows, or the coverage if that is less

_POINT = 1e-12  # of the range of targets: a smaller mean width is a rounding


class Selected(NamedTuple):
    """The intervals of a coverage: a base, with both ends moved outwards by q_hat."""

    base: Base
    coverage: float
    q_hat: float = math.nan
    # Of boxes of several outputs, by the rows that selected; 0: all targets are equal.
    scale: float = math.nan


# Selects and widens a base for each of the coverages, which ascend, on the rows of the candidates.
Rule = Callable[[Candidates, Sequence[float]], list[Selected]]


def rule_for(n_rows: int, objective: Objective = "balanced") -> Rule:
    """Return the rule for so many calibration rows: below 500 no levels are compared."""
    check_choice("objective", objective, OBJECTIVES)
    compared = objective if n_rows >= MIN_ROWS_TO_SELECT else None
    return partial(select, objective=compared)


def select(
    candidates: Candidates, coverages: Sequence[float], *, objective: Objective | None
) -> list[Selected]:
    """Select the distribution of least CRPS, and the `best` of its bases for each coverage.

    The first distribution wins a tie.
    """
    losses = {
        group: pinball_loss(quantiles, candidates.y, candidates.weights)
        for group, quantiles in candidates.quantiles.items()
    }
    sharp = candidates.of_group(min(losses, key=losses.__getitem__))
    return [best(sharp, coverage, objective) for coverage in coverages]


def pinball_loss(quantiles: Array, y: Array, weights: Array | None = None) -> float:
    """Return the mean pinball loss of quantiles (n, 19) at `BASE_LEVELS`, about half of the CRPS.

    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102,
    2007, section 6.2.
    """
    levels = np.array(BASE_LEVELS)
    above = y[:, np.newaxis] - quantiles
    losses = np.maximum(levels * above, (levels - 1) * above)
    return float(weighted_mean(losses.mean(axis=1), weights))


def best(candidates: Candidates, coverage: float, objective: Objective | None) -> Selected:
    """Select the base with the least objective of its finished intervals. The largest wins a tie.

    Without an objective the level is the largest one up to 0.8 and to the coverage. O(n m).
    """
    levels = [base.level for base in candidates.bases]
    positions = sorted(range(len(levels)), key=lambda j: -levels[j])
    if objective is None:
        most = max(min(_FIXED_LEVEL, coverage), min(levels))
        positions = [j for j in positions if levels[j] <= most][:1]
    postprocess, y, weights = candidates.postprocess, candidates.y, candidates.weights
    ends = candidates.ends[..., positions]
    q_hat = conformal_quantile(postprocess.engine.scores(ends, y).T, coverage, weights=weights)
    lower, upper = np.moveaxis(postprocess.engine.widen(ends, q_hat), 1, 0)
    scored = interval_scores(y[:, np.newaxis], lower, upper, 1 - coverage)
    width, score = (weighted_mean(of, weights) for of in (upper - lower, scored))
    width = np.where(width > _POINT * (postprocess.high - postprocess.low), width, 0.0)
    j = 0 if objective is None else int(np.argmin(loss(width, score, objective)))
    scale = scale_of(width[j], postprocess)
    return Selected(candidates.bases[positions[j]], coverage, float(q_hat[j]), scale)


def loss(width: ArrayLike, score: ArrayLike, objective: Objective) -> Array:
    """Return the objective of mean widths and mean interval scores, which is made least."""
    weighed = zip(OBJECTIVES[objective], (width, score), strict=True)
    with np.errstate(divide="ignore"):  # points: minus infinity, which is least
        return np.asarray(sum(weight * np.log(mean) for weight, mean in weighed if weight))


def scale_of(mean_width: float, postprocess: PostProcess) -> float:
    """Return half a mean width; half the range of targets if intervals are infinite or points."""
    is_width = 0 < mean_width < np.inf
    return float(mean_width if is_width else postprocess.high - postprocess.low) / 2


def widened(
    candidates: Candidates, selected: Sequence[Selected], confidence: float | None = None
) -> list[Selected]:
    """Find the quantiles of what was selected before; all else stays."""
    options: Any = {"weights": candidates.weights, "confidence": confidence}
    scores = [scores_of(candidates, each) for each in selected]
    pairs = zip(selected, scores, strict=True)
    q_hat = [float(conformal_quantile(own, each.coverage, **options)) for each, own in pairs]
    return [each._replace(q_hat=q) for each, q in zip(selected, q_hat, strict=True)]


def reselected(selected: Sequence[Selected], confidence: float | None = None) -> Rule:
    """Return the rule that takes what was selected, and finds its quantiles."""
    return lambda candidates, _: widened(candidates, selected, confidence)


def scores_of(candidates: Candidates, selected: Selected) -> Array:
    """Return the scores (n,) that the quantile of what was selected is one of."""
    return candidates.postprocess.engine.scores(candidates.ends_of(selected.base), candidates.y)


def quantiles_by_group(
    candidates: Candidates,
    codes: NDArray[np.intp],
    selected: Sequence[Selected],
    confidence: float | None = None,
) -> Array:
    """Return the conformal quantiles of each group by itself, (g, k); NaN if it has too few rows.

    `codes` (n,) are the groups of the candidates' rows, from 0 on.
    """
    groups = (candidates.rows(codes == code) for code in range(int(codes.max()) + 1))
    q_hat = [[each.q_hat for each in widened(rows, selected, confidence)] for rows in groups]
    return np.where(np.isfinite(q_hat), q_hat, np.nan)


def calibrated_intervals(
    candidates: Candidates, selected: Sequence[Selected], q_hat: Array | None = None
) -> Array:
    """Return intervals (n, 2, k) for k ascending coverages, by quantiles (n, k) if given."""
    ends = np.stack([candidates.ends_of(each.base) for each in selected], axis=-1)
    common = np.array([each.q_hat for each in selected])
    quantiles = common if q_hat is None else q_hat
    return candidates.postprocess.engine.widen(ends, quantiles, nested=True)


def first_half(n: int) -> NDArray[np.bool_]:
    """Return which of n rows are in the first of two random halves, the same for each n."""
    in_first = np.zeros(n, dtype=bool)
    in_first[np.random.default_rng(0).permutation(n)[: n // 2]] = True
    return in_first
