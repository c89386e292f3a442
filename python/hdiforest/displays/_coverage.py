"""Realised and nominal coverage: by level, by group of rows, and over the rows as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, one_share, reals, shares
from hdiforest._utils.kinds import ONE_SIDED, TWO_SIDED
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest.displays import _common as common
from hdiforest.displays._common import BLUE, GREY, MIST, VERMILLION, Style, draw, percent, plain
from hdiforest.metrics import _intervals as metrics

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
THIRDS = ["narrow third", "middle third", "wide third"]


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay(common.Display):
    """Realised coverage of intervals against the nominal coverage.

    Parameters
    ----------
    coverages : (k,) array
        Nominal coverages, ascending.
    realised : dict of str to (k,) array
        Realised coverages of each curve, by its name. NaN where the curve has no point.
    n_rows : int
        Number of rows of the measurement.
    band : float
        Probability with which exact coverage lies in the binomial band, for each level by itself.

    Attributes
    ----------
    lines_ : dict of str to matplotlib lines
        The curves, by name.
    band_ : matplotlib artist
        The band of chance.
    ideal_ : matplotlib line
        The line of exact coverage.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from hdiforest import CalibrationDisplay
    >>> y = [1.0, 2.0, 3.0, 4.0]
    >>> half = [[0, 1], [1, 4], [4, 5], [5, 6]]
    >>> most = [[0, 1], [1, 4], [2, 5], [5, 6]]
    >>> display = CalibrationDisplay.from_predictions(y, {0.5: half, 0.8: most})
    >>> display.realised["intervals"].tolist()
    [0.5, 0.75]
    """

    coverages: Array
    realised: Mapping[str, Array]
    n_rows: int
    band: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverages: Sequence[float] | None = None,
        kind: str | Sequence[str] | None = None,
        target: int | None = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and compare their coverage with the nominal coverage.

        Parameters
        ----------
        estimator : fitted estimator
            The model. See `IntervalDisplay.from_estimator`.
        X : (n, n_features) array or table
            Rows to predict.
        y : (n,) or (n, n_outputs) array
            Targets of the rows.
        coverages : sequence of floats, optional
            Nominal coverages. The default is the calibrated coverages of the model, or 0.1, 0.2,
            ..., 0.9, 0.95.
        kind : str or sequence of str, optional
            Kind of intervals of each curve. The default is "hdi", and also "calibrated" if the
            model is.
        target : int, optional
            Number of the target, from 0 on. A model of several targets needs it.
        **options : optional
            Keywords of `from_predictions` and `plot`, such as `ax`.

        Returns
        -------
        CalibrationDisplay
            The picture.
        """
        cls._require_matplotlib()
        one_share("band", options.get("band", 0.95))
        predictor = common.OneTarget(*model_and_rows(estimator, X, "predict_interval"), target)
        coverages = _chosen(coverages, predictor.calibration)
        if kind is None:
            kind = ["hdi"] if predictor.calibration is None else ["hdi", "calibrated"]
        curves = {}
        for each in np.atleast_1d(kind).tolist():
            curves[_NAMES.get(each, each)] = predictor.ask("interval", coverages, kind=each)
        return cls.from_predictions(predictor.targets(y), curves, coverages=coverages, **options)

    @classmethod
    def from_out_of_bag(
        cls,
        estimator: Any,
        *,
        coverages: Sequence[float] | None = None,
        band: float = 0.95,
        target: int | None = None,
        **options: Any,
    ) -> Self:
        """Compare coverages of the training rows: of the HDI, and of the calibration's cross-check.

        Parameters
        ----------
        estimator : fitted estimator
            A model that has ``oob_`` and its training rows. See `IntervalDisplay.from_out_of_bag`,
            also for errors and warnings.
        coverages : sequence of floats, optional
            Nominal coverages. See `from_estimator`.
        band : float, default=0.95
            Probability of the band of chance. See the class.
        target : int, optional
            Number of the target, from 0 on. A model of several targets needs it.
        **options : optional
            Keywords of `plot`.

        Returns
        -------
        CalibrationDisplay
            The picture.
        """
        cls._require_matplotlib()
        one_share("band", band)
        predictor = common.OneTarget(model_in(estimator, "oob_"), None, target)
        calibration = predictor.calibration
        coverages = _chosen(coverages, calibration)
        training = common.out_of_bag_of(predictor, coverages, "hdi")
        points = {"HDI, out of bag": _realised(training.y, training.intervals, coverages)}
        n_rows = len(training.y)
        if calibration is not None:
            checks = {c: calibration.level(c).cross_check for c in coverages if c in calibration}
            curve = {level: check.coverage for level, check in checks.items() if check is not None}
            points["calibrated, cross-check"] = curve
            n_rows = min(n_rows, calibration.n)
        return cls._of_points(points, n_rows, band).plot(**options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        intervals: Any,
        *,
        coverages: Sequence[float] | Array | None = None,
        band: float = 0.95,
        **options: Any,
    ) -> Self:
        """Compare the coverage of intervals that are already predicted with the nominal coverage.

        Parameters
        ----------
        y_true : (n,) array
            Observed targets.
        intervals : dict of float to (n, 2) array, or (n, 2, k) array, or dict of str to these
            Intervals by nominal coverage, or intervals of k `coverages`, as arrays or as tables of
            `predict_interval`. A dict of names gives a curve for each name, such as before and
            after a calibration.
        coverages : sequence of k floats, optional
            Nominal coverages of the levels of arrays, above 0 and below 1.
        band : float, default=0.95
            Probability of the band of chance. See the class.
        **options : optional
            Keywords of `plot`, such as `ax`.

        Returns
        -------
        CalibrationDisplay
            The picture.
        """
        has_names = isinstance(intervals, Mapping) and any(isinstance(k, str) for k in intervals)
        named = intervals if has_names else {"intervals": intervals}
        points = {name: _realised(y_true, curve, coverages) for name, curve in named.items()}
        return cls._of_points(points, len(np.asarray(y_true)), band).plot(**options)

    @classmethod
    def _of_points(
        cls, points: Mapping[str, Mapping[float, float]], n_rows: int, band: float
    ) -> Self:
        """Return the display of curves by name: realised coverages by nominal ones."""
        levels = sorted(set().union(*points.values()))
        realised = {
            name: np.array([curve.get(level, np.nan) for level in levels])
            for name, curve in points.items()
        }
        band = one_share("band", band)
        return cls(coverages=np.array(levels), realised=realised, n_rows=n_rows, band=band)

    def plot(
        self,
        ax: Any = None,
        *,
        line_kwargs: Style = None,
        band_kwargs: Style = None,
    ) -> Self:
        """Draw the curves, the band of chance and the line of exact coverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        line_kwargs : dict, optional
            Keywords for the curves.
        band_kwargs : dict, optional
            Keywords for the band.

        Returns
        -------
        CalibrationDisplay
            The display itself.
        """
        ax = self._draw_on(ax)
        # Drawn from level to level: between them it would jump, because rows are whole.
        low, high = 100 * metrics.chance_range(self.coverages, self.n_rows, self.band)
        places = 100 * self.coverages
        x = places if len(places) > 1 else np.add(places, [-1, 1])  # a band has a width
        label = f"{percent(self.band)} range of chance, {self.n_rows:,} rows"
        usual: dict[str, Any] = {"color": MIST, "linewidth": 0, "label": label}
        self.band_ = draw(ax.fill_between, x, low, high, keywords=band_kwargs, **usual)
        usual = {"color": GREY, "linewidth": 1, "linestyle": "--", "label": "exact"}
        (self.ideal_,) = ax.plot([0, 100], [0, 100], **usual)
        self.lines_ = {}
        curves = zip(self.realised.items(), cycle(common.CURVES), strict=False)
        for (name, realised), (colour, mark) in curves:
            is_finite = np.isfinite(realised)
            points = places[is_finite], 100 * realised[is_finite]
            usual = {"color": colour, "marker": mark, "linewidth": 1.5, "markersize": 6}
            drawn = draw(ax.plot, *points, keywords=line_kwargs, label=name, **usual)
            (self.lines_[name],) = drawn
        limits = 100 * np.nanmin([self.coverages, *self.realised.values()]) - 4, 101
        ax.set(xlim=limits, ylim=limits, aspect="equal")
        names = "nominal coverage (%)", "realised coverage (%)"
        return self._label(*names, loc="upper left", frameon=False)


