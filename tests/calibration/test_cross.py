"""Cross-conformal calibration (CV+) against its definition, for groups, and through files."""

import json
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import hdicore
from hdiforest import HDIForestRegressor
from hdiforest._model.training_rows import TrainingRows
from hdiforest.calibration import CVPlus, JackknifePlus
from hdiforest.calibration._calibrate import calibrate_cross
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._result import CrossCalibration
from hdiforest.metrics import coverage_score
from hdiforest.serving._calibrations import calibration_arrays, calibration_of
from hdiforest.serving._parts import Parts, as_facts

from ..oracle import restored
from . import rows as made_up

X, Y = make_friedman1(400, 5, noise=1, random_state=0)
X_NEW, Y_NEW = make_friedman1(300, 5, noise=1, random_state=1)
COVERAGES = (0.5, 0.9)


FOREST = RandomForestRegressor(60, random_state=0).fit(X, Y)


def fitted(**options):
    return HDIForestRegressor.from_forest(FOREST, X, Y, n_jobs=1, **options)


@pytest.fixture(scope="module")
def model():
    return fitted().calibrate(coverage=COVERAGES, method=CVPlus(4), random_state=0)


def kth(shifts, scores, k, weights=None):
    """The k-th smallest of shifted scores for each column of shifts (K, n), as the upper end."""
    folds = [None if e is None else [own.reshape(-1, 1) for own in e] for e in (scores, weights)]
    finish = hdicore.PostProcess(0.0, 0.0, clip=False)
    cross = hdicore.CrossCalibration(folds[0], [k], finish, folds[1])
    ends = np.stack([np.full(shifts.shape, -np.inf), shifts], axis=2)
    return cross.widen(ends[..., np.newaxis], [0])[:, 1, 0]


def test_sample_weights_are_weights_of_the_scores(tmp_path):
    """Half of the rows are noisy, and have two thirds of the weight."""
    X, y, weights = made_up.two_kinds_of_rows(np.random.default_rng(4), 1000)
    forest = RandomForestRegressor(50, min_samples_leaf=10, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, y, sample_weight=weights)
    model.calibrate(coverage=(0.5, 0.8), method=CVPlus(4), random_state=0)
    calibration = model.calibration_
    assert calibration.level(0.8).cross_check.coverage == pytest.approx(0.8, abs=0.04)
    new, target, weights = made_up.two_kinds_of_rows(np.random.default_rng(5), 3000)
    intervals = model.predict_interval(new, 0.8)
    share = coverage_score(target, intervals, sample_weight=weights)
    assert 0.77 < share < 0.87
    assert coverage_score(target, intervals) > share + 0.03
    assert "weights" in calibration.guarantee
    model.save(tmp_path / "m")
    loaded = HDIForestRegressor.load(tmp_path / "m")
    assert_array_equal(loaded.predict_interval(new, 0.5), model.predict_interval(new, 0.5))


def slow_interval(ends, scores, coverage):
    """Interval of one row by the ends (K, 2) of each fold's forest and its scores."""
    lowers, uppers = [], []
    for (lower, upper), own in zip(ends, scores, strict=True):
        lowers += [lower - e for e in own]
        uppers += [upper + e for e in own]
    k = math.ceil((len(uppers) + 1) * coverage - 1e-9)
    if k > len(uppers):
        return -math.inf, math.inf
    low, high = sorted(lowers, reverse=True)[k - 1], sorted(uppers)[k - 1]
    return (low, high) if low <= high else ((low + high) / 2,) * 2


def test_intervals_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    sizes, coverages = (7, 11, 5), (0.3, 0.6, 0.9, 0.95)
    y = [rng.normal(size=n) for n in sizes]
    ends = [np.sort(rng.normal(size=(n, 2, 4)), axis=1) for n in sizes]
    postprocess = PostProcess.from_targets(np.concatenate(y), clip=False)
    coverages = (*coverages, 0.97)
    with pytest.warns(
        UserWarning, match="0.97 are infinite: 23 .* needed are 33 for 0.97"
    ) as warned:
        calibration = calibrate_cross(
            [np.concatenate([e, e[..., :1]], axis=2) for e in ends], y, coverages, postprocess
        )
    assert warned[0].filename == __file__
    assert calibration.n == 23
    new = np.sort(rng.normal(size=(3, 20, 2, 5)), axis=2)
    found = calibration.intervals(new)
    for i in range(20):
        inner = (math.inf, -math.inf)
        for j, coverage in enumerate(coverages[:4]):
            scores = [
                [max(low - t, t - high) for (low, high), t in zip(e[..., j], targets, strict=True)]
                for e, targets in zip(ends, y, strict=True)
            ]
            low, high = slow_interval(new[:, i, :, j], scores, coverage)
            inner = (min(inner[0], low), max(inner[1], high))
            assert_allclose(found[i, :, j], inner, atol=1e-12)
    assert calibration.level(0.6).cross_check is not None
    assert calibration.level(0.95).cross_check is None  # the second fold leaves 12 rows


