"""Calibration by groups of rows, and what later rows are covered."""

import re
import warnings
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor

import hdicore
from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag
from hdiforest.exceptions import NewGroupsWarning
from hdiforest.inspection import diagnose, explain
from hdiforest.serving import BatchScorer

RNG = np.random.default_rng(0)
N, N_GROUPS = 1000, 4
CODES = RNG.integers(0, N_GROUPS, 2 * N)
NOISE = np.array([0.2, 0.5, 1.0, 3.0])[CODES]
X = RNG.normal(size=(2 * N, 3))
Y = X[:, 0] + NOISE * RNG.normal(size=2 * N)
TRAIN, TEST = slice(None, N), slice(N, None)
WITH_CODE = np.column_stack([X, CODES])
NAMES = np.array(["a", "b", "c", "d"])[CODES]


@cache
def grown(with_code=False):
    forest = ExtraTreesRegressor(36, bootstrap=True, max_samples=0.4, random_state=0)
    return forest.fit((WITH_CODE if with_code else X)[TRAIN], Y[TRAIN])


SPREAD = (
    r"At 0\.9 one quantile for all rows covers (\S+) to (\S+) of the groups' rows; "
    r"chance alone gives (\S+) to (\d\.\d+)\."
)


def fitted(rows=X):
    """A model of its own around a forest that all tests share."""
    return HDIForestRegressor.from_forest(grown(len(rows.T) > 3), rows[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def plain():
    return fitted()


def coverage_by_group(intervals):
    lower, upper = intervals.T
    covered = (lower <= Y[TEST]) & (Y[TEST] <= upper)
    return np.array([covered[CODES[TEST] == code].mean() for code in range(N_GROUPS)])


def test_each_group_is_covered(plain):
    common = coverage_by_group(plain.calibrate().predict_interval(X[TEST], 0.9))
    assert common.min() < 0.8
    assert common.max() > 0.97
    plain.calibrate(by=NAMES[TRAIN])
    own = coverage_by_group(plain.predict_interval(X[TEST], 0.9, by=NAMES[TEST]))
    chance = np.sqrt(0.09 * (2 * N_GROUPS / N))  # of test rows, and of quantiles
    assert np.abs(own - 0.9).max() < 4 * chance


def test_sources_of_groups_are_alike(plain, tmp_path):
    by_column = fitted(WITH_CODE).calibrate(by=3)
    from_column = by_column.predict_interval(WITH_CODE[TEST], [0.5, 0.9])
    by_function = fitted(WITH_CODE).calibrate(by=lambda rows: rows[:, 3])
    assert_array_equal(by_function.predict_interval(WITH_CODE[TEST], [0.5, 0.9]), from_column)
    by_array = fitted(WITH_CODE).calibrate(by=CODES[TRAIN])
    given = by_array.predict_interval(WITH_CODE[TEST], [0.5, 0.9], by=CODES[TEST])
    assert_array_equal(given, from_column)
    assert_array_equal(
        by_array.oob_.interval(kind="calibrated"), by_column.oob_.interval(kind="calibrated")
    )
    assert by_column.calibration_.groups.labels == (0.0, 1.0, 2.0, 3.0)
    for model in (by_column, by_array):
        model.save(tmp_path / "model")
        loaded = HDIForestRegressor.load(tmp_path / "model")
        labels = None if model is by_column else CODES[TEST]
        again = loaded.predict_interval(WITH_CODE[TEST], [0.5, 0.9], by=labels)
        assert_array_equal(again, from_column)
    with pytest.raises(ValueError, match="by must be the groups of the rows"):
        loaded.predict_interval(WITH_CODE[TEST])
    with pytest.raises(ValueError, match="by must be the groups of the rows"):
        loaded.oob_.interval(kind="calibrated")
    by_column.save(tmp_path / "model")
    record = dict(enumerate(WITH_CODE[TEST][0].tolist()))
    scored = BatchScorer(tmp_path / "model", coverage=0.9)({str(j): v for j, v in record.items()})
    assert list(scored.values())[-2:] == from_column[0, :, 1].tolist()


def test_a_column_is_named():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(WITH_CODE, columns=["x", "y", "z", "site"])
    model = HDIForestRegressor(clone(grown()), calibration=False)
    model.fit(table[TRAIN], Y[TRAIN]).calibrate(by="site")
    assert model.calibration_.groups.feature == 3
    with pytest.raises(ValueError, match=r"by must be the name of a column .* got 'town'"):
        model.calibrate(by="town")


def test_unknown_small_and_missing_groups(plain):
    """The first two take the common quantile; rows without a label are a group."""
    labels = NAMES.astype(object)
    labels[:3] = "few"
    labels[3:300] = None
    plain.calibrate(by=labels[TRAIN])
    calibration = plain.calibration_
    groups = calibration.groups
    few, missing = groups.labels.index("few"), groups.labels.index(None)
    assert groups.counts[few] == 3
    assert np.isfinite(groups.q_hat[few, 0])
    assert np.isnan(groups.q_hat[few, 1:]).all()  # 0.8 needs four rows
    assert np.isfinite(groups.q_hat[missing]).all()
    assert "have too few rows for some coverages" in repr(calibration)
    common = np.array([level.q_hat for level in calibration.levels])
    codes = groups.codes(["few", "new", None])
    assert_array_equal(codes, [few, -1, missing])
    assert_array_equal(groups.quantiles(codes, common)[1], common)
    with pytest.warns(NewGroupsWarning, match="^1 of 3 rows are of groups that the calibration"):
        ends = plain.predict_interval(X[TEST][:3], [0.5, 0.99], by=["new", None, np.nan])
    assert np.isfinite(ends).all()


def test_numbers_are_looked_up_as_any_labels_are(plain):
    labels = [0.1, "0.1", None, 3.0, float(np.float32(0.1)), -np.inf]
    plain.calibrate(by=np.resize(np.array(labels, dtype=object), N))
    groups = plain.calibration_.groups
    assert groups.labels == tuple(labels)
    values = np.array([0.1, 3, np.nan, -0.0, -np.inf, 3, 7])
    for kind in (np.float16, np.float32, np.float64):
        own = values.astype(kind)
        assert_array_equal(groups.codes(own), groups.codes(own.tolist()))
        assert_array_equal(groups.codes(own), groups.codes(own.astype(object)))
    assert_array_equal(groups.codes(np.array([3, 0])), [3, -1])
    assert_array_equal(groups.codes(["0.1", None, "3.0"]), [1, 2, -1])


def test_rows_of_new_groups_take_the_common_quantile_and_are_counted(tmp_path):
    model = fitted(WITH_CODE).calibrate(by=3)
    new = WITH_CODE[TEST].copy()
    new[:5, 3] = 7
    with pytest.warns(UserWarning, match="^5 of 1,000 rows") as told:
        ends = model.predict_interval(new, 0.9)
    assert len(told) == 1
    assert told[0].filename == __file__
    by_array = fitted(WITH_CODE).calibrate(by=CODES[TRAIN])
    with pytest.warns(UserWarning, match="^5 of 1,000 rows"):
        assert_array_equal(by_array.predict_interval(new, 0.9, by=new[:, 3]), ends)
    model.save(tmp_path / "model")
    scorer = BatchScorer(tmp_path / "model", coverage=0.9)
    scored = scorer({str(j): column for j, column in enumerate(new.T)})  # without a warning
    assert_array_equal(np.column_stack([scored["lower_0.9"], scored["upper_0.9"]]), ends)
    assert scorer.counts.n_rows_of_new_groups == 5
    assert "calibration had no rows of: 5 of 1,000; their" in str(scorer.counts)
    calibration_rows = WITH_CODE[TEST][:200], Y[TEST][:200]
    without = fitted(WITH_CODE).calibrate(*calibration_rows, coverage=0.9)
    model.calibrate(*calibration_rows, coverage=0.9, by=3)
    with pytest.warns(UserWarning, match="5 of 5"):
        assert_array_equal(model.predict_interval(new[:5]), without.predict_interval(new[:5]))


def test_split_covers_each_group_at_least_as_asked():
    """Mondrian: within a group rows are exchangeable, so this is a theorem; over 8 repetitions."""
    model = fitted()
    shares = []
    for seed in range(8):
        rows = np.random.default_rng(seed).permutation(np.arange(N, 2 * N))
        own, others = np.split(rows, [N // 2])
        model.calibrate(X[own], Y[own], coverage=0.8, by=CODES[own])
        lower, upper = model.predict_interval(X[others], 0.8, by=CODES[others]).T
        covered = (lower <= Y[others]) & (Y[others] <= upper)
        shares.append([covered[CODES[others] == code].mean() for code in range(N_GROUPS)])
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(len(shares))
    assert (mean > 0.8 - 4 * error).all()
    assert (mean < 0.8 + 1 / 100 + 4 * error).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": NAMES[:7]}, r"by must give one group for each of 1000 rows, got shape \(7,\)"),
        ({"by": 3}, "by must be a column from 0 to 2, got 3"),
        ({"by": 0, "method": "cv+"}, "by must be None with method='cv\\+'"),
        ({"method": OutOfBag(order=NAMES[:7])}, r"order must have shape \(1000,\), got \(7,\)"),
        (
            {"method": OutOfBag(order=[None, *range(1, N)])},
            "1 of 1000 are missing, the first in row 0",
        ),
        (
            {"method": OutOfBag(order=[*range(N - 1), "last"])},
            "order holds numbers such as '0', but 'last'; give",
        ),
    ],
)
def test_bad_groups_and_orders(plain, options, message):
    with pytest.raises(ValueError, match=message):
        plain.calibrate(**options)


def test_labels_are_counted_before_any_work_is_done(plain, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    for scorer in (hdicore.Scorer, hdicore.OutOfBagScorer):
        monkeypatch.setattr(scorer, "intervals", never)
    for rows in ((), (X[TEST], Y[TEST])):
        with pytest.raises(ValueError, match=r"for each of 1000 rows, got shape \(7,\)"):
            plain.calibrate(*rows, by=NAMES[:7])


@pytest.mark.parametrize("source", ["array", "column"])
def test_groups_are_explained_and_diagnosed(source, tmp_path):
    """Oracle: the intervals of `predict_interval` with the same groups."""
    by = {"array": NAMES[TRAIN], "column": 3}[source]
    model = fitted(WITH_CODE).calibrate(by=by, coverage=[0.5, 0.8])
    rows = WITH_CODE[TEST][:2]
    own = {"by": NAMES[TEST][:2]} if source == "array" else {}
    ends = model.predict_interval(rows, 0.8, **own)
    found = explain(model, rows, 0.8, background=3, random_state=0, **own)
    assert_array_equal(found.interval, ends)
    # Where no other row has its place an end stays; a row of the widest group is wider than others.
    for name, end in (("lower_without", ends[:, 0]), ("upper_without", ends[:, 1])):
        assert (found.rows[name] == end[found.rows["row"]]).any()
    widths = found.features["narrowest_width"]
    assert (widths > 0).all()
    told = diagnose(model, rows, 0.8, **own)["mass_outside"]
    lower, upper = ends.T
    held = model.predict_cdf(rows, upper, kind="raw")
    held -= model.predict_cdf(rows, lower, kind="raw", inclusive=False)
    np.testing.assert_allclose(told, 1 - held, atol=1e-9)
    model.save(tmp_path / "model")
    loaded = HDIForestRegressor.load(tmp_path / "model")
    assert_array_equal(explain(loaded, rows, 0.8, **own).interval, ends)


def test_without_the_labels_all_rows_are_explained_by_one_quantile(plain):
    plain.calibrate(coverage=0.8)
    rows, common = X[TEST][:1], plain.predict_interval(X[TEST][:1], 0.8)
    masses = diagnose(plain, rows, 0.8)["mass_outside"]
    plain.calibrate(coverage=0.8, by=NAMES[TRAIN])
    with pytest.warns(UserWarning, match="intervals take the conformal quantile of all rows: the"):
        found = explain(plain, rows, 0.8, background=3)
    assert_array_equal(found.interval, common)
    assert np.isfinite(found.features["narrowest_width"]).all()
    assert np.isfinite(found.rows["lower_without"]).any()
    assert_array_equal(diagnose(plain, rows, 0.8)["mass_outside"], masses)
    for ask in (partial(explain, plain), partial(diagnose, plain), plain.predict_interval):
        with pytest.raises(ValueError, match=r"one group for each of 1 rows, got shape \(2,\)"):
            ask(rows, 0.8, by=["a", "b"])
        with pytest.raises(ValueError, match="by must give the group of each row, got 'code'"):
            ask(rows, 0.8, by="code")
    plain.calibrate(coverage=0.8)
    for ask in (partial(explain, plain), partial(diagnose, plain)):
        with pytest.raises(ValueError, match="by must be None: the calibration was not made by gr"):
            ask(rows, 0.8, by=["a"])


def test_the_spread_over_groups_is_told_beside_that_of_chance(plain):
    """Groups of one law differ by chance; those of other noise differ by more."""
    alike = np.random.default_rng(99).integers(0, 8, N)
    plain.calibrate(by=alike)
    found = re.search(SPREAD, repr(plain.calibration_))
    least, most, by_chance, at_most = map(float, found.groups())
    assert by_chance - 0.05 < least < most < at_most + 0.05
    assert by_chance < 0.9 < at_most
    noisy = Y[TRAIN] + np.where(alike == 3, 20.0, 0.1) * np.random.default_rng(1).normal(size=N)
    model = HDIForestRegressor(clone(grown()), calibration=False).fit(X[TRAIN], noisy)
    model.calibrate(by=alike)
    least, _, by_chance, _ = map(float, re.search(SPREAD, repr(model.calibration_)).groups())
    assert least < by_chance - 0.1
    covered = model.calibration_.groups.coverage
    assert covered.shape == (8, 5)
    assert (np.diff(covered) >= 0).all()


def test_by_needs_a_calibration_by_groups(plain):
    plain.calibrate()
    with pytest.raises(ValueError, match="by must be None: the calibration was not made by groups"):
        plain.predict_interval(X[TEST], by=CODES[TEST])
    with pytest.raises(ValueError, match=r"by must be None with kind='hdi': .* call calibrate"):
        plain.predict_interval(X[TEST], kind="hdi", by=CODES[TEST])
    with pytest.raises(ValueError, match=r"by must be None with kind='hdi': .* call calibrate"):
        fitted().predict_interval(X[TEST], by="sex")


def test_later_rows_like_the_others_are_covered_alike(plain, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.calibrate(method=OutOfBag(order=np.arange(N)))
    for level in plain.calibration_.levels:
        error = np.hypot(level.later.standard_error, level.cross_check.standard_error)
        assert abs(level.later.coverage - level.cross_check.coverage) < 4 * error
        assert len(level.later.blocks) == 4
        assert min(level.later.blocks) <= level.later.coverage <= max(level.later.blocks)
    assert "later rows" in repr(plain.calibration_)
    shown = repr(plain.calibration_).splitlines()[4]
    assert re.search(r" 0\.\d{3} \(0\.\d\d to \d\.\d\d\) ", shown)
    plain.save(tmp_path / "model")
    assert HDIForestRegressor.load(tmp_path / "model").calibration_ == plain.calibration_


def test_times_and_large_numbers_are_labels(plain):
    """Neither depends on what lists make of them, nor on how far floats resolve them."""
    for unit in ("ns", "D"):
        days = np.array(["2024-01-01", "NaT", "2024-01-02"], dtype=f"datetime64[{unit}]")
        groups = plain.calibrate(by=np.resize(days, N)).calibration_.groups
        first, missing, second = groups.labels
        assert (first[:10], missing, second[:10]) == ("2024-01-01", None, "2024-01-02")
        assert groups.codes(days).tolist() == [0, 1, 2]
    plain.calibrate(by=[2**60, 2**60 + 1] * (N // 2))
    assert len(plain.calibration_.groups.labels) == 2


def test_order_needs_a_forest_to_fit_before_anything_is_done(plain, tmp_path):
    plain.calibrate(coverage=0.8)
    plain.save(tmp_path / "model")
    loaded = HDIForestRegressor.load(tmp_path / "model")
    with pytest.raises(ValueError, match="order fits the forest again"):
        loaded.calibrate(method=OutOfBag(order=0))
    assert loaded.calibration_.coverages == (0.8,)


def test_a_shift_in_time_is_told():
    shifted = Y[TRAIN] + np.where(np.arange(N) > 700, 6, 0)
    order = np.char.zfill(np.arange(N).astype(str), 5)
    at_random = np.random.default_rng(1).permutation(N)
    model = HDIForestRegressor(clone(grown()), calibration=False)
    model.fit(X[TRAIN][at_random], shifted[at_random])
    with pytest.warns(
        UserWarning, match=r"of later rows, by forests of the rows before them \(0.* in 4 blocks\)"
    ):
        model.calibrate(method=OutOfBag(order=order[at_random]))
    later = model.calibration_.level(0.9).later
    assert later.coverage < 0.9
    assert min(later.blocks) < 0.6 < max(later.blocks)


def test_texts_are_ordered_as_the_dates_they_are():
    model = HDIForestRegressor(clone(grown()), calibration=False).fit(X[:300], Y[:300])
    days = np.datetime64("2023-10-01") + np.arange(300)
    texts = [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in days.astype(str)]
    expected, found = (
        model.calibrate(coverage=0.8, method=OutOfBag(order=order)).calibration_
        for order in (days, texts)
    )
    assert found == expected
    assert found.level(0.8).later is not None


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            ["01/02/2024", "03/04/2024"],
            "order holds dates that can be read in 2 ways, '01/02/2024'",
        ),
        (
            ["31/05/2024", "soon", "30/05/2024", "29/05/2024"],
            "'31/05/2024', but 'soon'; give numbers",
        ),
        (["week 1", "week 2"], "order must be numbers or dates, but holds 'week 1'"),
    ],
)
def test_texts_that_are_no_dates_are_no_order(plain, cells, message):
    with pytest.raises(ValueError, match=message):
        plain.calibrate(method=OutOfBag(order=cells * (N // len(cells))))


def test_order_and_groups_together(plain):
    plain.calibrate(method=OutOfBag(order=X[TRAIN, 1]), by=CODES[TRAIN])
    assert plain.calibration_.groups is not None
    assert plain.calibration_.level(0.9).later.coverage > 0.8
