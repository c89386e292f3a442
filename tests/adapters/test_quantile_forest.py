"""hdiforest.adapters.quantile_forest answers as numpy does from the samples in a row's leaves."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from scipy.stats import percentileofscore
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdicore import weighted_hdi
from hdiforest import HDIForestRegressor
from hdiforest.adapters import quantile_forest as fitting
from hdiforest.adapters.quantile_forest import (
    ExtraTreesQuantileRegressor,
    RandomForestQuantileRegressor,
)

from ..oracle import SKLEARN

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3)).astype(np.float32)
Y = np.round(2 * X[:, 0] + RNG.normal(size=120), 1)
X_NEW = RNG.normal(size=(15, 3)).astype(np.float32)
LEVELS = [0.1, 0.37, 0.5, 0.9]
CLASSES = [RandomForestQuantileRegressor, ExtraTreesQuantileRegressor]
ALL = {"max_samples_leaf": None, "min_samples_leaf": 4, "random_state": 0}


def forest(cls=RandomForestQuantileRegressor, n_trees=12, **options):
    return cls(n_trees, **(ALL | options)).fit(X, Y)


def samples(fitted, rows, trees=None):
    """For each row, the training rows in its leaf of each tree, as often as the tree drew them."""
    asked = np.ones((len(rows), len(fitted.estimators_)), bool) if trees is None else trees
    leaves, new = fitted.apply(X), fitted.apply(rows)
    drawn = fitted.estimators_samples_
    return [
        [d[leaves[d, t] == new[i, t]] for t, d in enumerate(drawn) if asked[i, t]]
        for i in range(len(rows))
    ]


def out_of_bag(fitted):
    return np.array([~np.isin(np.arange(len(X)), drawn) for drawn in fitted.estimators_samples_]).T


def expected_to_fail(estimator):
    """Checks that scikit-learn's own forest fails: once, weights did not decide what is drawn."""
    if SKLEARN >= (1, 9) or not estimator.bootstrap:
        return {}
    name = "check_sample_weight_equivalence_on_{}_data"
    return {name.format(kind): "the bootstrap draws anew" for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [cls(5, random_state=0) for cls in CLASSES], expected_failed_checks=expected_to_fail
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_answers_are_those_of_the_pooled_samples(cls, bootstrap):
    fitted = forest(cls, bootstrap=bootstrap)
    pooled = [Y[np.concatenate(rows)] for rows in samples(fitted, X_NEW)]
    assert_allclose(fitted.predict(X_NEW, "mean"), [np.mean(p) for p in pooled])
    for method in ("linear", "lower", "higher", "midpoint", "nearest", "hazen"):
        expected = [np.quantile(p, LEVELS, method=method) for p in pooled]
        assert_allclose(fitted.predict(X_NEW, LEVELS, method), expected)
    assert_array_equal(fitted.predict(X_NEW), fitted.predict(X_NEW, [0.5]))
    assert_array_equal(fitted.predict(X_NEW, 0.9), fitted.predict(X_NEW, LEVELS)[:, 3])
    expected = [weighted_hdi(p, None, [0.5, 0.9]) for p in pooled]
    assert_allclose(fitted.predict_interval(X_NEW, [0.5, 0.9]), expected)
    assert_allclose(fitted.predict_interval(X_NEW, 0.9), np.array(expected)[..., 1])
    points = [p[1] for p in pooled]
    for kind in ("rank", "weak", "strict", "mean"):
        expected = [
            percentileofscore(p, y, kind) / 100 for p, y in zip(pooled, points, strict=True)
        ]
        assert_allclose(fitted.quantile_ranks(X_NEW, points, kind), expected)


def test_leaves_may_weigh_alike_or_answer_alone():
    fitted = forest()
    for i, leaves in enumerate(samples(fitted, X_NEW)):
        row = X_NEW[i : i + 1]
        weights = np.concatenate([np.full(len(leaf), 1 / len(leaf)) for leaf in leaves])
        pooled = Y[np.concatenate(leaves)]
        found = fitted.predict(row, "mean", weighted_leaves=True)
        assert_allclose(found, [np.average(pooled, weights=weights)])
        found = fitted.predict(row, "mean", weighted_leaves=True, weighted_quantile=False)
        assert_allclose(found, [np.mean(pooled)])
        found = fitted.predict_interval(row, 0.8, weighted_leaves=True)
        assert_allclose(found, [weighted_hdi(pooled, weights, 0.8)])
        alone = [np.quantile(Y[leaf], LEVELS) for leaf in leaves]
        found = fitted.predict(row, LEVELS, aggregate_leaves_first=False)
        assert_allclose(found, [np.mean(alone, axis=0)])
        alone = [percentileofscore(Y[leaf], 0.3) / 100 for leaf in leaves]
        found = fitted.quantile_ranks(row, [0.3], aggregate_leaves_first=False)
        assert_allclose(found, [np.mean(alone)])


@pytest.mark.parametrize("together", [True, False])
def test_out_of_bag_answers_come_from_trees_that_did_not_draw_the_row(together):
    fitted = forest(n_trees=20)
    asked = out_of_bag(fitted)
    asked[[7, 8]] = asked[7] & asked[8]
    assert asked.any(axis=1).all()
    leaves = [[Y[rows] for rows in each] for each in samples(fitted, X, asked)]
    options = {
        "aggregate_leaves_first": together,
        "oob_score": True,
        "duplicates": [[7, 8]],
    }
    expected = [
        np.quantile(np.concatenate(each), LEVELS)
        if together
        else np.mean([np.quantile(leaf, LEVELS) for leaf in each], axis=0)
        for each in leaves
    ]
    found = fitted.predict(X, LEVELS, **options)
    assert_allclose(found, expected)
    some = [5, 7, -1]
    found = fitted.predict(X[[5, 7, 9]], LEVELS, indices=some, **options)
    inside = fitted.predict(X[[9]], LEVELS, aggregate_leaves_first=together)
    assert_allclose(found, np.vstack([expected[5], expected[7], inside]))


def test_rows_that_all_trees_drew_have_no_answer():
    fitted = forest(n_trees=2)
    drawn = ~out_of_bag(fitted).any(axis=1)
    assert drawn.any()
    for together in (True, False):
        options = {"oob_score": True, "aggregate_leaves_first": together}
        with pytest.warns(UserWarning, match="seen by every tree") as caught:
            found = fitted.predict(X, [0.2, 0.7], **options)
        assert caught[0].filename == __file__
        assert_array_equal(np.isnan(found).all(axis=1), drawn)
    with pytest.warns(UserWarning, match="seen by every tree"):
        assert fitted.proximity_counts(X, oob_score=True)[np.flatnonzero(drawn)[0]] == []


def test_proximities_count_samples():
    fitted = forest()
    found = fitted.proximity_counts(X_NEW)
    for pairs, leaves in zip(found, samples(fitted, X_NEW), strict=True):
        rows, counts = np.unique(np.concatenate(leaves), return_counts=True)
        assert dict(pairs) == dict(zip(rows.tolist(), counts.tolist(), strict=True))
        assert pairs == sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    assert fitted.proximity_counts(X_NEW, 3) == [pairs[:3] for pairs in found]
    by_row = fitted.proximity_counts(X_NEW, 3, return_sorted=False)
    assert by_row == [sorted(pairs[:3]) for pairs in found]


@pytest.mark.parametrize("limit", [1, 3, 0.025])
def test_a_leaf_keeps_at_most_so_many_samples(limit):
    fitted = forest(max_samples_leaf=limit, min_samples_leaf=2)
    most = 3 if limit == 0.025 else limit
    everything = [[leaf.tolist() for leaf in each] for each in samples(fitted, X_NEW)]
    sizes = [sum(min(most, len(leaf)) for leaf in each) for each in everything]
    found = fitted.proximity_counts(X_NEW)
    assert [sum(count for _, count in pairs) for pairs in found] == sizes
    for pairs, leaves in zip(found, everything, strict=True):
        drawn = [row for leaf in leaves for row in leaf]
        assert all(count <= drawn.count(row) for row, count in pairs)
    assert_array_equal(fitted.predict(X_NEW), clone(fitted).fit(X, Y).predict(X_NEW))


def test_samples_are_kept_with_equal_chance():
    rows = np.zeros((3, 1))
    options = {"max_depth": 1, "random_state": 0}
    fitted = RandomForestQuantileRegressor(300, **options).fit(rows, [0.0, 1.0, 2.0])
    drawn = np.array([np.bincount(d, minlength=3) for d in fitted.estimators_samples_])
    twice = np.flatnonzero(drawn[:, 0] == 2)
    blocks = fitted._samples.blocks(fitted._samples.forest, n_threads=1)
    kept = np.concatenate([block.counts[0] for block in blocks])  # of row 0
    assert len(twice) > 50
    assert abs(kept[twice].mean() - 2 / 3) < 0.15


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("sign", [1, -1])
def test_constraints_make_quantiles_monotonic(cls, sign):
    y = sign * Y
    fitted = cls(30, monotonic_cst=[sign, 0, 0], random_state=0).fit(X, y)
    rows = np.repeat(X_NEW, 25, axis=0)
    rows[:, 0] = np.tile(np.linspace(-2, 2, 25), len(X_NEW))
    found = fitted.predict(rows, [0.2, 0.5, 0.8]).reshape(len(X_NEW), 25, 3)
    assert (sign * np.diff(found, axis=1) >= 0).all()
    assert np.ptp(found[:, :, 1]) > 2
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(rows, 0.2), fitted.predict(rows, 0.2))


