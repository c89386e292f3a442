"""Displays: scikit-learn's convention, the data that is drawn, wrong arguments."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hdicore.regions import Regions
from hdiforest import (
    CalibrationDisplay,
    DistributionDisplay,
    HDIForestRegressor,
    IntervalDisplay,
    PITDisplay,
    WidthDisplay,
    from_leaves,
)
from hdiforest.inspection import explain
from hdiforest.metrics import coverage_by_width, coverage_score
from hdiforest.regions import predict_region

from ..oracle import not_installed

matplotlib = pytest.importorskip("matplotlib")
DISPLAYS = [CalibrationDisplay, DistributionDisplay, IntervalDisplay, WidthDisplay]
each = pytest.mark.parametrize("display", DISPLAYS, ids=lambda display: display.__name__)


@pytest.fixture(autouse=True)
def closed_figures():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return matplotlib.figure.Figure().subplots()


@pytest.fixture(scope="module")
def rows():
    X, y = make_friedman1(400, 5, noise=1, random_state=0)
    return X[:250], y[:250], X[250:], y[250:]


def new_model():
    return HDIForestRegressor(
        RandomForestRegressor(40, min_samples_leaf=5, random_state=0), calibration=False
    )


@pytest.fixture(scope="module")
def model(rows):
    return new_model().fit(*rows[:2])


@pytest.fixture(scope="module")
def calibrated(rows):
    return (
        new_model()
        .set_params(estimator__n_estimators=100)
        .fit(*rows[:2])
        .calibrate(coverage=[0.5, 0.8, 0.9])
    )


@each
def test_the_convention_of_scikit_learn(display, model, rows, ax):
    found = display.from_estimator(model, *rows[2:], ax=ax)
    assert isinstance(found, display)
    assert found.ax_ is ax
    assert found.figure_ is ax.figure
    again = found.plot()
    assert again is found
    assert found.ax_ is not ax
    given = {name: getattr(found, name) for name in inspect.signature(display).parameters}
    assert display(**given).plot().ax_.get_xlabel() == ax.get_xlabel() != ""


@each
def test_models_in_pipelines_and_of_leaves_are_drawn_alike(display, model, rows):
    X_train, y_train, X, y = rows
    pipeline = make_pipeline(StandardScaler(), new_model()).fit(X_train, y_train)
    inner = display.from_estimator(pipeline[-1], pipeline[:-1].transform(X), y)
    outer = display.from_estimator(pipeline, X, y)
    leaves = from_leaves(model.estimator_.apply, X_train, y_train)
    own, of_leaves = (display.from_estimator(m, X, y) for m in (model, leaves))
    for name in inspect.signature(display).parameters:
        for one, other in ((inner, outer), (own, of_leaves)):
            np.testing.assert_equal(getattr(one, name), getattr(other, name))


@each
def test_several_targets_need_a_choice(display, rows):
    X_train, y_train, X, y = rows
    both, own = np.stack([y_train, -y_train], axis=1), np.stack([y, -y], axis=1)
    model = new_model().fit(X_train, both)
    with pytest.raises(ValueError, match="has 2 targets: choose one by target=, from 0 to 1"):
        display.from_estimator(model, X, own)
    with pytest.raises(ValueError, match="target must be a whole number from 0 to 1, got 2"):
        display.from_estimator(model, X, own, target=2)
    with pytest.raises(ValueError, match=r"y must have one column per target.*\(150, 3\)"):
        display.from_estimator(model, X, np.stack([y, -y, y], axis=1), target=1)
    found = display.from_estimator(model, X, own, target=1)
    if display is not DistributionDisplay:
        one = new_model().fit(X_train, y_train)
        with pytest.raises(ValueError, match=r"y must have one column per target.*\(150, 2\)"):
            display.from_estimator(one, X, own)
    if display is DistributionDisplay:
        assert found.y_true == -y[0]
        np.testing.assert_array_equal(found.values, np.unique(-y_train))
        expected = model.predict_interval(X[:1], 0.9)[0, 1]
        np.testing.assert_array_equal(found.interval, expected)


@each
def test_other_estimators_are_refused(display, rows):
    linear = LinearRegression().fit(*rows[2:])
    with pytest.raises(ValueError, match=r"a model that has predict_\w+, .* got LinearRegression"):
        display.from_estimator(linear, *rows[2:])


@each
def test_a_missing_matplotlib_is_named_before_any_work(display):
    message = rf"{display.__name__} needs matplotlib: pip install 'hdicore\[plots\]'"
    with not_installed("matplotlib"), pytest.raises(ImportError, match=message):
        display.from_estimator(None, None, None)
    with not_installed("matplotlib"), pytest.raises(ImportError, match="PITDisplay needs"):
        PITDisplay.from_predictions([0.5])


def test_a_band_is_checked_before_any_work():
    message = "band must be above 0 and below 1, got 2"
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_estimator(None, None, None, band=2)
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_out_of_bag(None, band=2)


def segments(collection):
    return np.array(collection.get_segments())


def test_a_bar_for_each_row_and_its_target_inside_or_outside(model, rows, ax):
    X, y = rows[2:]
    found = IntervalDisplay.from_estimator(model, X, y, coverage=0.8, ax=ax, target_name="y (m)")
    order = np.argsort(model.predict(X), kind="stable")
    ends, targets = model.predict_interval(X, 0.8)[order], y[order]
    inside = (ends[:, 0] <= targets) & (targets <= ends[:, 1])
    for bars, dots, part in zip(
        found.intervals_, (found.inside_, found.outside_), (inside, ~inside), strict=True
    ):
        at = np.flatnonzero(part)
        np.testing.assert_array_equal(segments(bars)[:, :, 0], np.stack([at, at], axis=1))
        np.testing.assert_array_equal(segments(bars)[:, :, 1], ends[part])
        np.testing.assert_array_equal(dots.get_offsets(), np.stack([at, targets[part]], axis=1))
    np.testing.assert_array_equal(found.prediction_.get_ydata(), model.predict(X)[order])
    np.testing.assert_array_equal(found.realised, [coverage_score(y, ends[np.argsort(order)])])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows, sorted by prediction", "y (m)")
    assert f"80 % interval, holds {100 * found.realised[0]:.3g} % of 150 rows" in legend(ax)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_fan_is_drawn_from_wide_to_narrow(model, rows, ax):
    X, y = rows[2:]
    found = IntervalDisplay.from_estimator(
        model, X, y, coverage=[0.5, 0.95, 0.8], feature=3, feature_name="time (s)", ax=ax
    )
    assert [label[:4] for label in legend(ax)[:3]] == ["95 %", "80 %", "50 %"]
    order = np.argsort(X[:, 3])
    ends = model.predict_interval(X, [0.95, 0.8, 0.5])[order]
    for j, band in enumerate(found.intervals_):
        corners = band.get_paths()[0].vertices
        for x, (lower, upper) in zip(X[order, 3], ends[..., j], strict=True):
            at = corners[corners[:, 0] == x, 1]
            assert {lower, upper} <= set(at)
    widest = model.predict_interval(X, 0.95)
    outside = (y < widest[:, 0]) | (y > widest[:, 1])
    assert len(found.outside_.get_offsets()) == outside.sum()
    assert ax.get_xlabel() == "time (s)"


def test_features_of_tables_and_repeated_values(model, rows, ax):
    pd = pytest.importorskip("pandas")
    X_train, y_train, X, y = rows
    names = ["a", "b$", "c", "d", "e"]
    model = new_model().fit(pd.DataFrame(X_train, columns=names), y_train)
    table = pd.DataFrame(X, columns=names)
    target = pd.Series(y, name="price ($)")
    found = IntervalDisplay.from_estimator(model, table, target, feature="b$", ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"b\$", r"price (\$)")
    np.testing.assert_array_equal(found.position, np.sort(X[:, 1]))
    ax.figure.canvas.draw()
    days = np.datetime64("2026-01-01") + np.arange(len(X)) // 2
    found = IntervalDisplay.from_estimator(model, table, target, feature=days, coverage=[0.5, 0.9])
    assert len(segments(found.intervals_[0])) == len(X)  # days repeat: bars, not bands
    with pytest.raises(ValueError, match="feature must be a column of X, got 'z'"):
        IntervalDisplay.from_estimator(model, table, target, feature="z")
    with pytest.raises(ValueError, match="feature must be a column from 0 to 4, got 5"):
        IntervalDisplay.from_estimator(model, table, target, feature=5)
    with pytest.raises(ValueError, match="feature must hold numbers or dates"):
        IntervalDisplay.from_estimator(model, table, target, feature=["x"] * len(X))


def test_some_rows_are_drawn_and_all_are_counted(model, rows):
    X, y = rows[2:]
    found = IntervalDisplay.from_estimator(model, X, y, subsample=20)
    assert (len(found.y_true), found.n_rows) == (20, 150)
    assert found.realised[0] == coverage_score(y, model.predict_interval(X))
    again = IntervalDisplay.from_estimator(model, X, y, subsample=20)
    np.testing.assert_array_equal(again.y_true, found.y_true)
    other = IntervalDisplay.from_estimator(model, X, y, subsample=20, random_state=1)
    assert not np.array_equal(other.y_true, found.y_true)
    with pytest.raises(ValueError, match="subsample must be a whole number from 1 on, got 0"):
        IntervalDisplay.from_estimator(model, X, y, subsample=0)


def test_orders_of_rows(model, rows):
    X, y = rows[2:]
    ends = model.predict_interval(X, [0.5, 0.9])
    found = IntervalDisplay.from_predictions(y, ends, coverage=[0.5, 0.9], sort_by="width")
    assert (np.diff(found.intervals[:, 1, 1] - found.intervals[:, 0, 1]) >= 0).all()
    found = IntervalDisplay.from_predictions(y, ends, style="bars")
    np.testing.assert_array_equal(found.y_true, np.sort(y))
    assert found.prediction_ is None
    with pytest.raises(ValueError, match="sort_by must not be 'prediction' without prediction"):
        IntervalDisplay.from_predictions(y, ends, sort_by="prediction")
    with pytest.raises(ValueError, match="sort_by must be 'prediction', 'target' or 'width'"):
        IntervalDisplay.from_estimator(model, X, y, sort_by="height")


def test_infinite_ends_are_drawn_beyond_all_others(model, rows, ax):
    X, y = rows[2:]
    found = IntervalDisplay.from_estimator(model, X, y, kind="upper", ax=ax)
    drawn = np.concatenate([segments(bars)[:, :, 1] for bars in found.intervals_])
    assert np.isfinite(drawn).all()
    assert drawn.min() == ax.get_ylim()[0] < y.min()


@pytest.mark.parametrize("end", [3.0, np.inf])
def test_what_the_axes_held_and_means_outside_intervals_stay_in_view(ax, end):
    ax.plot([0, 1], [-20, 5])
    ends = [[0, 1], [0, end]]
    IntervalDisplay.from_predictions([0.5, 1], ends, prediction=[0.5, 30], ax=ax)
    low, high = ax.get_ylim()
    assert low < -20 < 30 < high


def test_styles_are_the_users_by_whichever_name(model, rows):
    X, y = rows[2:]
    with pytest.raises(ValueError, match="style must be 'auto', 'bars' or 'bands', got 'lines'"):
        IntervalDisplay.from_estimator(model, X, y, style="lines")
    fan = IntervalDisplay.from_estimator(
        model, X, y, coverage=[0.5, 0.9], interval_kwargs={"fc": "green"}, line_kwargs={"c": "red"}
    )
    assert fan.intervals_[0].get_facecolor()[0, 1] == pytest.approx(128 / 255)
    assert fan.prediction_.get_color() == "red"
    curve = CalibrationDisplay.from_estimator(model, X, y, line_kwargs={"ms": 2})
    assert [line.get_markersize() for line in curve.lines_.values()] == [2]
    groups = WidthDisplay.from_estimator(model, X, y, range_kwargs={"lw": 4})
    assert groups.ranges_.get_linewidth()[0] == 4
    bins = DistributionDisplay.from_estimator(model, X, y, bins=6, bar_kwargs={"lw": 2})
    edges = {patch.get_edgecolor() for bars in bins.bars_ for patch in bars}
    assert edges == {patch.get_facecolor() for bars in bins.bars_ for patch in bars}
    assert {patch.get_linewidth() for bars in bins.bars_ for patch in bars} == {2}


def test_calibration_before_and_after(calibrated, rows, ax):
    X, y = rows[2:]
    found = CalibrationDisplay.from_estimator(calibrated, X, y, ax=ax)
    assert list(found.lines_) == ["HDI", "calibrated"]
    for kind, line in zip(["hdi", "calibrated"], found.lines_.values(), strict=True):
        realised = coverage_score(y, calibrated.predict_interval(X, [0.5, 0.8, 0.9], kind=kind))
        np.testing.assert_allclose(line.get_xdata(), [50, 80, 90], rtol=1e-12)
        np.testing.assert_allclose(line.get_ydata(), 100 * realised, rtol=1e-12)
    assert "95 % range of chance, 150 rows" in legend(ax)
    more = CalibrationDisplay.from_estimator(calibrated, X, y, kind=["hdi", "equal_tailed"])
    assert list(more.lines_) == ["HDI", "equal-tailed"]


def test_the_band_is_the_range_of_the_binomial_distribution(rows):
    y = np.arange(40.0)
    ends = np.stack([y, y], axis=1)
    found = CalibrationDisplay.from_predictions(y, {0.8: ends, 0.5: ends}, band=0.9)
    drawn = np.random.default_rng(0).binomial(40, [0.5, 0.8], size=(20_000, 2)) / 40
    corners = found.band_.get_paths()[0].vertices
    for j, level in enumerate([50, 80]):
        at = np.unique(corners[corners[:, 0] == level, 1])
        np.testing.assert_allclose(at, 100 * np.quantile(drawn[:, j], [0.05, 0.95]), atol=1e-9)
    assert found.realised["intervals"].tolist() == [1, 1]


def test_forms_of_intervals_for_calibration(model, rows):
    X, y = rows[2:]
    levels = [0.3, 0.6]
    array = model.predict_interval(X, levels)
    by_level = {level: array[..., j] for j, level in enumerate(levels)}
    one = CalibrationDisplay.from_predictions(y, by_level)
    for given in (array, {"intervals": array}, {"intervals": by_level}):
        other = CalibrationDisplay.from_predictions(y, given, coverages=levels)
        np.testing.assert_array_equal(other.realised["intervals"], one.realised["intervals"])
    both = CalibrationDisplay.from_predictions(y, {"a": by_level, "b": {0.9: array[..., 1]}})
    np.testing.assert_array_equal(both.coverages, [0.3, 0.6, 0.9])
    assert np.isnan(both.realised["b"]).tolist() == [True, True, False]
    assert len(both.lines_["b"].get_xdata()) == 1
    single = CalibrationDisplay.from_predictions(y, {0.6: array[..., 1]})
    assert len(np.unique(single.band_.get_paths()[0].vertices[:, 0])) == 2
    for wrong, message in [
        (array, r"or have shape \(n, 2, k\) with k coverages, got shape .* and 0 coverages"),
        ({}, "intervals must be of one coverage or more"),
        ({1.0: array[..., 0]}, "coverages must be above 0 and below 1, got 1"),
        ({0.3: array[:5, :, 0]}, "interval must have as many rows as y_true"),
    ]:
        with pytest.raises(ValueError, match=message):
            CalibrationDisplay.from_predictions(y, wrong)
    with pytest.raises(ValueError, match="band must be above 0 and below 1, got 95"):
        CalibrationDisplay.from_predictions(y, by_level, band=95)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_displays_draw_tables_of_results(library, model, rows):
    """Oracle: the same results as arrays."""
    pytest.importorskip(library)
    X, y = rows[2:]
    levels = [0.4, 0.85]
    ask = {"X": X, "output": library}
    table, mean = model.predict_interval(coverage=levels, **ask), model.predict(**ask)
    array = model.predict_interval(X, levels)
    found, own = (
        IntervalDisplay.from_predictions(y, ends, coverage=levels, prediction=means)
        for ends, means in ((table, mean), (array, model.predict(X)))
    )
    np.testing.assert_array_equal(found.intervals, own.intervals)
    np.testing.assert_array_equal(found.prediction, own.prediction)
    one = model.predict_interval(coverage=0.85, **ask)
    found, own = (WidthDisplay.from_predictions(y, ends) for ends in (one, array[..., 1]))
    np.testing.assert_array_equal(found.mean_width, own.mean_width)
    for ends, k in ((table, levels), (one, levels[1:])):
        found = CalibrationDisplay.from_predictions(y, ends, coverages=k)
        own = CalibrationDisplay.from_predictions(y, array[..., -len(k) :], coverages=k)
        np.testing.assert_array_equal(found.realised["intervals"], own.realised["intervals"])
    cdf = model.predict_cdf(y=y, **ask)
    np.testing.assert_array_equal(PITDisplay.from_predictions(cdf).pit, model.predict_cdf(X, y))


def test_the_distribution_is_that_of_the_weights(model, rows, ax):
    _, y_train, X, y = rows
    found = DistributionDisplay.from_estimator(model, X, y, row=7, coverage=0.8, bins=9, ax=ax)
    weights = model.predict_weights(X[7:8]).toarray()[0]
    np.testing.assert_array_equal(found.values, np.sort(y_train))
    np.testing.assert_allclose(found.masses, weights[np.argsort(y_train)], atol=1e-12)
    np.testing.assert_array_equal(found.interval, model.predict_interval(X[7:8], 0.8)[0])
    assert found.observed_.get_xdata()[0] == y[7]
    inside = (found.interval[0] <= y_train) & (y_train <= found.interval[1])
    heights = [sum(patch.get_height() for patch in bars) for bars in found.bars_]
    expected = [100 * weights[inside].sum(), 100 * weights[~inside].sum()]
    np.testing.assert_allclose(heights, expected, rtol=1e-9)
    assert f"80 % interval, mass {expected[0]:.3g} %" in legend(ax)
    found.plot(bins=0)
    lines = np.concatenate([segments(bars) for bars in found.bars_])
    np.testing.assert_allclose(np.sort(lines[:, 1, 1]), np.sort(100 * weights[weights > 0]))


def test_the_distribution_function(model, rows):
    X, y = rows[2:]
    found = DistributionDisplay.from_estimator(model, X, y, what="cdf")
    x, heights = found.curve_.get_data()
    for point in (x[50], x[120]):
        cdf = model.predict_cdf(X[:1], [point])[0]
        assert heights[x == point][0] == pytest.approx(100 * cdf, abs=1e-9)
    assert (heights[0], heights[-1]) == (0, 100)
    assert found.bars_ == []


def test_weighted_samples_and_tables_of_one_row(model, rows, tmp_path):
    found = DistributionDisplay.from_predictions(None, [3, 1, 3], [1, 1, 2], interval=[1, np.inf])
    assert (found.values.tolist(), found.masses.tolist()) == ([1, 3], [0.25, 0.75])
    assert found.observed_ is None
    pytest.importorskip("safetensors")
    model.save(tmp_path / "m.hdi", training_rows=False)
    loaded = HDIForestRegressor.load(tmp_path / "m.hdi")
    one, other = (DistributionDisplay.from_estimator(m, rows[2], row=3) for m in (model, loaded))
    np.testing.assert_array_equal(one.masses, other.masses)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, r"values must be finite and of shape \(m,\)"),
        ({"weights": [1, 2, 3]}, r"weights must have shape \(2,\), got \(3,\)"),
        ({"weights": [0, 0]}, "weights must be finite, not negative, and not all zero"),
        ({"interval": [2, 1]}, "interval must be a lower and an upper end"),
        ({"y_true": np.nan}, "y_true must be finite, got nan"),
        ({"what": "pmf"}, "what must be 'mass' or 'cdf', got 'pmf'"),
        ({"bins": -1}, "bins must be a whole number from 0 on, got -1"),
    ],
)
def test_wrong_samples(arguments, message):
    with pytest.raises(ValueError, match=message):
        DistributionDisplay.from_predictions(**({"y_true": 1, "values": [1, 2]} | arguments))


def test_wrong_rows(model, rows):
    for row, most in [(150, "to 149"), (-1, "on"), ("a", "on"), (True, "on")]:
        message = f"row must be a whole number from 0 {most}, got {row!r}"
        with pytest.raises(ValueError, match=message):
            DistributionDisplay.from_estimator(model, rows[2], row=row)


def test_groups_by_width_are_those_of_the_metric(model, rows, ax):
    X, y = rows[2:]
    found = WidthDisplay.from_estimator(model, X, y, coverage=0.8, groups=4, ax=ax)
    strata = coverage_by_width(y, model.predict_interval(X, 0.8), 4)
    np.testing.assert_array_equal(found.counts, strata.counts[1:])
    np.testing.assert_allclose(found.realised, strata.coverage[1:], rtol=1e-12)
    np.testing.assert_allclose(found.mean_width, strata.mean_width[1:], rtol=1e-12)
    drawn = np.concatenate([points.get_offsets() for points in found.points_])
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(100 * found.realised))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[0] == f"1 of 4, narrow\n{found.counts[0]} rows"
    found.plot(what="width")
    np.testing.assert_allclose(found.points_[0].get_offsets()[:, 0], found.mean_width)
    assert found.ax_.get_xlabel() == "width of the 80 % interval, target"
    np.testing.assert_allclose(segments(found.ranges_)[:, :, 0], found.width_range.T)


def test_given_groups_and_those_beyond_chance(ax):
    y = np.zeros(300)
    lower = np.where(np.arange(300) < 200, -1, 1)  # none of group "b$" is covered
    interval = np.stack([lower, np.full(300, 2)], axis=1)
    groups = np.repeat(["a", "b$"], [200, 100])
    found = WidthDisplay.from_predictions(y, interval, groups=groups, coverage=0.99, ax=ax)
    assert (found.groups, found.counts.tolist()) == (["a", r"b\$"], [200, 100])
    np.testing.assert_array_equal(found.points_[0].get_offsets(), [[100, 0]])
    np.testing.assert_array_equal(found.points_[1].get_offsets(), [[0, 1]])
    assert legend(ax)[2:] == ["realised", "realised, beyond chance"]
    zero = WidthDisplay.from_predictions([1, 2, 3], [[1, 1], [1, 2], [1, 4]], groups=2)
    assert zero.groups == ["width 0", "narrow half", "wide half"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": 0}, "groups must be a whole number from 1 on, got 0"),
        ({"groups": ["a"]}, r"groups must have shape \(2,\), got \(1,\)"),
        ({"coverage": 90}, "coverage must be above 0 and below 1, got 90"),
        ({"interval": np.zeros((2, 2, 3))}, "interval must be of one level"),
        ({"what": "both"}, "what must be 'coverage' or 'width', got 'both'"),
    ],
)
def test_wrong_groups(arguments, message):
    usual = {"y_true": [1, 2], "interval": [[0, 1], [0, 3]]}
    with pytest.raises(ValueError, match=message):
        WidthDisplay.from_predictions(**(usual | arguments))


def test_categories_keep_their_order(ax):
    pd = pytest.importorskip("pandas")
    names = ["low", "high", "empty", "below"]
    groups = pd.Categorical(["high", "low", "below", "low", None], names)
    interval = [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5]]
    for given in (groups, pd.Series(groups), pd.CategoricalIndex(groups)):
        found = WidthDisplay.from_predictions(np.ones(5), interval, groups=given, ax=ax)
        assert (found.groups, found.counts.tolist()) == (
            ["low", "high", "below", "nan"],
            [2, 1, 1, 1],
        )
        assert found.mean_width.tolist() == [3, 1, 3, 5]
    numbers = pd.Categorical([1, 1, 10, 2, 2], [10, 2, 1])
    found = WidthDisplay.from_predictions(np.ones(5), interval, groups=numbers, ax=ax)
    assert (found.groups, found.mean_width.tolist()) == (["10", "2", "1"], [3, 4.5, 1.5])


def test_axes_that_are_shared_show_what_all_displays_draw():
    y, ends = np.arange(4.0), np.array([[-1, 2], [0, 3], [1, 4], [2, 5]])
    both = matplotlib.figure.Figure().subplots(1, 2, sharex=True, sharey=True)
    for axes, more in zip(both, (100, 0), strict=True):
        IntervalDisplay.from_predictions(more + y, more + ends, ax=axes)
    low, high = both[0].get_ylim()
    assert low <= -1 < 105 <= high
    both = matplotlib.figure.Figure().subplots(1, 2, sharex=True, sharey=True)
    for axes, sample in zip(both, ([0, 1], [100, 101, 101, 101]), strict=True):
        DistributionDisplay.from_predictions(None, sample, ax=axes)
    (left, right), (_, top) = both[0].get_xlim(), both[1].get_ylim()
    assert left <= 0 < 101 <= right
    assert top == pytest.approx(118 * 0.75)


OUT_OF_BAG = [CalibrationDisplay, IntervalDisplay, WidthDisplay]


def test_out_of_bag_displays_draw_what_the_model_says_of_its_rows(calibrated, rows, ax):
    y = rows[1]
    found = IntervalDisplay.from_out_of_bag(
        calibrated, coverage=[0.5, 0.9], subsample=None, target_name="y (m)", ax=ax
    )
    order = np.argsort(calibrated.oob_.prediction(), kind="stable")
    np.testing.assert_array_equal(found.intervals, calibrated.oob_.interval([0.5, 0.9])[order])
    np.testing.assert_array_equal(found.y_true, y[order])
    np.testing.assert_array_equal(found.prediction, calibrated.oob_.prediction()[order])
    assert ax.get_ylabel() == "y (m)"
    raw = IntervalDisplay.from_out_of_bag(calibrated, kind="hdi", feature=rows[0][:, 1])
    assert raw.realised == coverage_score(y, calibrated.oob_.interval(0.9, kind="hdi"))
    np.testing.assert_array_equal(raw.position, np.sort(rows[0][:, 1]))
    by_width = WidthDisplay.from_out_of_bag(calibrated, coverage=0.8, groups=4)
    strata = coverage_by_width(y, calibrated.oob_.interval(0.8), 4)
    np.testing.assert_allclose(by_width.realised, strata.coverage[1:])
    pipeline = make_pipeline(StandardScaler(), new_model()).fit(*rows[:2])
    inner, outer = (WidthDisplay.from_out_of_bag(m) for m in (pipeline[-1], pipeline))
    np.testing.assert_array_equal(inner.mean_width, outer.mean_width)


def test_out_of_bag_calibration_shows_the_cross_check(calibrated, model, rows):
    y = rows[1]
    found = CalibrationDisplay.from_out_of_bag(calibrated)
    raw = coverage_score(y, calibrated.oob_.interval([0.5, 0.8, 0.9], kind="hdi"))
    np.testing.assert_array_equal(found.realised["HDI, out of bag"], raw)
    shares = [level.cross_check.coverage for level in calibrated.calibration_.levels]
    np.testing.assert_array_equal(found.realised["calibrated, cross-check"], shares)
    assert found.n_rows == calibrated.calibration_.n
    more = CalibrationDisplay.from_out_of_bag(calibrated, coverages=[0.9, 0.7])
    np.testing.assert_array_equal(more.realised["calibrated, cross-check"], [np.nan, shares[2]])
    assert list(CalibrationDisplay.from_out_of_bag(model).realised) == ["HDI, out of bag"]


@pytest.mark.parametrize("display", OUT_OF_BAG)
def test_rows_that_every_tree_saw_are_not_drawn(display, rows):
    model = HDIForestRegressor(RandomForestRegressor(3, random_state=0), calibration=False).fit(
        *rows[:2]
    )
    more = {WidthDisplay: {"groups": ["a", "b"] * 125}, IntervalDisplay: {"feature": rows[1]}}
    with pytest.warns(UserWarning, match="training rows have no out-of-bag interval") as caught:
        found = display.from_out_of_bag(model, **more.get(display, {}))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    n = getattr(found, "n_rows", None) or found.counts.sum()
    assert 100 < n < 250


@pytest.mark.parametrize("display", OUT_OF_BAG)
def test_out_of_bag_of_several_targets_and_of_other_models(display, rows):
    X, y = rows[:2]
    both = new_model().fit(X, np.stack([y, -y], axis=1))
    with pytest.raises(ValueError, match="has 2 targets: choose one by target="):
        display.from_out_of_bag(both)
    found = display.from_out_of_bag(both, target=1)
    inside = coverage_score(-y, both.oob_.interval(0.9)[:, 1])
    if display is CalibrationDisplay:
        assert found.realised["HDI, out of bag"][-2] == inside
    else:
        assert np.average(found.realised, weights=getattr(found, "counts", [1])) == inside
    leaves = from_leaves(both.estimator_.apply, X, y)
    with pytest.raises(ValueError, match=r"a model that has oob_, .* got LeafModel"):
        display.from_out_of_bag(leaves)


def test_wrong_arguments_out_of_bag(model):
    with pytest.raises(ValueError, match=r"groups must have shape \(250,\), got \(251,\)"):
        WidthDisplay.from_out_of_bag(model, groups=np.zeros(251))
    with pytest.raises(ValueError, match=r"feature must have shape \(250,\), got \(3,\)"):
        IntervalDisplay.from_out_of_bag(model, feature=[1, 2, 3])
    with pytest.raises(ValueError, match="sort_by must be"):
        IntervalDisplay.from_out_of_bag(model, sort_by="y")
    with pytest.raises(AttributeError, match="no calibration_"):
        WidthDisplay.from_out_of_bag(model, kind="calibrated")


def test_large_numbers_are_written_in_full(ax):
    y = 1e9 + np.arange(40.0)
    IntervalDisplay.from_predictions(y, np.stack([y - 5, y + 5], axis=1), feature=-1e4 * y, ax=ax)
    ax.figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        assert axis.get_offset_text().get_text() == ""
        assert "," in axis.get_ticklabels()[1].get_text()
    assert "e+" not in ax.get_yticklabels()[1].get_text()
    own, timed = matplotlib.figure.Figure().subplots(1, 2)
    own.yaxis.set_major_formatter("{x:.1f} m")
    own.set_xscale("log")
    IntervalDisplay.from_predictions([1, 2], [[0.1, 1], [1, 4]], feature=[1e6, 1e9], ax=own)
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    IntervalDisplay.from_predictions([1, 2], [[0, 1], [1, 4]], feature=dates, ax=timed)
    own.figure.canvas.draw()
    assert own.get_yticklabels()[0].get_text().endswith(" m")
    assert "10^" in own.get_xticklabels()[1].get_text()
    assert any("2020" in label.get_text() for label in timed.get_xticklabels())


def test_pieces_of_regions_are_drawn(model, rows, ax):
    _, _, X, y = rows
    regions = Regions([0, 2, 3, 3 + 2], [0, 4, 1, 0, 5.0], [1, 5, 2, 2, np.inf])
    display = IntervalDisplay.from_predictions([0.5, 3, 4], regions, subsample=None, ax=ax)
    held, missed = (collection.get_segments() for collection in display.intervals_)
    assert (len(held), len(missed)) == (2, 3)
    assert [segment[:, 1].tolist() for segment in held] == [[0, 1], [4, 5]]
    assert display.realised.tolist() == [1 / 3]
    assert np.isfinite(missed).all()
    assert "region, holds 33.3 % of 3 rows" in {t.get_text() for t in ax.get_legend().get_texts()}
    with pytest.raises(ValueError, match="style must not be 'bands' for regions"):
        display.plot(style="bands")
    own = predict_region(model, X[:40], 0.8)
    drawn = IntervalDisplay.from_predictions(y[:40], own, feature=X[:40, 0], subsample=10)
    np.testing.assert_array_equal(drawn.regions.contains(drawn.y_true).shape, (10,))


def test_the_region_of_a_distribution(model, rows):
    _, _, X, y = rows
    regions = predict_region(model, X, 0.7)
    display = DistributionDisplay.from_estimator(model, X, y, row=3, regions=regions)
    pieces = regions[3]
    np.testing.assert_array_equal(display.interval, pieces)
    inside = np.any([(lo <= display.values) & (display.values <= up) for lo, up in pieces], axis=0)
    assert display.masses[inside].sum() > 0.5
    shades = [patch for patch in display.ax_.patches if patch.get_zorder() == 0]
    assert len(shades) == len(pieces)
    must = f"regions must be of the {len(X)} rows of X, got those of 2 rows"
    with pytest.raises(ValueError, match=must):
        DistributionDisplay.from_estimator(model, X, regions=regions.take([0, 1]))


def test_what_makes_an_interval_is_drawn_on_two_axes(model, rows):
    explained = explain(model, rows[2][:1])
    shown = explained.plot()
    assert [ax.get_xlabel() for ax in shown.axes_] == [
        "where training rows stand",
        "width less that with other values of the feature",
    ]
    n_rows = len(segments(shown.rows_)) + len(segments(shown.pins_))
    assert (n_rows, len(shown.bars_)) == (len(shown.rows["value"]), 5)
