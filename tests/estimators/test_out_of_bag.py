"""Out-of-bag answers equal their definition, computed from the forest's leaves alone."""

import pickle
from dataclasses import replace
from functools import cache
from operator import attrgetter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus
from hdiforest.exceptions import OutOfBagWarning
from hdiforest.inspection import predict_matches_forest
from hdiforest.metrics import coverage_score

from .. import reference
from ..calibration import twin as calibration_twin
from ..oracle import SKLEARN, bag_counts, families, leaf_sizes

RNG = np.random.default_rng(11)
N = 90
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = np.round(2 * X[:, 0] + RNG.normal(size=N), 1)  # with ties
SAMPLE_WEIGHT = RNG.integers(1, 5, size=N).astype(float)
LEVELS = [0.0, 0.123, 0.5, 0.8765, 1.0]
WEIGHTINGS = ["all", "inbag", "oob"]
FOREST = RandomForestRegressor(25, min_samples_leaf=3, oob_score=True, random_state=0).fit(X, Y)
BOTH = np.column_stack([Y, -2 * Y])
FOREST_OF_BOTH = clone(FOREST).set_params(oob_score=False).fit(X, BOTH)


def imported(weights="all", forest=FOREST, y=Y, **options):
    return HDIForestRegressor.from_forest(forest, X, y, weights=weights, **options)


@cache
def leaves_and_counts(forest):
    return forest.apply(X), bag_counts(forest, N)


def weights_by_definition(forest, weights, sample_weight=None):
    """(N, N): how much each training row weighs for each, from the trees that did not see it."""
    leaves, counts = leaves_and_counts(forest)
    weigh = np.ones(N) if sample_weight is None else sample_weight
    dense = np.zeros((N, N))
    for i in range(N):
        shares = []
        for t in np.flatnonzero(counts[i] == 0):
            considered = {"all": weigh, "inbag": counts[:, t], "oob": weigh * (counts[:, t] == 0)}
            mass = considered[weights] * (leaves[:, t] == leaves[i, t])
            mass[i] = 0
            if mass.sum() > 0:
                shares.append(mass / mass.sum())
        dense[i] = np.mean(shares, axis=0) if shares else np.nan
    return dense


def quantile_by_definition(mass, level):
    """Smallest target with weight whose distribution function reaches the level."""
    order = np.argsort(Y, kind="stable")
    upto = np.cumsum(mass[order])
    return Y[order][np.argmax((upto > 0) & (upto >= level - 1e-9))]


@pytest.fixture(params=WEIGHTINGS)
def weights(request):
    return request.param


def test_weights_and_mean_by_definition(weights):
    model, dense = imported(weights), weights_by_definition(FOREST, weights)
    found = model.oob_.weights()
    assert found.shape == (N, N)
    assert_allclose(found.toarray(), dense, atol=2.0**-31)
    assert_allclose(model.oob_.prediction(), dense @ Y, atol=1e-7)
    assert_array_equal(found.diagonal(), 0)
    assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("inclusive", [True, False])
def test_cdf_by_definition(weights, inclusive):
    model, dense = imported(weights), weights_by_definition(FOREST, weights)

    def expected(points):
        below = points[:, None] >= Y if inclusive else points[:, None] > Y
        return (dense * below).sum(axis=1)

    assert_allclose(model.oob_.cdf(inclusive=inclusive), expected(Y), atol=1e-7)
    points = np.column_stack([np.full(N, 0.3), Y + 0.1, np.full(N, -np.inf)])
    found = model.oob_.cdf(points, inclusive=inclusive)
    assert_allclose(found, np.transpose([expected(p) for p in points.T]), atol=1e-7)


def test_quantiles_by_definition(weights):
    model, dense = imported(weights), weights_by_definition(FOREST, weights)
    expected = [[quantile_by_definition(mass, level) for level in LEVELS] for mass in dense]
    assert_array_equal(model.oob_.quantiles(LEVELS), expected)
    assert_array_equal(model.oob_.quantiles(0.5), np.array(expected)[:, 2])
    interpolated = model.oob_.quantiles(LEVELS, interpolation="linear")
    assert (interpolated[:, 1:] >= interpolated[:, :-1]).all()


def test_intervals_by_definition(weights):
    leaves, counts = leaves_and_counts(FOREST)
    considered = {"all": None, "inbag": counts, "oob": (counts == 0).astype(int)}[weights]
    query = np.where(counts > 0, -1, leaves)
    expected = []
    for i in range(0, N, 3):
        leave_out = None if weights == "inbag" else i
        atoms = reference.merge(leaves, Y, query[i], counts=considered, leave_out=leave_out)
        expected.append(reference.hdi(atoms, 0.8))
    assert_array_equal(imported(weights).oob_.interval(0.8)[::3], expected)