def test_several_outputs():
    both = np.c_[Y, X[:, 1]]
    fitted = RandomForestQuantileRegressor(12, **ALL).fit(X, both)
    alone = [np.quantile(both[np.concatenate(r)], LEVELS, axis=0) for r in samples(fitted, X_NEW)]
    assert_allclose(fitted.predict(X_NEW, LEVELS), np.moveaxis(alone, 1, 2))
    assert fitted.predict(X_NEW).shape == (15, 2)
    assert fitted.predict_interval(X_NEW, [0.5, 0.9]).shape == (15, 2, 2, 2)
    for together in (True, False):
        ranks = fitted.quantile_ranks(X, both, aggregate_leaves_first=together)
        assert ranks.shape == (120, 2)
    assert fitted.score(X, both) > 0.5


def test_rows_without_weight_are_in_no_leaf():
    weight = (np.arange(120) % 3 > 0).astype(float)
    fitted = RandomForestQuantileRegressor(20, **ALL).fit(X, Y, sample_weight=weight)
    assert_array_equal(fitted.sample_weight_, weight)
    seen = {row for pairs in fitted.proximity_counts(X) for row, _ in pairs}
    assert seen <= set(np.flatnonzero(weight))
    assert np.isfinite(fitted.predict(X, oob_score=True)[weight == 0]).all()


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickles_and_copies_answer_alike(protocol):
    fitted = forest(max_samples_leaf=2)
    state = pickle.dumps(fitted, protocol)
    assert b"hdicore" not in state  # no compiled object
    for other in (pickle.loads(state), copy.deepcopy(fitted)):
        assert_array_equal(other.predict(X_NEW, LEVELS), fitted.predict(X_NEW, LEVELS))
        assert other.proximity_counts(X_NEW) == fitted.proximity_counts(X_NEW)
        options = {"oob_score": True, "weighted_leaves": True}
        assert_array_equal(other.predict(X, **options), fitted.predict(X, **options))
    unfitted = pickle.loads(pickle.dumps(clone(fitted), protocol))
    assert unfitted.get_params() == fitted.get_params()


