"""`diagnose`: distances to training rows, ranges, and what the trees disagree on."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdiforest import HDIForestRegressor, fit_table
from hdiforest.inspection import diagnose
from hdiforest.serving import BatchScorer

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 4)).round(1)
Y = X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.2 * RNG.normal(size=N)
NEW = np.concatenate([RNG.normal(size=(40, 4)), [[9, 0, 0, 0], [0, -7, 0, 8]]])
COLUMNS = [
    "dissimilarity",
    "out_of_range",
    "worst_feature",
    "tree_spread",
    "mass_outside",
    "interval_se",
    "n_missing",
    "flag",
]


@pytest.fixture(scope="module")
def model():
    return HDIForestRegressor(RandomForestRegressor(100, random_state=0)).fit(X, Y)


def pairwise(model, rows, new, categorical=()):
    """Distances by the definition: a sum over features, one at a time."""
    rows, new = np.float32(rows), np.float32(new)
    importance = model.feature_importances_
    mean, sd = np.nanmean(rows, axis=0, dtype=float), np.nanstd(rows, axis=0, dtype=float)

    def distance(a, b):
        total = 0.0
        for j, share in enumerate(importance):
            if np.isnan(a[j]) != np.isnan(b[j]):
                total += share
            if j in categorical:
                both = not np.isnan(a[j]) and not np.isnan(b[j])
                total += share * (a[j] != b[j]) * both
            elif sd[j] > 0:
                p, q = (mean[j] if np.isnan(v[j]) else v[j] for v in (a, b))
                total += share * ((p - q) / sd[j]) ** 2
        return np.sqrt(total)

    return np.array([[distance(a, b) for b in rows] for a in new])


def dissimilarity(model, rows, new, **options):
    """That of new rows, and the most that is not flagged."""
    between = pairwise(model, rows, rows, **options)
    scale = between[np.triu_indices(len(rows), 1)].mean()
    others = np.where(np.eye(len(rows), dtype=bool), np.inf, between).min(axis=1)
    nearest = pairwise(model, rows, new, **options).min(axis=1)
    return nearest / scale, np.quantile(others, 0.95) / scale


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_distances_are_those_of_the_definition(missing):
    rows = np.column_stack([RNG.normal(size=(60, 3)), np.full(60, 2.0)]).astype(np.float32)
    y = rows @ [3.0, 2.0, 1.0, 0.0] + RNG.normal(size=60)
    rows[RNG.random(rows.shape) < missing] = np.nan
    new = np.float32(RNG.normal(size=(20, 4)))
    new[RNG.random(new.shape) < (0.2 if missing else 0)] = np.nan
    model = HDIForestRegressor(RandomForestRegressor(30, random_state=0), calibration=False)
    found = diagnose(model.fit(rows, y), new)
    expected, threshold = dissimilarity(model, rows, new)
    assert_allclose(found["dissimilarity"], expected, rtol=1e-5)
    assert_array_equal(found["flag"], expected > threshold)


def test_categories_differ_or_do_not():
    kinds = RNG.permutation(np.resize(list("abcde"), 50))
    table = pd.DataFrame({"x": RNG.normal(size=50), "kind": kinds})
    y = table["x"] + (table["kind"] == "a")
    model = fit_table(table.assign(y=y), "y", random_state=0, calibration=False)
    new = pd.DataFrame({"x": [0, 0, 1, 2], "kind": ["a", "e", "c", "b"]})
    codes = {kind: code for code, kind in enumerate("abcde")}
    coded = [each.assign(kind=each["kind"].map(codes)).to_numpy() for each in (table, new)]
    expected, _ = dissimilarity(model, *coded, categorical=(1,))
    assert_allclose(diagnose(model, new)["dissimilarity"], expected, rtol=1e-5)


def test_rare_categories_are_alike():
    code = np.concatenate([np.repeat(np.arange(30), 20), np.arange(30, 60)])
    table = pd.DataFrame({"x": code * 1.0, "kind": [f"k{each}" for each in code], "y": code})
    model = fit_table(table, "y", random_state=0, calibration=False)
    new = pd.DataFrame({"x": [50.0, 4.0], "kind": ["k35", "k3"]})
    rare, frequent = diagnose(model, new)["dissimilarity"]
    assert rare == 0 < frequent


def test_rows_that_are_all_alike():
    model = HDIForestRegressor(RandomForestRegressor(5), calibration=False)
    found = diagnose(model.fit(np.ones((5, 2)), np.arange(5.0)), [[1, 1], [7, 1]])
    assert_array_equal(found["dissimilarity"], 0)
    assert_array_equal(found["out_of_range"], [0, 1])


def test_columns(model):
    found = diagnose(model, NEW)
    assert list(found) == COLUMNS
    low, high = np.float32(X).min(axis=0), np.float32(X).max(axis=0)
    outside = (np.float32(NEW) < low) | (np.float32(NEW) > high)
    assert_array_equal(found["out_of_range"], outside.sum(axis=1))
    assert found["worst_feature"][-2:].tolist() == ["x0", "x1"]
    assert set(found["worst_feature"][~outside.any(axis=1)]) <= {""}
    assert found["flag"][-2:].all()
    assert found["flag"][:40].mean() < 0.2
    trees = np.stack([tree.predict(NEW) for tree in model.estimator_.estimators_])
    assert found["tree_spread"].shape == (len(NEW),)
    assert np.corrcoef(found["tree_spread"], trees.std(axis=0))[0, 1] > 0.8
    lower, upper = model.predict_interval(NEW, 0.9).T
    mass = model.predict_cdf(NEW, upper, kind="raw") - model.predict_cdf(
        NEW, lower, inclusive=False, kind="raw"
    )
    assert_allclose(found["mass_outside"], 1 - mass, atol=1e-12)
    assert (found["interval_se"] >= 0).all()


def test_spread_over_trees_of_the_trees_own_means():
    forest = ExtraTreesRegressor(30, max_depth=3, random_state=0).fit(X, Y)
    model = HDIForestRegressor.from_forest(forest, X, Y)
    trees = np.stack([tree.predict(NEW) for tree in forest.estimators_])
    assert_allclose(diagnose(model, NEW)["tree_spread"], trees.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize("weights", ["all", "inbag", "oob"])
def test_weights_and_empty_leaves(weights):
    forest = RandomForestRegressor(20, max_depth=4, random_state=0)
    model = HDIForestRegressor(forest, weights=weights, calibration=False)
    model.fit(X, Y, sample_weight=RNG.integers(0, 3, N))
    found = diagnose(model, NEW)
    assert all(np.isfinite(found[name]).all() for name in COLUMNS[3:6])


def test_standard_error_is_that_of_other_forests():
    """As rms over rows: the spread of the ends of forests grown again."""
    ends, errors = [], []
    for seed in range(8):
        forest = ExtraTreesRegressor(60, bootstrap=True, min_samples_leaf=5, random_state=seed)
        model = HDIForestRegressor(forest, calibration=False).fit(X, Y)
        ends.append(model.predict_interval(NEW[:40], 0.8))
        errors.append(diagnose(model, NEW[:40], 0.8)["interval_se"])
    spread = np.sqrt(np.var(ends, axis=0, ddof=1).mean())
    assert 0.6 < np.sqrt(np.square(errors).mean()) / spread < 1.6


def test_tables_and_outputs(model):
    table = diagnose(model, pd.DataFrame(NEW, index=range(5, 47)).to_numpy(), output="pandas")
    assert list(table.columns) == COLUMNS
    named = pd.DataFrame(X, columns=list("abcd"))
    several = HDIForestRegressor(random_state=0).fit(named, pd.DataFrame({"p": Y, "q": -Y}))
    rows = pd.DataFrame(NEW, columns=list("abcd"), index=np.arange(len(NEW)) + 7)
    found = diagnose(several, rows, output="pandas")
    assert list(found.index[:2]) == [7, 8]
    assert list(found.columns)[3:9] == [f"{t}_{n}" for n in COLUMNS[3:6] for t in "pq"]
    assert found["worst_feature"].iloc[-2] == "a"
    assert diagnose(several, rows, output="polars")["flag"].sum() == found["flag"].sum()


def test_file_without_training_rows(model, tmp_path):
    path = tmp_path / "model.hdi"
    model.save(path, training_rows=False, diagnostics=True)
    expected = diagnose(model, NEW)
    for name, values in diagnose(HDIForestRegressor.load(path), NEW).items():
        assert_array_equal(values, expected[name])
    batch = {f"x{j}": NEW[:, j] for j in range(4)}
    scored = BatchScorer(path, diagnose=True)(batch)
    assert list(scored) == ["prediction", "lower_0.9", "upper_0.9", *COLUMNS]
    assert_array_equal(scored["flag"], expected["flag"])
    model.save(path, training_rows=False)
    bare = HDIForestRegressor.load(path)
    with pytest.raises(ValueError, match=r"diagnose needs training rows.*diagnostics=True"):
        diagnose(bare, NEW)
    with pytest.raises(ValueError, match="diagnose needs training rows"):
        BatchScorer(path, diagnose=True)


def test_table_with_categories_and_missing_cells():
    table = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down"), "y": Y})
    table.loc[::11, "x"] = np.nan
    model = fit_table(table, "y", random_state=0)
    new = pd.DataFrame({"x": [0.1, np.nan, 50], "kind": ["up", "down", "sideways"]})
    found = diagnose(model, new)
    assert found["n_missing"].tolist() == [0, 1, 1]
    assert found["worst_feature"].tolist() == ["", "", "x"]
    assert found["flag"].tolist()[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.5}, "coverage must"),
        ({"coverage": 0.33}, "coverage must be one that was calibrated"),
        ({"output": "excel"}, "output must be"),
    ],
)
def test_what_is_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        diagnose(model, NEW, **options)
    with pytest.raises(ValueError, match=re.escape("diagnostics must be")):
        model.save("nowhere.hdi", diagnostics="yes")