def test_the_cross_check_widens_each_fold_by_the_others():
    y = [np.array([0.0, 0.0, 0.0]), np.array([10.0, 10.0, 10.0])]
    ends = [np.zeros((3, 2, 1)), np.zeros((3, 2, 1))]
    found = calibrate_cross(ends, y, (0.5,), PostProcess.from_targets([-20.0, 20.0]))
    # Widened by 10, the first fold's intervals cover; widened by 0, the second's do not.
    assert found.levels[0].cross_check.coverage == 0.5
    assert found.levels[0].realised == 0.5


def test_a_model_covers_and_its_intervals_are_nested(model):
    calibration = model.calibration_
    assert isinstance(calibration, CrossCalibration)
    assert calibration.n == len(Y)
    assert [len(own) for own in calibration.scores] == [100] * 4
    intervals = model.predict_interval(X_NEW, [0.9, 0.5])
    assert_array_equal(model.predict_interval(X_NEW), intervals[..., 0])
    inside = (intervals[:, 0] <= Y_NEW[:, None]) & (Y_NEW[:, None] <= intervals[:, 1])
    assert 0.88 < inside[:, 0].mean() < 0.99
    assert (intervals[:, 0, 0] <= intervals[:, 0, 1]).all()
    assert (intervals[:, 1, 1] <= intervals[:, 1, 0]).all()
    assert "2c - 1 - 0.015" in calibration.guarantee
    assert "by 4 folds" in repr(calibration)
    assert "by 4 folds" in calibration._repr_html_()


def test_blocks_and_threads_change_no_bit(model, monkeypatch):
    whole = model.predict_interval(X_NEW, COVERAGES)
    monkeypatch.setattr("hdiforest.calibration._cv_plus.FoldIntervals.max_ends", 4 * 77)
    model.n_jobs = 2
    assert_array_equal(model.predict_interval(X_NEW, COVERAGES), whole)