def test_the_forest_is_that_of_scikit_learn():
    for cls, theirs in zip(CLASSES, (RandomForestRegressor, ExtraTreesRegressor), strict=True):
        fitted = cls(10, random_state=1).fit(X, Y)
        same = theirs(10, random_state=1).fit(X, Y)
        assert_array_equal(fitted.apply(X), same.apply(X))
        assert_array_equal(fitted.feature_importances_, same.feature_importances_)
        assert get_tags(fitted).input_tags == get_tags(same).input_tags
        assert get_tags(fitted).target_tags == get_tags(same).target_tags
        own = {"default_quantiles", "max_samples_leaf"}
        assert fitted.get_params().keys() - same.get_params().keys() == own
        model, other = (HDIForestRegressor.from_forest(each, X, Y) for each in (fitted, same))
        assert_array_equal(model.predict_interval(X_NEW), other.predict_interval(X_NEW))
    fitted = forest(warm_start=True)
    fitted.proximity_counts(X_NEW)  # a later fit replaces everything
    fitted.set_params(n_estimators=20).fit(X, Y)
    assert_array_equal(fitted.predict(X_NEW), forest(n_trees=20).predict(X_NEW))
    assert fitted.proximity_counts(X_NEW) == forest(n_trees=20).proximity_counts(X_NEW)


@pytest.mark.peers
def test_the_interface_is_that_of_quantile_forest():
    theirs = pytest.importorskip("quantile_forest")
    for cls in CLASSES:
        other = getattr(theirs, cls.__name__)
        assert cls().get_params() == other().get_params()
        methods = ("fit", "predict", "quantile_ranks", "proximity_counts", "score")
        for name in ("__init__", *methods):
            ours = inspect.signature(getattr(cls, name)).parameters
            wanted = inspect.signature(getattr(other, name)).parameters
            assert {n: (p.kind, p.default) for n, p in wanted.items()} == {
                n: (p.kind, p.default) for n, p in ours.items()
            }


