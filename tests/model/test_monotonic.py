"""Forests that do not predict means of their rows, and distributions that are monotonic."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus
from hdiforest.exceptions import MeansWarning
from hdiforest.inspection import predict_matches_forest

from ..oracle import bag_counts

N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, 3)).astype(np.float32)
Y = X[:, 0] - 0.5 * X[:, 1] + np.sin(3 * X[:, 2]) + RNG.normal(size=N)
Y += 10  # for "poisson"
WEIGHT = np.where(RNG.random(N) < 0.1, 0.0, RNG.random(N) + 0.1)
SIGNS = [1, -1, 0]
CONSTRAINED = {
    "single rows": RandomForestRegressor(20, monotonic_cst=SIGNS, random_state=0),
    "five rows": RandomForestRegressor(20, min_samples_leaf=5, monotonic_cst=SIGNS, random_state=0),
    "extra trees": ExtraTreesRegressor(
        20, bootstrap=True, min_samples_leaf=2, monotonic_cst=SIGNS, random_state=0
    ),
    "all rows": ExtraTreesRegressor(20, min_samples_leaf=2, monotonic_cst=SIGNS, random_state=0),
    "best first": RandomForestRegressor(20, max_leaf_nodes=30, monotonic_cst=SIGNS, random_state=0),
    "poisson": RandomForestRegressor(
        20, criterion="poisson", min_samples_leaf=3, monotonic_cst=SIGNS, random_state=0
    ),
    "medians": RandomForestRegressor(
        20, criterion="absolute_error", min_samples_leaf=3, monotonic_cst=SIGNS, random_state=0
    ),
    "tree": DecisionTreeRegressor(min_samples_leaf=5, monotonic_cst=SIGNS, random_state=0),
}
BAGGED = [name for name in CONSTRAINED if name not in ("all rows", "tree")]
# 12 rows at 60 values of each constrained feature.
LINES = []
for feature in (0, 1):
    line = np.repeat(X[:12], 60, axis=0)
    line[:, feature] = np.tile(np.linspace(-2.2, 2.2, 60), 12)
    LINES.append((line, SIGNS[feature]))


def fitted(name, sample_weight=None, **parameters):
    forest = copy.deepcopy(CONSTRAINED[name]).set_params(**parameters)
    return forest.fit(X, Y, sample_weight=sample_weight)


def model_of(name, sample_weight=None, n_estimators=None, **options):
    forest = fitted(name, sample_weight, **({"n_estimators": n_estimators} if n_estimators else {}))
    options = {"weights": "monotonic"} | options
    return HDIForestRegressor.from_forest(forest, X, Y, sample_weight=sample_weight, **options)


def wrong_steps(predict):
    """How many steps along the features go against the constraints, at most, of any output."""
    steps = []
    for line, sign in LINES:
        answers = predict(line).reshape(12, 60, -1)
        steps.append((sign * np.diff(answers, axis=1) < -1e-12 * np.ptp(answers)).sum(axis=(0, 1)))
    return int(np.max(steps))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_means_quantiles_and_ends_keep_the_constraints(name, weighted):
    model = model_of(name, WEIGHT if weighted else None)
    assert wrong_steps(model.predict) == 0
    assert wrong_steps(lambda X: model.predict_quantiles(X, [0, 0.05, 0.3, 0.5, 0.9, 1])) == 0
    for kind, ends in (("equal_tailed", [0, 1]), ("lower", [0]), ("upper", [1])):

        def ends_of(X, kind=kind, ends=ends):
            return model.predict_interval(X, [0.3, 0.9], kind=kind)[:, ends].reshape(len(X), -1)

        assert wrong_steps(ends_of) == 0


@pytest.mark.parametrize("method", ["oob", "split", "cv+"])
@pytest.mark.parametrize("name", ["single rows", "extra trees"])
def test_calibrated_ends_keep_the_constraints(name, method):
    model = model_of(name, n_estimators=60)
    new = np.random.default_rng(1)
    X_new = new.uniform(-2, 2, (200, 3))
    y_new = X_new[:, 0] - 0.5 * X_new[:, 1] + new.normal(size=200) + 10
    own = {"X": X_new, "y": y_new} if method == "split" else {}
    how = CVPlus(2) if method == "cv+" else method
    model.calibrate(coverage=[0.5, 0.9], method=how, random_state=0, **own)
    if method != "cv+":
        assert {base.kind for base in model.calibration_.bases} == {"equal_tailed"}
    assert wrong_steps(lambda X: model.predict_interval(X, [0.5, 0.9]).reshape(len(X), 4)) == 0


def bounds_of(tree, node=0, low=-np.inf, high=np.inf):
    """Bounds of each leaf of a tree, by its node."""
    left, right = tree.children_left[node], tree.children_right[node]
    if left < 0:
        return {node: (low, high)}
    sign = SIGNS[tree.feature[node]]
    middle = (tree.value[left, 0, 0] + tree.value[right, 0, 0]) / 2
    below, above = (low, middle), (middle, high)
    sides = {1: (below, above), -1: (above, below), 0: ((low, high), (low, high))}[sign]
    return bounds_of(tree, left, *sides[0]) | bounds_of(tree, right, *sides[1])


def moved_atoms(forest, sample_weight, row, left_out=None):
    """Targets and weights of the distribution of a row, tree after tree, by its definition."""
    members = getattr(forest, "estimators_", [forest])
    counts = bag_counts(forest, N) if getattr(forest, "bootstrap", False) else None
    values, weights = [], []
    for t, member in enumerate(members):
        drawn = np.ones(N) if counts is None else counts[:, t].astype(float)
        if left_out is not None and drawn[left_out] > 0:
            continue
        if sample_weight is not None:
            drawn = drawn * (sample_weight if counts is None else sample_weight > 0)
        leaf = member.apply(row[None])[0]
        weight = drawn * (member.apply(X) == leaf)
        values.append(np.clip(Y, *bounds_of(member.tree_)[leaf]))
        weights.append(weight / weight.sum())
    return np.concatenate(values), np.concatenate(weights) / len(weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_distribution_is_the_definitions(name, weighted):
    forest = fitted(name, WEIGHT if weighted else None)
    if weighted and getattr(forest, "bootstrap", False) and not hasattr(forest, "_sample_weight"):
        pytest.skip("before scikit-learn 1.9 weights multiplied the draws")
    options = {"sample_weight": WEIGHT} if weighted else {}
    model = HDIForestRegressor.from_forest(forest, X, Y, weights="monotonic", **options)
    rows, points = X[:5], [8.5, 10.0, 11.5]
    mean, cdf = model.predict(rows), model.predict_cdf(rows, np.tile(points, (5, 1)))
    for i, row in enumerate(rows):
        values, weights = moved_atoms(forest, WEIGHT if weighted else None, row)
        assert np.isclose(mean[i], values @ weights, rtol=1e-7)
        np.testing.assert_allclose(
            cdf[i], [weights[values <= point].sum() for point in points], atol=1e-7
        )


@pytest.mark.parametrize("name", BAGGED)
def test_out_of_bag_distributions_are_the_definitions(name):
    forest = fitted(name)
    model = HDIForestRegressor.from_forest(forest, X, Y, weights="monotonic")
    found = model.oob_.prediction()
    for i in range(8):
        values, weights = moved_atoms(forest, None, X[i], left_out=i)
        assert np.isclose(found[i], values @ weights, rtol=1e-7)


def test_files_pickles_and_clones_keep_the_moved_targets(tmp_path):
    model = model_of("five rows", n_estimators=60).calibrate(coverage=[0.5, 0.9])
    path = tmp_path / "m.hdi"
    expected = model.predict_interval(X, [0.5, 0.9]), model.predict(X)
    for rows in (True, False):
        model.save(path, training_rows=rows)
        unpickled = pickle.loads(pickle.dumps(model))
        for other in (HDIForestRegressor.load(path, verify=True), unpickled):
            assert other.weights == "monotonic"
            assert not predict_matches_forest(other)
            np.testing.assert_array_equal(other.predict_interval(X, [0.5, 0.9]), expected[0])
            np.testing.assert_array_equal(other.predict(X), expected[1])
    weights = model.predict_weights(X[:5])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert model.sample(X[:5], 10, random_state=0).shape == (5, 10)


def test_forests_without_bounds_in_the_unit_of_y_are_refused():
    plain = RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="needs a forest with monotonic_cst; this one"):
        HDIForestRegressor.from_forest(plain, X, Y, weights="monotonic")
    tree = DecisionTreeRegressor(monotonic_cst=[1, 0], random_state=0)
    bagged = BaggingRegressor(tree, 3, max_features=2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="trees that see all features"):
        HDIForestRegressor.from_forest(bagged, X, Y, weights="monotonic")
    forest = CONSTRAINED["five rows"]
    logged = TransformedTargetRegressor(forest, func=np.log1p, inverse_func=np.expm1).fit(X, Y)
    with pytest.raises(ValueError, match="in the unit of y"):
        HDIForestRegressor.from_forest(logged, X, Y, weights="monotonic")
    with pytest.raises(ValueError, match=re.escape("'jackknife+' with weights='monotonic'")):
        model_of("five rows").calibrate(method="jackknife+")


OWN_MEAN = {
    "means": (RandomForestRegressor(10, random_state=0), "inbag", True),
    "means of all rows": (RandomForestRegressor(10, random_state=0), "all", False),
    "no draws": (ExtraTreesRegressor(10, min_samples_leaf=3, random_state=0), "all", True),
    "unused constraints": (
        RandomForestRegressor(10, monotonic_cst=[0, 0, 0], random_state=0),
        "inbag",
        True,
    ),
    "poisson": (RandomForestRegressor(10, criterion="poisson", random_state=0), "inbag", True),
    "logarithms": (
        TransformedTargetRegressor(
            RandomForestRegressor(10, random_state=0), func=np.log1p, inverse_func=np.expm1
        ),
        "inbag",
        False,
    ),
    "medians": (
        RandomForestRegressor(10, criterion="absolute_error", min_samples_leaf=4, random_state=0),
        "inbag",
        False,
    ),
    "constraints": (CONSTRAINED["five rows"], "inbag", False),
}


@pytest.mark.filterwarnings("ignore:the forest (has monotonic|averages)")
@pytest.mark.parametrize("name", OWN_MEAN)
def test_the_model_says_whether_it_predicts_as_the_forest(name, tmp_path):
    estimator, weights, expected = OWN_MEAN[name]
    forest = copy.deepcopy(estimator).fit(X, Y)
    model = HDIForestRegressor.from_forest(forest, X, Y, weights=weights)
    assert predict_matches_forest(model) is expected
    assert np.allclose(model.predict(X), forest.predict(X), rtol=1e-6) == expected
    model.save(tmp_path / "m.hdi")
    for other in (HDIForestRegressor.load(tmp_path / "m.hdi"), pickle.loads(pickle.dumps(model))):
        assert predict_matches_forest(other) is expected


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("five rows", "has monotonic constraints.*weights='monotonic'"),
        ("medians", "has monotonic constraints"),
        ("only medians", "averages the medians of its leaves"),
    ],
)
def test_one_warning_says_that_the_forest_predicts_otherwise(name, sentence):
    forest = fitted(name.split()[-1] if "only" in name else name, n_estimators=60)
    if name == "only medians":
        forest = forest.set_params(monotonic_cst=None).fit(X, Y)
    with pytest.warns(MeansWarning, match=f"the forest {sentence}") as seen:
        model = HDIForestRegressor.from_forest(forest, X, Y)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is not said again
        model.predict_interval(X[:9])
        model.calibrate(coverage=0.9, method=CVPlus(2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model_of("five rows")  # nothing to say


@pytest.mark.parametrize("method", ["oob", "cv+"])
def test_ends_of_decimals_are_training_targets(method, tmp_path):
    steps = np.round(Y - 10, 1).clip(-1, 1)
    forest = RandomForestRegressor(60, min_samples_leaf=3, monotonic_cst=SIGNS, random_state=0)
    model = HDIForestRegressor.from_forest(forest.fit(X, steps), X, steps, weights="monotonic")
    model.calibrate(coverage=[0.5, 0.8], method=CVPlus(2) if method == "cv+" else method)
    path = tmp_path / "m.hdi"
    model.save(path)
    loaded = HDIForestRegressor.load(path)
    for each in (model, loaded, pickle.loads(pickle.dumps(model))):
        ends = each.predict_interval(LINES[0][0], [0.5, 0.8])
        assert np.isin(ends, steps).all()
        assert each.calibration_.postprocess.targets.tolist() == np.unique(steps).tolist()
    kept = loaded.calibration_.postprocess.targets
    path.write_bytes(b"")  # what maps the file may not be read any more
    assert kept.tolist() == np.unique(steps).tolist()
