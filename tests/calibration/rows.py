"""Made-up calibration rows, and calibrations of them."""

from dataclasses import replace

import numpy as np

from hdiforest._utils.checks import checked_coverages
from hdiforest.calibration import _calibrate
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import Selected, reselected, rule_for

from .twin import BASES, GROUPS, LEVELS, OF_QUANTILES


def selection(ends, y, y_train, coverages, *, bases=BASES, weights=None, **options):
    """What a rule takes, and the rule for so many rows; see `calibrate`."""
    postprocess = PostProcess.from_targets(y_train, clip=options.get("clip", True))
    middle = np.repeat(ends.mean(axis=(1, 2))[:, None], len(OF_QUANTILES), axis=1)
    quantiles = options.get("quantiles", {base.group: middle for base in bases})
    rule = rule_for(len(y), options.get("objective", "balanced"))
    candidates = Candidates(bases, ends, y, postprocess, quantiles, weights)
    return (candidates, checked_coverages(coverages)), rule


def calibrate_oob(*args, selected=None, **options):
    known, rule = selection(*args, **options)
    rule = rule if selected is None else reselected(selected)
    calibration = _calibrate.calibrate("oob", *known, rule)[0]
    return replace(calibration, guarantee="Nothing is promised of rows that are made up.")


def calibrate_split(*args, selected, confidence=None, **options):
    known, _ = selection(*args, **options)
    rule = reselected(selected, confidence)
    return _calibrate.calibrate("split", *known, rule, confidence=confidence)[0]


def chosen(base, *coverages):
    """One base for all coverages, not widened yet."""
    return [Selected(base, coverage) for coverage in coverages]


def made(n, seed=0, lattice=False):
    """Base intervals (n, 2, m) and quantiles of three distributions, and targets."""
    rng = np.random.default_rng(seed)
    centre, scale = rng.normal(5, 3, n), rng.gamma(2, 1, n)
    y = centre + scale * rng.normal(size=n)
    y = np.round(y) if lattice else y
    ends, quantiles = [], {}
    for group in GROUPS:
        middle = centre + rng.normal(size=n) * rng.uniform(0.2, 1)
        half = scale * rng.uniform(0.5, 3)
        ends += [
            np.stack([middle - level * half, middle + level * half], axis=1) for level in LEVELS
        ]
        quantiles[group] = middle[:, None] + (np.array(OF_QUANTILES) - 0.5) * half[:, None]
    return np.stack(ends, axis=-1), quantiles, y


def two_kinds_of_rows(rng, n):
    """X, which does not say of which kind a row is, y, and weights: of noisy ones twice as much."""
    noisy = np.arange(n) % 2 == 0
    X = rng.random((n, 2))
    return X, X[:, 0] + rng.normal(scale=np.where(noisy, 3.0, 0.3)), np.where(noisy, 1.5, 0.75)