# What curves of `from_estimator` are called.
_NAMES = {kind: kind.replace("_", "-") for kind in TWO_SIDED}
_NAMES |= {"hdi": "HDI", **{kind: f"{kind} bound" for kind in ONE_SIDED}}


def _chosen(coverages: Sequence[float] | None, calibration: Any) -> Sequence[float]:
    """Return the coverages to draw: by default those of a calibration."""
    if coverages is not None:
        return coverages
    return COVERAGES if calibration is None else calibration.coverages


def _realised(
    y_true: ArrayLike, curve: Any, coverages: Sequence[float] | Array | None
) -> dict[float, float]:
    """Return realised coverages by nominal ones, of one curve."""
    if not isinstance(curve, Mapping):
        ends = reals("intervals", metrics.ends_of(curve))
        ends = ends[..., np.newaxis] if ends.ndim == 2 else ends
        levels = [] if coverages is None else shares("coverages", coverages).tolist()
        if ends.ndim != 3 or ends.shape[2] != len(levels):
            allowed = "a dict of coverages to arrays, or have shape (n, 2, k) with k coverages"
            got = f"shape {ends.shape} and {len(levels)} coverages"
            raise ValueError(f"intervals must be {allowed}, got {got}")
        curve = dict(zip(levels, np.moveaxis(ends, 2, 0), strict=True))
    if not curve:
        raise ValueError("intervals must be of one coverage or more, got none")
    levels = shares("coverages", list(curve)).tolist()
    realised = [float(metrics.coverage_score(y_true, ends)) for ends in curve.values()]
    return dict(zip(levels, realised, strict=True))