@cache
def atoms_by_definition(weights, forest, i, family):
    """The distribution of row i, from the trees that did not draw the row."""
    leaves, counts = leaves_and_counts(forest)
    leave_out = None if weights == "inbag" else i
    if family == "centred":
        return reference.centred_atoms(leaves, counts, Y, i)
    considered = {"all": None, "inbag": counts, "oob": (counts == 0).astype(int)}[weights]
    query = np.where(counts[i] > 0, -1, leaves[i])
    return reference.merge(leaves, Y, query, counts=considered, leave_out=leave_out)


def base_by_definition(weights, forest, i, base):
    """The interval of row i before it is widened."""
    atoms = atoms_by_definition(weights, forest, i, base.family)
    kinds = ("hdi", "equal_tailed") if base.kind == "averaged" else (base.kind,)
    return np.mean([reference.interval(atoms, base.level, kind) for kind in kinds], axis=0)


LARGER = RandomForestRegressor(40, max_samples=0.4, min_samples_leaf=2, random_state=0).fit(X, Y)


@pytest.mark.parametrize("method", ["oob", "split"])
def test_calibrated_intervals_by_definition(weights, method):
    forest = LARGER
    new = {"X": X + 0.01, "y": Y} if method == "split" else {}
    family = "centred" if weights == "all" else "raw"
    with families(family), leaf_sizes(1):
        model = imported(weights, forest)
        model.calibrate(coverage=[0.5, 0.7, 0.9], method=method, **new)
    assert [base[:3:2] for base in model.calibration_.bases] == [
        (family, level) for level in (0.5, 0.7, 0.8)
    ]
    found = model.oob_.interval([0.9, 0.5])
    assert_array_equal(model.oob_.interval([0.9, 0.5], kind="calibrated"), found)
    assert_array_equal(model.oob_.interval(0.9), found[..., 0])
    for i in range(0, N, 8):
        lower, upper, ends = np.inf, -np.inf, []
        for level in model.calibration_.levels:
            base = base_by_definition(weights, forest, i, level.base)
            low, high = base[0] - level.q_hat, base[1] + level.q_hat
            low, high = calibration_twin.finish(low, high, Y)
            lower, upper = min(lower, low), max(upper, high)
            ends.append([lower, upper])
        assert_allclose(found[i], np.transpose([ends[2], ends[0]]), rtol=0, atol=1e-9)


def test_calibrated_intervals_of_a_pruned_model_are_those_of_its_trees(weights):
    """Out of bag, too: the pruned trees drew the same rows."""
    X, y = make_regression(300, 4, noise=60, random_state=0)
    forest = RandomForestRegressor(40, max_samples=0.5, random_state=0).fit(X, y)
    model = HDIForestRegressor.from_forest(forest, X, y, weights=weights)
    plain = model.prune(15)
    assert predict_matches_forest(model) == (weights == "inbag")
    with leaf_sizes(15):
        model.calibrate()
    assert {base.min_samples_leaf for base in model.calibration_.bases} == {15}
    assert not predict_matches_forest(model)
    assert_array_equal(model.oob_.prediction(), plain.oob_.prediction())
    assert_array_equal(model.oob_.weights().toarray(), plain.oob_.weights().toarray())
    with leaf_sizes(1):
        plain.calibrate()
    for own, other in zip(model.calibration_.levels, plain.calibration_.levels, strict=True):
        assert own == replace(other, base=other.base._replace(min_samples_leaf=15))
    assert_array_equal(model.oob_.interval([0.5, 0.9]), plain.oob_.interval([0.5, 0.9]))


def test_the_calibration_has_the_coverage_of_its_own_intervals():
    X, y = make_regression(300, 4, noise=9, random_state=0)
    model = HDIForestRegressor(clone(LARGER).set_params(n_estimators=60)).fit(X, y)
    intervals = model.oob_.interval(model.calibration_.coverages)
    assert model.calibration_.n == len(y)
    for j, level in enumerate(model.calibration_.levels):
        assert coverage_score(y, intervals[..., j]) == level.realised
        assert_allclose(np.diff(intervals[..., j]).mean(), level.mean_width)
    raw = model.oob_.interval(0.9, kind="hdi")
    assert not np.array_equal(raw, model.oob_.interval(0.9))
    with pytest.raises(ValueError, match=r"one that was calibrated: .*; got 0.85; call"):
        model.oob_.interval(0.85)


