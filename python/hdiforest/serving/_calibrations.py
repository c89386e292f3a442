"""Calibrations as arrays and facts, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import repeat
from typing import Any, TypeVar, get_args

import numpy as np

from hdicore import kinds, read_calibration
from hdiforest._model.bases import FAMILIES, FIXED_RAW, Base
from hdiforest._tables.names import names_of_targets
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, check_whole_number, printable
from hdiforest.calibration._distribution import PredictiveDistribution
from hdiforest.calibration._groups import Groups
from hdiforest.calibration._methods import METHODS
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._result import (
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    JointCalibration,
    LaterCheck,
    Level,
    Recalibrating,
    Recent,
    Step,
)
from hdiforest.calibration._tails import TailCalibration, TailLevel
from hdiforest.serving._parts import Arrays, Facts, Parts, as_facts, as_written

_TAIL_METHODS = ("oob", "split")
_VERSION = 1  # of the array `numbers`, which the engine reads
_METHODS = tuple(METHODS)  # by the numbers that files have
_NO_GUARANTEE = "The file does not say what is promised."  # of commits before the first release
_LABELS = (float, type(None), str)  # types of labels of groups, in the order of their codes

Check = TypeVar("Check", CrossCheck, LaterCheck)


def calibration_arrays(calibration: Calibration | CrossCalibration) -> Arrays:
    """Return what `calibration_of` makes an equal calibration of."""
    arrays: dict[str, Any] = {"numbers": _numbers(calibration)}
    facts: Facts = {"levels": list(map(_level_facts, calibration.levels))}
    facts["guarantee"] = calibration.guarantee
    if isinstance(calibration, CrossCalibration):
        arrays["scores"] = np.concatenate(calibration.scores)
        if calibration.weights is not None:
            arrays["weights"] = np.concatenate(calibration.weights)
        arrays["sizes"] = np.array(list(map(len, calibration.scores)), dtype=np.int64)
        facts["grouped"] = calibration.grouped
        return arrays | {"facts": as_facts(facts)}
    facts |= {name: getattr(calibration, name) for name in ("n", "confidence", "weighted")}
    facts["min_samples_leaf"] = calibration.bases[0].min_samples_leaf
    if (groups := calibration.groups) is not None:
        texts = [label for label in groups.labels if isinstance(label, str)]
        numbers = {"counts": groups.counts.tolist(), "coverage": groups.coverage.tolist()}
        facts["groups"] = {"texts": texts} | numbers
    if (recent := calibration.recent) is not None:
        arrays["recent_scores"] = recent.scores
        history = [step._asdict() for step in recent.history]
        facts["recent"] = {"misses": recent.misses, "history": history}
    return arrays | {"facts": as_facts(facts)}


def _numbers(calibration: Calibration | CrossCalibration) -> Array:
    """Return what answers need, in the order of ``docs/file_format.md``."""
    postprocess, labels, q_hat = calibration.postprocess, [], np.empty(0)
    family, feature, distribution = FAMILIES[0], None, np.empty((2, 0))
    levels = [
        (coverage, kinds()[kind]["number"], *rest)
        for coverage, kind, *rest in _stored_levels(calibration)
    ]
    if isinstance(calibration, Calibration):
        family = calibration.bases[0].family
        if (groups := calibration.groups) is not None:
            feature, q_hat = groups.feature, groups.q_hat
            for label in groups.labels:
                number = label if isinstance(label, float) else math.nan
                labels.append((_LABELS.index(type(label)), number))
        if calibration.distribution is not None:
            distribution = np.stack(
                [calibration.distribution.levels, calibration.distribution.scores]
            )
    lattice, targets = postprocess.lattice, postprocess.targets
    targets = np.empty(0) if targets is None else targets
    head = [
        *(_VERSION, _METHODS.index(calibration.method), FAMILIES.index(family), len(levels)),
        *(postprocess.clip, lattice is not None, len(targets), len(labels)),
        *(-1 if feature is None else feature, distribution.shape[1]),
        *(postprocess.low, postprocess.high, *(lattice or repeat(math.nan, 3))),
    ]
    parts = [head, levels, targets, labels, q_hat, distribution]
    return np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])


def _stored_levels(
    calibration: Calibration | CrossCalibration,
) -> list[tuple[float, str, float, float]]:
    """Return of each coverage the interval that is read, and what widens it or is needed."""
    if isinstance(calibration, Calibration):
        levels = calibration.levels
        return [(each.coverage, each.base.kind, each.base.level, each.q_hat) for each in levels]
    pairs = zip(calibration.coverages, calibration.needed, strict=True)
    return [(coverage, FIXED_RAW.kind, FIXED_RAW.level, needed) for coverage, needed in pairs]


def calibration_of(parts: Parts) -> Calibration | CrossCalibration:
    """Return the calibration that `calibration_arrays` took apart; ValueError if it is damaged."""
    stored = read_calibration(parts.array("numbers", "float64", (None,)))
    low, high = stored["range"]
    targets = stored["targets"] if len(stored["targets"]) else None
    lattice = stored["lattice"] and Lattice(*stored["lattice"])
    postprocess = PostProcess(low, high, lattice, stored["clip"], targets)
    has_forests = METHODS[stored["method"]].has_forests
    make: Any = _cross_calibration if has_forests else _calibration
    with as_written():
        calibration: Calibration | CrossCalibration = make(parts, stored, postprocess)
    parts.require_empty()
    return calibration


def _calibration(parts: Parts, stored: dict[str, Any], postprocess: PostProcess) -> Calibration:
    facts: Any = parts.facts("facts")
    check_whole_number("n", facts["n"], 1)
    least, groups, recent, distribution = facts["min_samples_leaf"], None, None, None
    levels = tuple(
        FixedLevel(
            coverage=coverage,
            base=Base(stored["family"], kind, share, least),
            q_hat=q_hat,
            later=_check(LaterCheck, level.pop("later")),
            **_level(level),
        )
        for level, (coverage, kind, share, q_hat) in zip(
            facts["levels"], stored["levels"], strict=True
        )
    )
    if stored["groups"] is not None:
        groups = _groups(facts["groups"], *stored["groups"])
    if "recent" in facts:
        scores = np.array(parts.array("recent_scores", "float64", (None, len(levels))))
        history = tuple(map(_step, facts["recent"]["history"]))
        recent = Recent(scores, tuple(map(float, facts["recent"]["misses"])), history)
    if stored["distribution"] is not None:
        shares, scores = stored["distribution"]
        distribution = PredictiveDistribution(shares, scores, postprocess)
    about = facts["n"], facts["confidence"], bool(facts["weighted"])
    guarantee = printable(facts.get("guarantee", _NO_GUARANTEE))
    others = groups, distribution, recent
    return Calibration(stored["method"], levels, postprocess, *about, *others, guarantee=guarantee)


def _groups(
    facts: Facts, feature: int | None, labels: Sequence[float | None], q_hat: Array
) -> Groups:
    texts = list(facts["texts"])
    names: list[Any] = []
    for label in labels:
        names.append(texts.pop(0) if label is not None and math.isnan(label) else label)
    counts = np.array(facts["counts"], dtype=np.int64)
    return Groups(
        tuple(names), counts, q_hat, np.array(facts["coverage"], dtype=np.float64), feature
    )


def _cross_calibration(
    parts: Parts, stored: dict[str, Any], postprocess: PostProcess
) -> CrossCalibration:
    facts: Any = parts.facts("facts")
    levels = tuple(Level(**_level(level)) for level in facts["levels"])
    sizes = parts.array("sizes", "int64", (None,))
    if (sizes < 0).any():
        raise ValueError("sizes of folds must not be negative")
    shape, ends = (int(sizes.sum()), len(levels)), np.cumsum(sizes)[:-1]
    scores = np.split(np.array(parts.array("scores", "float64", shape)), ends)
    weights = parts.optional("weights", "float64", shape)
    of_folds = None if weights is None else tuple(np.split(np.array(weights), ends))
    about = postprocess, bool(facts["grouped"]), stored["method"]
    guarantee = printable(facts.get("guarantee", _NO_GUARANTEE))
    calibration = CrossCalibration(levels, tuple(scores), *about, of_folds, guarantee)
    if _stored_levels(calibration) != stored["levels"]:
        raise ValueError("its numbers are not those of its scores")
    return calibration


def boxes_arrays(calibration: JointCalibration) -> Arrays:
    """Return what a calibration of several outputs has that those of its outputs have not."""
    facts = {"levels": list(map(_level_facts, calibration.levels))}
    return {"q_hat": calibration.q_hat, "facts": as_facts(facts)}


def boxes_of(parts: Parts, outputs: Sequence[Any], names: Sequence[str] | None) -> JointCalibration:
    """Return the calibrations of several outputs together."""
    calibrations = [each.calibration for each in outputs]
    if not all(isinstance(each, Calibration) for each in calibrations):
        raise ValueError("each of several outputs must have a calibration that is not by folds")
    with as_written():
        levels = tuple(Level(**_level(each)) for each in parts.facts("facts")["levels"])
    if tuple(level.coverage for level in levels) != calibrations[0].coverages:
        raise ValueError("the coverages of boxes must be those of each output")
    q_hat = np.array(parts.array("q_hat", "float64", (len(levels), len(calibrations))))
    parts.require_empty()
    shared = names_of_targets(names, len(calibrations)), calibrations[0].method, calibrations[0].n
    return JointCalibration(tuple(calibrations), levels, q_hat, *shared)


def _level_facts(level: Level) -> Facts:
    """Return what is known of a coverage beside what answers need."""
    answers = {"base", "q_hat"} | ({"coverage"} if isinstance(level, FixedLevel) else set())
    return {name: value for name, value in asdict(level).items() if name not in answers}


def _level(facts: Facts) -> dict[str, Any]:
    """Return the fields of a `Level`."""
    check = _check(CrossCheck, facts.pop("cross_check"))
    return {"cross_check": check} | _floats(facts)


def _check(kind: type[Check], facts: Facts | None) -> Check | None:
    return None if facts is None else kind(**_floats(facts))


def _step(facts: Facts) -> Step:
    method = facts.pop("method")
    check_choice("method", method, get_args(Recalibrating))
    numbers = _floats(facts)
    return Step(method, int(numbers.pop("window")), n=int(numbers.pop("n")), **numbers)


def _floats(facts: Facts) -> dict[str, Any]:
    """Return numbers, and tuples in place of JSON's lists."""
    return {
        name: tuple(map(_float, value)) if isinstance(value, list) else float(value)
        for name, value in facts.items()
    }