@dataclass(kw_only=True, eq=False, repr=False)
class WidthDisplay(common.RowsDisplay):
    """Coverage and width of intervals by group, such as thirds of their width.

    Parameters
    ----------
    groups : list of g str
        Names of the groups.
    counts : (g,) array
        Number of rows of each group.
    realised : (g,) array
        Share of the targets inside their interval.
    mean_width : (g,) array
        Mean width of the intervals, in the unit of y.
    width_range : (2, g) array
        Ends of the range with the middle 80 % of widths.
    coverage : float
        Nominal coverage.
    target_name : str
        Name of the target, with the unit.
    band : float
        Probability with which a group of exactly the nominal coverage lies in its grey range.

    Attributes
    ----------
    points_ : matplotlib artists
        Marks of the groups within chance and beyond it.
    ranges_ : matplotlib artists
        The bars.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from hdiforest import WidthDisplay
    >>> y = [1.0, 2.0, 3.0, 4.0]
    >>> interval = [[0, 1], [0, 1], [2, 5], [3, 9]]
    >>> display = WidthDisplay.from_predictions(y, interval, groups=["a", "a", "b", "b"])
    >>> display.realised.tolist(), display.mean_width.tolist()
    ([0.5, 1.0], [1.0, 4.5])
    """

    groups: list[str]
    counts: NDArray[np.int64]
    realised: Array
    mean_width: Array
    width_range: Array
    coverage: float
    target_name: str
    band: float

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        interval: ArrayLike,
        *,
        coverage: float = 0.9,
        groups: int | ArrayLike = 3,
        band: float = 0.95,
        target_name: str | None = None,
        **options: Any,
    ) -> Self:
        """Compare groups of intervals that are already predicted.

        Parameters
        ----------
        y_true : (n,) array
            Observed targets.
        interval : (n, 2) array or table
            Lower and upper ends, or a table of `predict_interval`.
        coverage : float, default=0.9
            Nominal coverage of the intervals, above 0 and below 1.
        groups : int or (n,) array, default=3
            A number of groups by width, equal in size up to ties, or the group of each row. Groups
            are drawn in ascending order, and categories of pandas in their own order.
        band : float, default=0.95
            Probability of the range of chance. See the class.
        target_name : str, optional
            Name of the target, with the unit.
        **options : optional
            Keywords of `plot`, such as `ax`.

        Returns
        -------
        WidthDisplay
            The picture.
        """
        band, coverage = one_share("band", band), one_share("coverage", coverage)
        y, lower, upper = metrics.check_intervals(y_true, interval)
        if lower.ndim != 1:
            raise ValueError(f"interval must be of one level, (n, 2), got {lower.shape[1]} levels")
        widths = upper - lower
        names, of_row = _grouped(groups, widths)
        by_group = metrics.coverage_by_group(y, np.stack([lower, upper], axis=1), of_row, coverage)
        members = [widths[of_row == g] for g in by_group.groups]
        middles = [np.quantile(each, [0.1, 0.9], method="inverted_cdf") for each in members]
        return cls(
            groups=names,
            counts=by_group.counts,
            realised=by_group.coverage,
            mean_width=by_group.mean_width,
            width_range=np.stack(middles, axis=1),
            coverage=coverage,
            target_name=common.target_label(y_true, target_name),
            band=band,
        ).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        what: Literal["coverage", "width"] = "coverage",
        point_kwargs: Style = None,
        range_kwargs: Style = None,
    ) -> Self:
        """Draw the coverage or the width of each group.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        what : {"coverage", "width"}, default="coverage"
            The measure to draw. "coverage" is the realised coverage, with the range by chance if
            the nominal coverage is exact. "width" is the mean width, with the middle 80 % of
            widths.
        point_kwargs : dict, optional
            Keywords for the marks.
        range_kwargs : dict, optional
            Keywords for the bars behind the marks.

        Returns
        -------
        WidthDisplay
            The display itself.
        """
        check_choice("what", what, ("coverage", "width"))
        ax = self._draw_on(ax)
        n = len(self.groups)
        place, outside = np.arange(n), np.zeros(n, dtype=bool)
        if what == "coverage":
            chance = metrics.chance_range(self.coverage, self.counts, self.band)
            outside = (self.realised < chance[0]) | (self.realised > chance[1])
            values, ranges = 100 * self.realised, 100 * chance
            name, axis, colour = "realised", "realised coverage (%)", MIST
            label = f"{percent(self.band)} range of chance"
        else:
            values, ranges = self.mean_width, self.width_range
            axis = f"width of the {percent(self.coverage)} interval, {self.target_name}"
            name, colour, label = "mean width", common.PALE_BLUE, "middle 80 % of widths"
        usual: dict[str, Any] = {"color": colour, "linewidth": 9, "label": label}
        self.ranges_ = draw(ax.hlines, place, *ranges, keywords=range_kwargs, **usual)
        if what == "coverage":
            usual = {"color": GREY, "label": f"nominal, {percent(self.coverage)}"}
            ax.vlines(100 * self.coverage, -0.5, n - 0.5, linewidth=1, linestyle="--", **usual)
        else:
            common.plain_numbers(ax.xaxis)
        self.points_: list[Any] = []
        within = {"color": BLUE, "marker": "o", "label": name}
        beyond = {"color": VERMILLION, "marker": "^", "label": f"{name}, beyond chance"}
        for rows, look in ((~outside, within), (outside, beyond)):
            if rows.any():
                usual = {"s": 48, "zorder": 3, "linewidths": 0, **look}
                points = values[rows], place[rows]
                self.points_.append(draw(ax.scatter, *points, keywords=point_kwargs, **usual))
        groups = zip(self.groups, self.counts.tolist(), strict=True)
        ax.set_yticks(place, [f"{name}\n{k:,} row{'s' * (k != 1)}" for name, k in groups])
        ax.set_ylim(n - 0.5, -0.5 - 0.18 * n)  # room for the legend
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self._label(axis, "", loc="upper center", ncols=2, edgecolor="none", framealpha=1)