def persons(n, seed):
    """Twenty rows of each person: what the features do not tell is the person's own."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), 20)
    trait = rng.normal(size=(n, 2))[person] + rng.normal(scale=0.01, size=(20 * n, 2))
    return trait, 3 * rng.normal(size=n)[person] + 0.1 * rng.normal(size=20 * n), person


def test_groups_make_intervals_that_cover_new_groups():
    rows, y, person = persons(30, 0)
    new_rows, new_y, _ = persons(100, 1)
    model = HDIForestRegressor(RandomForestRegressor(60, random_state=0), calibration=False).fit(
        rows, y
    )

    def coverage():
        lower, upper = model.predict_interval(new_rows, 0.8).T
        return ((lower <= new_y) & (new_y <= upper)).mean()

    model.calibrate(coverage=0.8)
    assert coverage() < 0.3
    model.calibrate(coverage=0.8, method=CVPlus(5, person), random_state=0)
    assert coverage() > 0.7
    assert "new groups" in model.calibration_.guarantee
    model.calibrate(coverage=0.8)
    assert model._fitted.calibrated.folds == ()


@pytest.mark.parametrize("names", [list("abcabcabcd"), [1, 2, 3, 1, 2, 3, 1, 2, 3, "x"]])
def test_folds_keep_groups_together(names):
    rows = TrainingRows(np.zeros((10, 1), np.float32), np.zeros(10), None, None, True)
    held_out = [test for _, test in CVPlus(4, names)._split(rows, 0)]
    assert sorted(np.concatenate(held_out)) == list(range(10))
    for test in held_out:
        assert len({names[i] for i in test}) == 1


def test_forests_that_use_all_rows_in_each_tree():
    forest = ExtraTreesRegressor(30, min_samples_leaf=5, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"or calibrate\(method='cv\+'\)"):
        model.calibrate(coverage=0.9)
    model.calibrate(coverage=0.9, method=CVPlus(3), random_state=0)
    lower, upper = model.predict_interval(X_NEW).T
    assert 0.87 < ((lower <= Y_NEW) & (upper >= Y_NEW)).mean() < 0.99


def test_rows_of_weight_zero_give_no_scores():
    weight = np.where(np.arange(len(Y)) % 4 == 0, 0.0, 1.0)
    model = HDIForestRegressor(RandomForestRegressor(40, random_state=0), calibration=False)
    model.fit(X, Y + 1e6 * (weight == 0), weight)
    model.calibrate(coverage=0.9, method=CVPlus(3), random_state=0)
    assert model.calibration_.n == 300
    assert model.calibration_.levels[0].mean_width < 100


def test_pickles_and_files_hold_all_folds(tmp_path):
    options = {"method": CVPlus(2), "mean": "boosting"}
    model = fitted().calibrate(coverage=COVERAGES, **options, random_state=0)
    expected = model.predict_interval(X_NEW, COVERAGES)
    model.save(tmp_path / "m.hdi", training_rows=False)
    for copy in (pickle.loads(pickle.dumps(model)), HDIForestRegressor.load(tmp_path / "m.hdi")):
        assert_array_equal(copy.predict_interval(X_NEW, COVERAGES), expected)
        assert repr(copy.calibration_) == repr(model.calibration_)
    with pytest.raises(ValueError, match="loaded from a file has none to fit"):
        HDIForestRegressor.load(tmp_path / "m.hdi").calibrate(method="cv+")


@pytest.mark.filterwarnings("ignore:intervals of coverage 0.95 are infinite")
def test_arrays_hold_all():
    y = [np.arange(5.0), np.arange(3.0)]
    ends = [np.zeros((5, 2, 2)), np.zeros((3, 2, 2))]
    record = calibrate_cross(
        ends, y, (0.5, 0.95), PostProcess.from_targets(np.arange(9.0)), grouped=True
    )
    assert record.levels[1].cross_check is None
    assert record.levels[1].mean_width == np.inf
    again = calibration_of(Parts(calibration_arrays(record)))
    assert repr(again) == repr(record)
    assert again.postprocess == record.postprocess
    for own, expected in zip(again.scores, record.scores, strict=True):
        assert_array_equal(own, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"sizes": np.array([5, 4])},
            r"scores must be float64 of shape \(9, 2\), got float64 of shape \(8, 2",
        ),
        ({"sizes": np.array([8])}, "two folds or more"),
        ({"levels": []}, "scores must be float64"),
        ({"levels": [{}, {}]}, "its facts are not .* 'cross_check'"),
        ({"scores": np.zeros((8, 3))}, "scores must be float64"),
        ({"scores": -np.arange(16.0).reshape(8, 2)}, "scores must be finite and ascend"),
        ({"more": np.zeros(1)}, "it has the tensor 'more', which"),
    ],
)
def test_hostile_arrays_get_one_sentence(change, message):
    y = [np.arange(5.0), np.arange(3.0)]
    ends = [np.zeros((5, 2, 2)), np.zeros((3, 2, 2))]
    arrays = calibration_arrays(
        calibrate_cross(ends, y, (0.5, 0.6), PostProcess.from_targets(np.arange(9.0)))
    )
    facts = json.loads(arrays["facts"].tobytes())
    for name, value in change.items():
        (facts if name in facts else arrays)[name] = value
    with pytest.raises(ValueError, match=message) as error:
        calibration_of(Parts(arrays | {"facts": as_facts(facts)}))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("n_folds", "groups", "message"),
    [
        (1, None, "n_folds must be a whole number from 2 on, got 1"),
        (2.5, None, "n_folds must be a whole number"),
        (401, None, "n_folds must be at most the number of training rows, 400, got 401"),
        (10, np.zeros(3), r"groups must have shape \(400,\), got \(3,\)"),
        (10, [None, *range(399)], "groups must name a group for every row, and row 0"),
        (10, [1.5, math.nan] * 200, "groups must name .* row 1 has nan"),
        (10, np.arange(400) % 3, "groups must be 10 or more, as many as n_folds, got 3"),
    ],
)
def test_refused_folds(n_folds, groups, message):
    model = fitted()
    with pytest.raises(ValueError, match=message):
        model.calibrate(coverage=0.9, method=CVPlus(n_folds, groups))


def test_a_missing_group_of_pandas():
    pandas = pytest.importorskip("pandas")
    groups = pandas.Series(["a", pandas.NA, "b", "c"] * 100, dtype="string")
    with pytest.raises(ValueError, match="groups must name a group for every row, and row 1"):
        fitted().calibrate(coverage=0.9, method=CVPlus(2, groups))


def test_another_mean_needs_rows_out_of_bag():
    forest = ExtraTreesRegressor(30, random_state=0)
    model = HDIForestRegressor(forest, calibration=False).fit(X, Y)
    message = "mean must be None, because another one needs at least 20 trees"
    for options in ({"method": "cv+"}, {"X": X_NEW, "y": Y_NEW}):
        with pytest.raises(ValueError, match=message):
            model.calibrate(coverage=0.9, **options, mean="boosting")


@pytest.fixture(scope="module")
def jackknifed():
    return fitted().calibrate(coverage=COVERAGES, method=JackknifePlus(60), random_state=0)


def test_the_jackknife_leaves_each_row_out(jackknifed):
    """By definition: for row i a forest of the trees that did not draw it, read by numpy."""
    forest, calibration = jackknifed.estimator_, jackknifed.calibration_
    drawn = jackknifed._fitted.calibrated.drawn
    counts = np.array([np.bincount(bag, minlength=400) for bag in forest.estimators_samples_]).T
    rows = [int(np.flatnonzero(((counts > 0) == own).all(axis=1))[0]) for own in drawn]
    assert len(set(rows)) == calibration.n == 60
    train, new = forest.apply(X), forest.apply(X_NEW[:5])
    order = np.argsort(Y)

    def base(leaves, trees):
        weights = np.zeros(400)
        for t in trees:
            members = counts[:, t] * (train[:, t] == leaves[t])
            weights += members / members.sum()
        reached = np.cumsum(weights[order]) / weights.sum() + 1e-12
        return Y[order][[np.searchsorted(reached, p) for p in (0.1, 0.9)]]

    scores, ends = [], []
    for i in rows:
        trees = np.flatnonzero(counts[i] == 0)
        lower, upper = base(train[i], trees)
        scores.append(max(lower - Y[i], Y[i] - upper))
        ends.append([base(leaves, trees) for leaves in new])
    found = jackknifed.predict_interval(X_NEW[:5], 0.9)
    for j in range(5):
        own = [ends[i][j] for i in range(60)]
        expected = slow_interval(own, [[e] for e in scores], 0.9)
        assert_allclose(found[j], np.clip(expected, Y.min(), Y.max()), atol=1e-9)


def test_the_jackknife_covers_and_is_stored(jackknifed, tmp_path):
    intervals = jackknifed.predict_interval(X_NEW, COVERAGES)
    inside = (intervals[:, 0] <= Y_NEW[:, None]) & (Y_NEW[:, None] <= intervals[:, 1])
    assert 0.85 < inside[:, 1].mean() < 0.99
    assert "probability 2c - 1 a new row" in jackknifed.calibration_.guarantee
    assert "by 60 rows" in repr(jackknifed.calibration_)
    jackknifed.save(tmp_path / "m.hdi", training_rows=False)
    for copy in (
        pickle.loads(pickle.dumps(jackknifed)),
        HDIForestRegressor.load(tmp_path / "m.hdi"),
    ):
        assert_array_equal(copy.predict_interval(X_NEW, COVERAGES), intervals)
    other = fitted(weights="oob")
    other.calibrate(coverage=0.9, method=JackknifePlus(60), random_state=0)
    assert_array_equal(other.predict_interval(X_NEW), intervals[..., 1])


def test_a_jackknife_needs_trees_that_leave_rows_out():
    forest = ExtraTreesRegressor(30, random_state=0)
    with pytest.raises(ValueError, match=r"method='jackknife\+' needs at least 20 trees"):
        HDIForestRegressor(forest, calibration=False).fit(X, Y).calibrate(method="jackknife+")


def test_a_stored_jackknife_is_checked(jackknifed):
    drawn = jackknifed._fitted.calibrated.drawn.astype(np.uint8)
    for wrong, message in (
        (drawn[:, 1:], r"drawn must be uint8 of shape \(any, 60\)"),
        (drawn[1:], r"drawn must be bool of shape \(60, 60\)"),
    ):
        with pytest.raises(ValueError, match=message):
            restored(jackknifed, arrays={"jackknife.drawn": wrong})
    for group, message in (
        ("jackknife", "jackknife.drawn is missing"),
        ("jackknife.index", "arrays must"),
    ):
        with pytest.raises(ValueError, match=message):
            restored(jackknifed, without=group)


@pytest.mark.parametrize("n_each", [1, 7])
def test_rounding_leaves_no_target_out(n_each):
    """A target that is a shifted score itself is covered, although neither sum is exact."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        targets = rng.integers(0, 30, (40, n_each)) / 10
        shifts = rng.normal(size=(40, 1)) * 10 ** rng.uniform(-3, 3, (40, 1))
        scores = [np.sort(own - shift) for own, shift in zip(targets, shifts, strict=True)]
        for k in (1, 20 * n_each, 40 * n_each):
            assert kth(shifts, scores, k)[0] >= np.sort(targets, axis=None)[k - 1]