@pytest.mark.parametrize("weights", ["all", "inbag"])
def test_calibrated_rows_that_every_tree_saw_warn_once(weights, tmp_path):
    new = np.random.default_rng(0).normal(size=(60, 3))
    forest = RandomForestRegressor(3, min_samples_leaf=3, random_state=0).fit(X, Y)
    model = imported(weights, forest).calibrate(new, new.sum(axis=1), coverage=0.8)
    assert model.calibration_.bases[0].family == "raw"
    seen = np.isnan(weights_by_definition(forest, weights)[:, 0])
    for output, first in (("numpy", 0), ("pandas", 1)):
        with pytest.warns(OutOfBagWarning, match="no out-of-bag interval, because") as caught:
            found = np.asarray(model.oob_.interval(0.8, output=output))[:, first:]
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert_array_equal(np.isnan(found).all(axis=1), seen)
        assert_array_equal(np.isnan(found).any(axis=1), seen)


def test_what_has_no_calibrated_intervals_out_of_bag_says_what_to_use():
    model = imported(forest=LARGER)
    with pytest.raises(AttributeError, match="this model has no calibration_; call calibrate"):
        model.oob_.interval(kind="calibrated")
    instead = r"; use kind='hdi', .* or 'split' without a regressor as mean$"
    for options, reason in [
        ({"method": CVPlus(2)}, "the model was calibrated by 'cv.'"),
        ({"method": "jackknife+"}, "the model was calibrated by 'jackknife.'"),
        ({"mean": "boosting"}, "what the other mean predicts out of fold is not kept"),
    ]:
        with families("stacked" if "mean" in options else "raw"):
            model = imported(forest=LARGER).calibrate(coverage=0.8, **options)
        message = f"^kind must not be 'calibrated' out of bag, because {reason}{instead}"
        for given in ({}, {"kind": "calibrated"}, {"output": "pandas"}):
            with pytest.raises(ValueError, match=message):
                model.oob_.interval(0.8, **given)
        assert model.oob_.interval(0.8, kind="hdi").shape == (N, 2)
    both = imported(forest=FOREST_OF_BOTH, y=BOTH)
    with pytest.raises(AttributeError, match="no calibration_"):
        both.oob_.interval(kind="calibrated")


@cache
def at_random(moved):
    options = {"bootstrap": True, "max_features": 1, "min_samples_leaf": 4, "random_state": 0}
    return ExtraTreesRegressor(30, **options).fit(X, Y + 1000 * (np.arange(N) == moved))


def test_own_target_does_not_matter_out_of_bag(weights):
    """With leaves that do not depend on y, changing y_i must leave row i's interval alone."""
    model = imported(weights, at_random(None))
    leaves, before = model.estimator_.apply(X), model.oob_.interval(0.8)
    for i in (0, 17, 80):
        other = imported(weights, at_random(i), Y + 1000 * (np.arange(N) == i))
        assert_array_equal(other.estimator_.apply(X), leaves)
        assert_array_equal(other.oob_.interval(0.8)[i], before[i])
        assert not np.array_equal(other.oob_.interval(0.8), before)


def test_sample_weights_by_definition(weights):
    forest = ExtraTreesRegressor(25, bootstrap=True, min_samples_leaf=3, random_state=0)
    model = HDIForestRegressor(forest, weights=weights, calibration=False).fit(
        X, Y, sample_weight=SAMPLE_WEIGHT
    )
    if weights == "inbag" and SKLEARN < (1, 9):
        pytest.skip("before scikit-learn 1.9 the weights multiplied the counts")
    dense = weights_by_definition(model.estimator_, weights, SAMPLE_WEIGHT)
    assert_allclose(model.oob_.weights().toarray(), dense, atol=1e-7)
    assert_allclose(model.oob_.prediction(), dense @ Y, atol=1e-6)


def test_several_outputs(weights):
    model = imported(weights, FOREST_OF_BOTH, BOTH)
    dense = weights_by_definition(FOREST_OF_BOTH, weights)
    assert_allclose(model.oob_.weights().toarray(), dense, atol=2.0**-31)
    assert_allclose(model.oob_.prediction(), dense @ BOTH, atol=1e-7)
    assert model.oob_.interval(LEVELS[1:]).shape == (N, 2, 2, 4)
    assert model.oob_.quantiles(LEVELS).shape == (N, 2, 5)
    assert model.oob_.quantiles(0.5).shape == (N, 2)
    assert model.oob_.cdf(np.zeros((N, 2, 3))).shape == (N, 2, 3)
    expected = [(dense * (column <= column[:, None])).sum(axis=1) for column in BOTH.T]
    assert_allclose(model.oob_.cdf(), np.transpose(expected), atol=1e-7)