def _grouped(groups: Any, widths: Array) -> tuple[list[str], NDArray[np.intp]]:
    """Return names of groups that have rows, and the group of each row."""
    if np.ndim(groups) > 0:
        labels, of_row = metrics.group_rows(groups, len(widths))
        return [plain(label) for label in labels], of_row
    strata = metrics.strata_by_width(widths, groups, "groups")
    present, of_row = np.unique(strata, return_inverse=True)
    n = int(groups)
    names = [f"1 of {n}, narrow", *(f"{i} of {n}" for i in range(2, n)), f"{n} of {n}, wide"]
    if n <= 3:
        names = [["all"], ["narrow half", "wide half"], THIRDS][n - 1]
    return [["width 0", *names][stratum] for stratum in present], of_row


@dataclass(kw_only=True, eq=False, repr=False)
class MonitorDisplay(common.Display):
    """Coverage of the latest rows, over the rows in their order.

    Parameters
    ----------
    covered : (n,) bool array
        Whether the interval of each row held its target.
    nominal : float
        Nominal coverage.
    window : int
        Number of rows behind each point.
    alarms : dict of str to int
        Number of the row of each alarm, by its name.

    Attributes
    ----------
    line_ : matplotlib line
        The coverage.
    band_ : matplotlib artist
        The band of chance, in 95 of 100 windows.
    alarms_ : matplotlib artists
        The lines of alarms.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.
    """

    covered: NDArray[np.bool_]
    nominal: float
    window: int
    alarms: Mapping[str, int]

    def plot(self, ax: Any = None) -> Self:
        """Draw the coverage, the band of chance and the alarms.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.

        Returns
        -------
        MonitorDisplay
            The display itself.
        """
        ax = self._draw_on(ax)
        rows = np.arange(1, len(self.covered) + 1)
        hits = np.concatenate([[0], np.cumsum(self.covered)])
        n = np.minimum(rows, self.window)
        low, high = metrics.chance_range(self.nominal, n, 0.95)
        self.band_ = ax.fill_between(rows, low, high, color=MIST, linewidth=0, label="chance")
        share = (hits[rows] - hits[rows - n]) / n
        (self.line_,) = ax.plot(rows, share, color=BLUE, label=f"of the last {self.window} rows")
        ax.axhline(self.nominal, color=GREY, linewidth=1)
        self.alarms_ = [
            ax.axvline(row, color=VERMILLION, linestyle=style, label=f"alarm: {plain(alarm)}")
            for (alarm, row), style in zip(self.alarms.items(), ("--", ":"), strict=False)
        ]
        return self._label("rows", f"coverage of {percent(self.nominal)} intervals", frameon=False)