def _float(number: Any) -> float | None:
    return None if number is None else float(number)


def tail_arrays(calibration: TailCalibration) -> Arrays:
    """Return what `tails_of` makes an equal calibration of."""
    numbers = _TAIL_METHODS.index(calibration.method), calibration.n, calibration.n_events
    return {
        "numbers": np.array(numbers, dtype=np.float64),
        "levels": np.array(calibration.levels, dtype=np.float64),
    }


def tails_of(parts: Parts) -> TailCalibration:
    """Return the calibration that `tail_arrays` took apart, or raise ValueError."""
    method, n, n_events = parts.array("numbers", "float64", (3,)).tolist()
    levels = parts.array("levels", "float64", (None, len(TailLevel._fields)))
    parts.require_empty()
    is_share, infinite = (levels > 0) & (levels <= 1), levels[:, -1]
    is_proper = is_share | np.isnan(levels)
    if not (
        is_share[:, 0].all() and is_proper[:, :-1].all() and (infinite.clip(0, 1) == infinite).all()
    ):
        raise ValueError("tails: levels must lie in (0, 1], or be NaN without an end")
    if method not in (0, 1) or not 0 <= n_events <= n < 2**53:
        raise ValueError("tails: numbers must be those of a calibration")
    made = tuple(TailLevel(*level) for level in levels.tolist())
    return TailCalibration(_TAIL_METHODS[int(method)], made, int(n), int(n_events))