def test_a_loaded_model_answers_the_same(weights, tmp_path):
    model = imported(weights, n_jobs=2)
    model.save(tmp_path / "model")
    loaded = HDIForestRegressor.load(tmp_path / "model")
    assert_array_equal(loaded.oob_.prediction(), model.oob_.prediction())
    assert_array_equal(loaded.oob_.weights().toarray(), model.oob_.weights().toarray())
    model.save(tmp_path / "model", training_rows=False)
    with pytest.raises(ValueError, match="saved without its training rows"):
        HDIForestRegressor.load(tmp_path / "model").oob_.cdf()


METHODS = {
    "oob_.prediction": (),
    "oob_.interval": (),
    "oob_.quantiles": (0.5,),
    "oob_.cdf": (),
    "oob_.weights": (),
}


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_every_tree_saw_warn_once(method, weights):
    forest = RandomForestRegressor(3, min_samples_leaf=3, random_state=0).fit(X, Y)
    dense = weights_by_definition(forest, weights)
    undefined = np.isnan(dense[:, 0])
    assert 0 < undefined.sum() < N
    result = method.removeprefix("oob_.")
    message = f"^{undefined.sum()} of 90 training rows have no out-of-bag {result}, because"
    with pytest.warns(UserWarning, match=message) as caught:
        found = attrgetter(method)(imported(weights, forest))(*METHODS[method])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    if method == "oob_.weights":
        assert_array_equal(np.diff(found.indptr) == 0, undefined)
        assert_allclose(found.toarray()[~undefined], dense[~undefined], atol=1e-7)
    else:
        assert_array_equal(np.isnan(found.reshape(N, -1)).any(axis=1), undefined)


@pytest.mark.parametrize("method", METHODS)
def test_forests_whose_trees_saw_all_rows(method):
    model = HDIForestRegressor(ExtraTreesRegressor(3, random_state=0), calibration=False).fit(X, Y)
    with pytest.raises(ValueError, match=f"^{method} needs a forest whose trees leave rows out"):
        attrgetter(method)(model)(*METHODS[method])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.oob_.interval(90), "did you mean 0.9"),
        (lambda model: model.oob_.interval(0.9, kind="HDI"), "kind must be"),
        (lambda model: model.oob_.quantiles(1.5), "quantiles must"),
        (lambda model: model.oob_.quantiles(0.5, interpolation="cubic"), "interpolation must"),
        (lambda model: model.oob_.cdf(np.zeros(N - 1)), r"y must begin with the shape \(90,\)"),
        (lambda model: model.oob_.cdf(np.full(N, np.nan)), "y must not hold NaN"),
    ],
)
def test_wrong_arguments_are_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask(imported())


@pytest.mark.parametrize("weights", WEIGHTINGS)
def test_the_mean_is_an_attribute_as_that_of_scikit_learn(weights):
    model = imported(weights)
    assert_array_equal(model.oob_prediction_, model.oob_.prediction())
    if weights == "inbag":
        assert_allclose(model.oob_prediction_, FOREST.oob_prediction_, atol=1e-6)
    whole = ExtraTreesRegressor(5).fit(X, Y)
    for other in (imported(forest=whole), HDIForestRegressor()):
        assert not hasattr(other, "oob_prediction_")
    with pytest.raises(AttributeError, match="needs a forest whose trees leave rows out"):
        imported(forest=whole).oob_prediction_  # noqa: B018


def test_what_is_out_of_bag_is_an_attribute_of_a_fitted_model():
    model = HDIForestRegressor(FOREST, calibration=False)
    assert not hasattr(model, "oob_")
    model.fit(X, Y)
    assert repr(model.oob_) == "OutOfBagPredictions of 90 training rows"
    assert "oob_" in dir(model)
    assert {name for name in dir(model.oob_) if not name.startswith("_")} == {
        *("prediction", "interval", "quantiles", "cdf", "weights"),
    }


def test_it_stays_as_the_model_was():
    model = imported(forest=LARGER)
    before = model.oob_
    raw = before.interval(0.8)
    model.calibrate(coverage=0.8)
    assert_array_equal(before.interval(0.8), raw)
    assert not np.array_equal(model.oob_.interval(0.8), raw)
    assert_array_equal(pickle.loads(pickle.dumps(before)).interval(0.8), raw)


def test_crepes_calibrates_by_it():
    """Oracle: the same residuals, given by hand."""
    crepes = pytest.importorskip("crepes")
    model = imported()
    wrapped = crepes.WrapRegressor(model)
    wrapped.calibrate(X, Y, oob=True)
    by_hand = crepes.ConformalRegressor().fit(Y - model.oob_.prediction())
    expected = by_hand.predict_int(model.predict(X[:9]), confidence=0.8)
    assert_array_equal(wrapped.predict_int(X[:9], confidence=0.8), expected)
    assert coverage_score(Y, wrapped.predict_int(X, confidence=0.8)) > 0.7
