"""Boxes of several outputs against their definition, one row at a time, and their guarantee."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hdiforest._model.bases import FIXED_RAW
from hdiforest.calibration import JointCalibration
from hdiforest.calibration._candidates import Candidates
from hdiforest.calibration._outputs import OutputRows, calibrate_jointly, joint_quantiles
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._selection import Selected, first_half

from .rows import calibrate_split
from .twin import conformal_quantile, finish, intervals_of

COVERAGES = (0.5, 0.8, 0.95)


def slow_boxes(all_ends, all_y, all_train, all_selected):
    """The quantiles of each coverage and output, and the sides of the boxes of all rows."""
    d, n = len(all_y), len(all_y[0])
    inner = [[None] * n for _ in range(d)]
    found = []
    for j, coverage in enumerate(COVERAGES):
        standards = [(own[j].q_hat, own[j].scale) for own in all_selected]
        of_rows = []
        for i in range(n):
            parts = []
            for o, (location, scale) in enumerate(standards):
                (low, high), y = all_ends[o][i], all_y[o][i]
                e = max(low - y, y - high) - location
                parts.append(e / scale if scale else math.copysign(math.inf, e or -1))
            of_rows.append(max(parts))
        t = conformal_quantile(of_rows, coverage, [1.0] * n)
        found.append([a + (b * t if b else 0) for a, b in standards])
        for o in range(d):
            for i, (low, high) in enumerate(all_ends[o]):
                low, high = finish(low - found[-1][o], high + found[-1][o], all_train[o])
                old = inner[o][i] or (low, high)
                inner[o][i] = min(low, old[0]), max(high, old[1])
    return np.array(found), np.array(inner)


def made(seed, n=60):
    """Rows of three outputs of very different scale: smooth, of grades, and constant."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(2, n))
    y = [noise[0], np.round(2 * noise[0] + noise[1]) * 1000, np.full(n, 7.0)]
    centres = [0.3 * noise[0], 1000 * noise[0], np.full(n, 7.0)]
    ends = [np.stack([c - s, c + s], axis=1) for c, s in zip(centres, (0.5, 900, 0), strict=True)]
    return ends, y


@pytest.mark.parametrize("seed", range(4))
def test_boxes_by_their_definition(seed):
    ends, y = made(seed)
    train = [own.tolist() * 4 for own in y]
    quantiles, scales = ([-0.1, 0.2, 0.9], [0.0, 300.0, 900.0], [0.0] * 3), (0.5, 900.0, 0.0)
    selected = [
        [Selected(FIXED_RAW, c, q, scale) for q, c in zip(of, COVERAGES, strict=True)]
        for of, scale in zip(quantiles, scales, strict=True)
    ]
    rows = [
        OutputRows(Candidates((FIXED_RAW,), e[..., None], o, PostProcess.from_targets(t), {}), s)
        for e, o, s, t in zip(ends, y, selected, train, strict=True)
    ]
    t = joint_quantiles(rows)
    found = np.array([each.quantiles(t) for each in rows]).T
    plain = [intervals_of(e[..., np.newaxis], (FIXED_RAW,), FIXED_RAW) for e in ends]
    targets = [own.tolist() for own in y]
    q_hat, sides = slow_boxes(plain, targets, train, selected)
    np.testing.assert_allclose(found, q_hat, rtol=1e-12)
    last = np.array([each.intervals(t)[..., -1] for each in rows])
    np.testing.assert_allclose(last, sides, rtol=1e-12)
    assert (last[2] == 7).all()  # zero width
    held = [(last[o, :, 0] <= y[o]) & (y[o] <= last[o, :, 1]) for o in range(3)]
    assert np.all(held, axis=0).mean() >= 0.95


def calibrated(ends, y, train):
    """Split calibration of d outputs by rows: ends (n, d, 2), y (n, d)."""
    selected = [Selected(FIXED_RAW, c, 0.0, 1.0) for c in COVERAGES]
    own, known = [], []
    for o in range(y.shape[1]):
        base = ends[:, o, :, np.newaxis]
        options = {"selected": selected, "bases": [FIXED_RAW], "clip": False}
        own.append(calibrate_split(base, y[:, o], train[:, o], COVERAGES, **options))
        candidates = Candidates((FIXED_RAW,), base, y[:, o], own[-1].postprocess, {})
        known.append((candidates, [selected] * 3))
    return calibrate_jointly(own, known, first_half(len(y)), None)


def test_one_output_has_its_own_intervals():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(80, 1))
    ends = np.stack([np.full_like(y, -1), np.full_like(y, 1)], axis=2)
    found = calibrated(ends, y, y)
    assert isinstance(found, JointCalibration)
    np.testing.assert_allclose(found.q_hat[:, 0], [e.q_hat for e in found.outputs[0].levels])
    assert found.outputs[0].coverages == found.coverages == COVERAGES


def test_boxes_of_split_cover_as_guaranteed():
    """Rows held out: their share in the box is at least c on average over calibrations."""
    rng = np.random.default_rng(1)
    n, n_new, times = 49, 40, 80
    mix = np.array([[1.0, 0.7, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]])
    shares = np.empty((times, len(COVERAGES)))
    for i in range(times):
        errors = rng.standard_t(3, size=(n + n_new, 3)) @ mix * [1, 50, 0.01]
        ends = np.broadcast_to([[-1, 1], [-20, 20], [-0.02, 0.01]], (n, 3, 2))
        boxes = calibrated(ends, errors[:n], errors[:n]).boxes
        new = np.broadcast_to(ends[:1], (n_new, 3, 2))
        sides = [own.intervals(np.repeat(new[:, o, :, None], 3, 2)) for o, own in enumerate(boxes)]
        y = errors[n:].T[..., np.newaxis]
        held = [(s[:, 0] <= e) & (e <= s[:, 1]) for s, e in zip(sides, y, strict=True)]
        shares[i] = np.all(held, axis=0).mean(axis=0)
    error = shares.std(axis=0) / math.sqrt(times)
    assert (shares.mean(axis=0) >= np.array(COVERAGES) - 4 * error).all()
    # Scores do not tie: no more than 1 / (n + 1) too much.
    assert (shares.mean(axis=0) <= np.array(COVERAGES) + 1 / (n + 1) + 4 * error).all()


def test_calibrations_that_do_not_fit_are_refused():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(40, 2))
    found = calibrated(np.stack([y - 1, y + 0.5], axis=2), y, y)
    parts = found.levels, found.q_hat, found.names, found.method, found.n
    with pytest.raises(ValueError, match="of the same coverages"):
        JointCalibration(
            (
                found.outputs[0],
                replace(found.outputs[1], levels=found.outputs[1].levels[:1], recent=None),
            ),
            *parts,
        )
    for wrong in (found.q_hat[:, :1], found.q_hat * np.nan):
        with pytest.raises(ValueError, match="the quantiles of boxes must be"):
            JointCalibration(found.outputs, found.levels, wrong, *parts[2:])
