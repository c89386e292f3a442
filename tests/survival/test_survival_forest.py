"""HDISurvivalForest: targets, imports, predictions, calibrations, files and the command."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from hdiforest import HDIForestRegressor, HDISurvivalForest, from_leaves
from hdiforest.exceptions import InfiniteIntervalsWarning
from hdiforest.serving import BatchScorer
from hdiforest.survival import TailCalibration

from ..cli.calls import run


def surv(event, time):
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, time
    return y


def simulated(n, seed=0, rate=0.4):
    random = np.random.default_rng(seed)
    X = random.random((n, 4)).astype(np.float32)
    time = np.exp(1 + X[:, 0] + (0.2 + X[:, 1]) * random.standard_normal(n))
    until = random.exponential(4 / rate, n) * (1 + X[:, 2])
    return X, surv(time <= until, np.minimum(time, until)), time


@pytest.fixture(scope="module")
def rows():
    return simulated(500)


@pytest.fixture(scope="module")
def model(rows):
    X, y, _ = rows
    forest = RandomForestRegressor(80, min_samples_leaf=10, random_state=0)
    return HDISurvivalForest(forest, random_state=0).fit(X, y).calibrate(coverage=[0.5, 0.8, 0.9])


def kaplan_meier(weights, event, time, points):
    """P(T > t) by the definition: one factor for each distinct time of an event."""
    survival = np.ones(len(points))
    for t in np.unique(time[event]):
        at_risk, died = weights[time >= t].sum(), weights[(time == t) & event].sum()
        if died > 0:
            survival[points >= t] *= 1 - died / at_risk
    return survival


def test_survival_is_that_of_kaplan_and_meier_with_the_weights_of_the_forest(rows, model):
    X, y, _ = rows
    forest = model.estimator_
    X_new = simulated(5, seed=9)[0]
    counts = np.stack(
        [np.bincount(drawn, minlength=len(X)) for drawn in forest.estimators_samples_], axis=1
    )
    leaves, asked = forest.apply(X), forest.apply(X_new)
    times = model.unique_times_
    survival = model.predict_survival_function(X_new, return_array=True)
    for row, found in zip(asked, survival, strict=True):
        shares = (leaves == row) * counts
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
        expected = kaplan_meier(weights, y["event"], y["time"], times)
        np.testing.assert_allclose(found, expected, atol=1e-7)


def test_without_censoring_it_is_the_forest_of_the_times(rows):
    X, _, time = rows
    forest = RandomForestRegressor(40, min_samples_leaf=5, random_state=0).fit(X, time)
    uncensored = HDIForestRegressor.from_forest(forest, X, time, weights="inbag")
    model = HDISurvivalForest.from_forest(forest, X, surv(np.ones(len(X), bool), time))
    levels = [0.13, 0.37, 0.5, 0.911]
    np.testing.assert_array_equal(
        model.predict_quantiles(X[:50], levels), uncensored.predict_quantiles(X[:50], levels)
    )
    for kind in ("hdi", "equal_tailed", "lower", "upper"):
        np.testing.assert_array_equal(
            model.predict_interval(X[:50], 0.871, kind=kind),
            uncensored.predict_interval(X[:50], 0.871, kind=kind),
        )
    np.testing.assert_allclose(model.restricted_mean(X[:50]), uncensored.predict(X[:50]))


def test_intervals_are_ordered_and_lower_ends_are_finite(rows, model):
    X, y, _ = rows
    for kind in ("calibrated", "hdi", "equal_tailed", "lower", "upper"):
        lower, upper = model.predict_interval(X, 0.9, kind=kind).T
        assert (lower <= upper).all()
        assert (np.isfinite(lower) if kind != "upper" else lower < upper).all()
        assert (lower[np.isfinite(lower)] <= y["time"].max()).all()
    both = model.predict_interval(X[:9], [0.5, 0.9])
    assert both.shape == (9, 2, 2)
    assert (both[:, 0, 1] <= both[:, 0, 0]).all()
    assert (both[:, 1, 1] >= both[:, 1, 0]).all()


def test_calibrated_intervals_cover_the_times_of_new_rows():
    X, y, _ = simulated(600, 2, 0.7)
    X_new, _, time = simulated(1000, 12, 0.7)
    forest = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
    model = HDISurvivalForest(forest, random_state=0).fit(X, y).calibrate(coverage=[0.8, 0.9])
    lower, upper = model.predict_interval(X_new, 0.8).T
    assert 0.72 <= np.mean((lower <= time) & (time <= upper)) <= 0.9
    bound = model.predict_interval(X_new, 0.9, kind="lower")[:, 0]
    assert 0.85 <= np.mean(bound <= time) <= 0.95
    model.calibrate(*simulated(400, 22, 0.7)[:2], coverage=0.9)
    bound = model.predict_interval(X_new, 0.9, kind="lower")[:, 0]
    assert 0.85 <= np.mean(bound <= time) <= 0.95
    assert model.calibration_.method == "split"


def test_each_tail_misses_its_part_of_the_rows_less_one():
    X, _, time = simulated(500)
    X_held, _, held = simulated(200, seed=1)
    forest = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
    model = HDISurvivalForest(forest).fit(X, surv(np.ones(len(X), bool), time))
    model.calibrate(X_held, surv(np.ones(len(held), bool), held), coverage=[0.5, 0.8, 0.9])
    levels = np.arange(1, 1000) / 1000
    quantiles = model.predict_quantiles(X_held, levels)
    below, above = ((sign * (quantiles.T - held) > 0).mean(axis=1) for sign in (1, -1))
    for level in model.calibration_.levels:
        one = 1 - level.coverage
        ends = (one / 2, level.lower, level.upper), (one, level.lower_bound, level.upper_bound)
        for part, low, high in ends:
            assert low == levels[below <= part - 1 / 201][-1]
            assert high == levels[above <= part - 1 / 201][0]


def test_rows_are_censored_behind_the_events_of_their_time():
    random = np.random.default_rng(0)
    time, until = random.integers(1, 11, (2, 400))
    event, seen = time <= until, np.minimum(time, until)
    X, y = np.zeros((400, 1)), surv(event, seen)
    model = HDISurvivalForest(RandomForestRegressor(1, bootstrap=False)).fit(X, y)  # of one leaf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfiniteIntervalsWarning)
        model.calibrate(X, y, coverage=np.arange(2, 20) / 20)
    alike = np.ones(400)
    reached = 1 - kaplan_meier(alike, event, seen, seen)
    followed = kaplan_meier(alike, ~event, np.where(event, seen, seen + 0.5), seen)
    levels = np.arange(1, 1001) / 1000
    below = (event / followed * (reached < levels[:, np.newaxis])).mean(axis=1)
    for level in model.calibration_.levels:
        allowed = levels[below <= 1 - level.coverage - 1 / 401]
        assert level.lower_bound == allowed[-1]


def test_the_calibration_says_what_it_is(model):
    calibration = model.calibration_
    assert isinstance(calibration, TailCalibration)
    assert calibration.coverages == (0.5, 0.8, 0.9)
    assert calibration.method == "oob"
    text = repr(calibration)
    assert "events" in text
    assert "follow-up" in text
    with pytest.raises(ValueError, match=r"coverage must be one that was calibrated") as refusal:
        model.predict_interval(np.zeros((1, 4)), 0.7)
    assert "fit with" not in str(refusal.value)


def test_too_few_trees_are_refused_before_the_forest_of_the_censoring_is_grown(rows, monkeypatch):
    X, y, _ = rows
    model = HDISurvivalForest(RandomForestRegressor(10, random_state=0)).fit(X, y)
    monkeypatch.setattr(RandomForestRegressor, "fit", None)
    with pytest.raises(ValueError, match=r"calibration out of bag needs .*, or call calibrate\(X"):
        model.calibrate()


def test_risk_ranks_rows_and_pipelines_and_cross_validation_work(rows, model):
    X, y, _ = rows
    X_new, y_new, _ = simulated(300, seed=5)
    assert model.score(X_new, y_new) > 0.6
    np.testing.assert_array_equal(model.predict(X_new), -model.restricted_mean(X_new))
    small = HDISurvivalForest(RandomForestRegressor(20, min_samples_leaf=10, random_state=0))
    scores = cross_val_score(make_pipeline(StandardScaler(), small), X, y, cv=3)
    assert (scores > 0.5).all()


def test_restricted_means_are_areas(model):
    X_new = simulated(4, seed=6)[0]
    times = np.linspace(0, 5, 20001)
    survival = model.predict_survival_function(X_new, times[:-1], return_array=True)
    area = survival.mean(axis=1) * 5
    np.testing.assert_allclose(model.restricted_mean(X_new, 5.0), area, rtol=1e-3)
    with pytest.raises(ValueError, match=r"tau must lie in \(0, "):
        model.restricted_mean(X_new, 1e9)


def test_out_of_bag_predictions_leave_the_row_out(rows, model):
    X, *_ = rows
    median = model.oob_.quantiles(0.5)
    assert median.shape == (len(X),)
    assert model.oob_.interval(0.8, kind="equal_tailed").shape == (len(X), 2)
    with pytest.raises(ValueError, match="mean of censored targets"):
        model.oob_.prediction()


def test_files_and_pickles_keep_the_model(rows, model, tmp_path):
    X = rows[0][:40]
    path = tmp_path / "model.hdi"
    model.save(path)
    for other in (HDISurvivalForest.load(path), pickle.loads(pickle.dumps(model))):
        for kind in ("calibrated", "hdi", "lower"):
            np.testing.assert_array_equal(
                other.predict_interval(X, 0.9, kind=kind), model.predict_interval(X, 0.9, kind=kind)
            )
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert repr(other.calibration_) == repr(model.calibration_)
        assert other.oob_.quantiles(0.5).shape == (500,)
    with pytest.raises(ValueError, match="which HDISurvivalForest"):
        HDIForestRegressor.load(path)
    regressor = tmp_path / "other.hdi"
    HDIForestRegressor(RandomForestRegressor(5), calibration=False).fit(X, X[:, 0]).save(regressor)
    with pytest.raises(ValueError, match="holds no survival model"):
        HDISurvivalForest.load(regressor)
    model.save(path, training_rows=False)
    with pytest.raises(ValueError, match="without its training rows"):
        HDISurvivalForest.load(path).calibrate()


def test_tables_have_the_median_in_front(rows):
    pd = pytest.importorskip("pandas")
    X, y, _ = rows
    table = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X)) + 7)
    model = HDISurvivalForest(RandomForestRegressor(60, min_samples_leaf=10, random_state=0))
    model.fit(table, y).calibrate(coverage=0.8)
    result = model.predict_interval(table.head(), 0.8, output="pandas")
    assert list(result.columns) == ["prediction", "lower_0.8", "upper_0.8"]
    assert list(result.index) == list(table.index[:5])
    np.testing.assert_array_equal(result["prediction"], model.predict_quantiles(table.head(), 0.5))
    bound = model.predict_interval(table.head(), 0.8, kind="lower", output="pandas")
    assert list(bound.columns) == ["prediction", "one_sided_lower_0.8"]


def test_scorers_of_batches_read_the_file(rows, model, tmp_path):
    X = rows[0][:6]
    path = tmp_path / "model.hdi"
    model.save(path)
    batch = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    for kind in ("calibrated", "lower", "hdi"):
        scored = BatchScorer(path, 0.9, kind=kind)(batch)
        ends = model.predict_interval(X, 0.9, kind=kind)
        column = "one_sided_lower_0.9" if kind == "lower" else "lower_0.9"
        np.testing.assert_array_equal(scored[column], ends[:, 0])
        np.testing.assert_array_equal(scored["prediction"], model.predict_quantiles(X, 0.5))


Y = surv([True, False, True], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([1.0, 2.0, 3.0]), r"Surv.from_arrays\(event, time\), got float64"),
        ([1, 2, 3], "structured array .*, got list"),
        (Y[["time", "event"]], "swapped"),
        (Y.astype([("event", float), ("time", float)]), "must be boolean, got float64; cast it"),
        (surv(Y["event"], [1, np.nan, 3]), "finite and not negative, got nan"),
        (surv([False] * 3, Y["time"]), "must have an event"),
        (np.stack([Y, Y], axis=1), "structured array"),
    ],
)
def test_targets_that_are_none_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        HDISurvivalForest().fit(np.zeros((3, 2)), y)


def test_other_rows_and_other_forests_are_refused(rows):
    X, y, _ = rows
    forest = RandomForestRegressor(10, min_samples_leaf=5, random_state=0).fit(X, y["time"])
    with pytest.raises(ValueError, match="leaves of tree 0 hold other numbers of rows"):
        HDISurvivalForest.from_forest(forest, X[::-1], y)
    with pytest.raises(ValueError, match="X has 499 rows, but the forest was fitted on 500"):
        HDISurvivalForest.from_forest(forest, X[:-1], y[:-1])
    with pytest.raises(ValueError, match=r"y must have shape \(500,\), got \(499,\)"):
        HDISurvivalForest.from_forest(forest, X, y[:-1])
    with pytest.raises(NotFittedError):
        HDISurvivalForest.from_forest(RandomForestRegressor(), X, y)
    with pytest.raises(ValueError, match="HDISurvivalForest takes it"):
        HDIForestRegressor().fit(X, y)
    with pytest.raises(ValueError, match="HDISurvivalForest takes it"):
        from_leaves(forest.apply, X, y)


def test_a_refused_call_leaves_the_model_as_it_was(rows):
    X, y, _ = rows
    forest = RandomForestRegressor(60, min_samples_leaf=10, random_state=0)
    model = HDISurvivalForest(forest, random_state=0).fit(X[:300], y[:300])
    before = model.predict(X[300:])
    with pytest.raises(ValueError, match="must have shape"):
        model.fit(X[:, :2], y[:10])
    with pytest.raises(ValueError, match=r"X and y must be rows that took no part in the fit"):
        model.calibrate(X[:200], y[:200])
    np.testing.assert_array_equal(model.predict(X[300:]), before)
    assert not hasattr(model, "calibration_")
    assert repr(model).endswith(": 60 trees, 300 training rows, 1 output")


def test_ends_are_times_of_the_rows(rows):
    X, y, _ = rows
    y = surv(y["event"], np.ceil(y["time"]))
    model = HDISurvivalForest(RandomForestRegressor(60, min_samples_leaf=10, random_state=0))
    lower, upper = model.fit(X, y).calibrate(coverage=0.8).predict_interval(X[:99] + 0.01, 0.8).T
    assert np.isin(lower, [0, *y["time"]]).all()
    assert np.isin(upper, [np.inf, *y["time"]]).all()


def test_single_trees_and_forests_without_draws_are_imported(rows):
    X, y, _ = rows
    tree = DecisionTreeRegressor(min_samples_leaf=20, random_state=0).fit(X, y["time"])
    assert HDISurvivalForest.from_forest(tree, X, y).predict(X[:3]).shape == (3,)
    extra = ExtraTreesRegressor(10, min_samples_leaf=20, random_state=0).fit(X, y["time"])
    model = HDISurvivalForest.from_forest(extra, X, y)
    with pytest.raises(ValueError, match="at least 20 trees that did not draw a row"):
        model.calibrate()
    X_held, y_held, _ = simulated(200, seed=3)
    assert model.calibrate(X_held, y_held, coverage=0.8).calibration_.n == 200


def test_leaves_of_any_forest_take_events(rows):
    X, y, _ = rows
    forest = RandomForestRegressor(20, min_samples_leaf=10, random_state=0).fit(X, y["time"])
    model = from_leaves(forest.apply, X, y["time"], event=y["event"])
    lower, upper = model.predict_interval(X[:20], 0.8).T
    assert (lower <= upper).all()
    with pytest.raises(ValueError, match="mean of censored targets"):
        model.predict(X[:2])
    with pytest.raises(ValueError, match="no calibration"):
        model.calibrate(X, y["time"])


def test_few_events_and_infinite_ends_are_told():
    X, y, _ = simulated(60, seed=4)
    y["event"][np.flatnonzero(y["event"])[12:]] = False
    model = HDISurvivalForest(RandomForestRegressor(60, min_samples_leaf=5, random_state=0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y).calibrate(coverage=[0.5, 0.95])
    told = [str(each.message) for each in caught]
    assert any(" events are few" in text for text in told)
    assert any(each.category is InfiniteIntervalsWarning for each in caught)


def test_the_command_fits_and_scores(rows, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    X, y, _ = rows
    lines = ["a,b,c,d,town,died,weeks"]
    for row, (event, time) in zip(X, y, strict=True):
        cells = ",".join(f"{x:.4f}" for x in row)
        lines.append(f"{cells},{'AB'[int(row[3] > 0.5)]},{'yes' if event else 'no'},{time:.3f}")
    table, path = tmp_path / "rows.csv", tmp_path / "model.hdi"
    table.write_text("\n".join(lines) + "\n")
    fit = ["fit", str(table), "--target", "weeks", "--event", "died", "--trees", "60"]
    fit += ["--coverage", "0.5,0.9"]
    assert run([*fit, "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert "events" in out
    assert "lower bound" in out
    assert HDISurvivalForest.load(path).calibration_.n > 300
    scored = tmp_path / "scored.csv"
    assert run(["score", str(path), str(table), "-o", str(scored), "--kind", "lower"]) == 0
    assert scored.read_text().startswith("prediction,one_sided_lower_0.9\n")
    refused = {"--order": "a", "--objective": "width", "--weights": "oob", "--calibrate": "cv+"}
    for option, value in refused.items():
        assert run([*fit, "-o", str(path), option, value]) != 0
        assert option in capsys.readouterr().err
    few = [*fit[:-4], "--trees", "10", "-o", str(path)]
    assert run(few) == 0
    assert "Not calibrated: calibration out of bag needs at least 20" in capsys.readouterr().out
    assert run([*few, "--coverage", "0.9"]) != 0
    assert "give --calibrate split" in capsys.readouterr().err
    assert run([*few, "--calibrate", "split"]) == 0
    assert "method split" in capsys.readouterr().out
    table.write_text("a,died,weeks\n1,maybe,3\n2,yes,4\n")
    assert run([*fit, "-o", str(path)]) != 0
    assert "row 1 holds 'maybe'" in capsys.readouterr().err