def test_tables_sparse_rows_missing_values_and_pipelines():
    fitted = forest()
    expected = fitted.predict(X_NEW, LEVELS)
    sparse = clone(fitted).fit(csr_matrix(X), Y)
    assert_array_equal(sparse.predict(csr_matrix(X_NEW), LEVELS), expected)
    holes = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    assert np.isfinite(clone(fitted).fit(holes, Y).predict(holes, LEVELS)).all()
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = clone(fitted).fit(table, pandas.Series(Y))
    assert_array_equal(
        named.predict(table[:15].set_axis(range(15)), LEVELS), fitted.predict(X[:15], LEVELS)
    )
    with pytest.raises(ValueError, match="feature names"):
        named.predict(table[["b", "a", "c"]])
    pipeline = make_pipeline(StandardScaler(), clone(fitted)).set_output(transform="pandas")
    assert pipeline.fit(table, Y).predict(table, quantiles=[0.1, 0.9]).shape == (120, 2)
    assert list(pipeline[-1].feature_names_in_) == ["a", "b", "c"]
    search = GridSearchCV(clone(fitted), {"max_samples_leaf": [1, None]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0


def test_answers_do_not_depend_on_threads_blocks_or_later_writes(monkeypatch):
    rows, targets = X.copy(), Y.copy()
    fitted = RandomForestQuantileRegressor(12, n_jobs=2, **ALL).fit(rows, targets)
    rows[:], targets[:] = 0, 0  # what is indexed later comes from copies
    one = forest()

    def answers(model):
        yield model.predict(X_NEW, LEVELS)
        yield model.predict(X_NEW, LEVELS, aggregate_leaves_first=False)
        yield model.predict(X, LEVELS, weighted_leaves=True, oob_score=True)
        yield model.quantile_ranks(X, Y)
        yield model.predict_interval(X_NEW, [0.5, 0.9])
        yield np.concatenate(model.proximity_counts(X_NEW))

    expected = list(answers(one))
    for own, other in zip(answers(fitted), expected, strict=True):
        assert_array_equal(own, other)
    monkeypatch.setattr(fitting, "BLOCK_IDS", 60)  # blocks of five rows
    for own, other in zip(answers(one), expected, strict=True):
        assert_array_equal(own, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_samples_leaf": 0}, "max_samples_leaf must be an integer from 1, a share in .*got 0"),
        ({"max_samples_leaf": "None"}, "max_samples_leaf must .* got 'None'"),
        ({"default_quantiles": 3}, "default_quantiles must be levels in .* got 3"),
        ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst needs leaves of one sample.* got None"),
        ({"n_estimators": 0}, "n_estimators"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RandomForestQuantileRegressor(**(ALL | options)).fit(X, Y)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("predict", {"quantiles": 1.5}, r'quantiles must be levels in \[0, 1\] or "mean", got 1.5'),
        ("predict", {"quantiles": [0.5, "mean"]}, "quantiles must be levels"),
        ("predict", {"interpolation": "cubic"}, "interpolation must be .* got 'cubic'"),
        ("predict", {"oob_score": True, "indices": [1, 2]}, "indices must name a training row"),
        ("predict", {"oob_score": True, "indices": [0.5] * 120}, "indices must hold whole numbers"),
        (
            "predict",
            {"oob_score": True, "indices": [120] * 120},
            "indices must .* -1 to 119, got 120",
        ),
        (
            "predict",
            {"oob_score": True, "duplicates": [[1, 500]]},
            "duplicates .* 0 to 119, got 500",
        ),
        ("predict", {"X": X_NEW, "oob_score": True}, "X must have the 120 rows of the fit"),
        ("predict", {"X": X[:, :2]}, "X has 2 features, but .* is expecting 3"),
        ("predict_interval", {"coverage": 90}, "coverage must"),
        ("quantile_ranks", {"y": Y, "kind": "rnk"}, "kind must be 'rank', .* got 'rnk'"),
        ("quantile_ranks", {"y": Y[:3]}, r"y must have the shape \(120,\), got \(3,\)"),
        ("proximity_counts", {"max_proximities": 0}, "max_proximities must be a whole number"),
        ("score", {"y": Y, "quantiles": [0.1, 0.9]}, "quantiles must be one level for a score"),
    ],
)
def test_bad_arguments_are_refused(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(forest(), method)(**({"X": X} | arguments))
    with pytest.raises(ValueError, match="fit it with bootstrap=True"):
        forest(bootstrap=False).predict(X, oob_score=True)


@pytest.mark.parametrize("cls", CLASSES)
def test_unfitted_forests_say_so(cls):
    for method in (cls().predict, cls().predict_interval, cls().proximity_counts):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            method(X)
