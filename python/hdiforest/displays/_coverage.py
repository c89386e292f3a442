"""CalibrationDisplay and WidthDisplay: realised and nominal coverage, by level and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from hdiforest._utils.checks import check_choice, one_share, reals, shares
from hdiforest._utils.meta_estimators import model_in
from hdiforest._utils.typing import Array
from hdiforest._utils.warnings import hints_that_name
from hdiforest.displays._common import (
    BLUE,
    CURVES,
    GREY,
    MIST,
    PALE_BLUE,
    VERMILLION,
    Display,
    Style,
    axes_for,
    intervals_of,
    out_of_bag_of,
    percent,
    plain,
    plain_numbers,
    require_matplotlib,
    styled,
    target_label,
    target_of,
)
from hdiforest.metrics._intervals import check_intervals, coverage_score, strata_by_width

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
WHAT = ("coverage", "width")


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay(Display):
    """Realised coverage of intervals against the nominal one.

    Make it as `IntervalDisplay`.

    Parameters
    ----------
    coverages : (k,) array
        Nominal coverages, ascending.
    realised : dict of str to (k,) array
        The realised coverage of each curve; NaN where a curve has no point.
    n_rows : int
        Number of rows that it was measured on.
    band : float
        Probability with which intervals of exactly the nominal coverage lie in the band, each level
        by itself: the central range of the binomial distribution.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
    band_ : matplotlib collection
    ideal_ : matplotlib Line2D
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    WidthDisplay : Coverage by group, at one level.

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
        band: float = 0.95,
        target: int | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and compare their coverage with the nominal one.

        Parameters
        ----------
        estimator, X, y : fitted estimator and rows
            As in `IntervalDisplay.from_estimator`; rows that took no part in the fit or the
            calibration.
        coverages : sequence of floats, optional
            By default those that the model was calibrated at, or 0.1, 0.2, ..., 0.9, 0.95.
        kind : str or sequence of str, optional
            Kinds of intervals, each a curve; see `HDIForestRegressor.predict_interval`. By default
            "hdi", and "calibrated" too after a calibration.
        band : float, default=0.95
            See the class.
        target, ax : optional
            As in `IntervalDisplay.from_estimator`.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay
        """
        require_matplotlib(cls)
        one_share("band", band)
        calibration, coverages = _asked(estimator, "predict_interval", coverages)
        if kind is None:
            kind = ("hdi",) if calibration is None else ("hdi", "calibrated")
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        with hints_that_name(f"{cls.__name__}.from_out_of_bag(model)"):
            curves = {_NAMES.get(each, each): intervals_of(estimator, X, coverages, each, target)
                      for each in kinds}  # fmt: skip
        options |= {"coverages": coverages, "band": band, "ax": ax}
        return cls.from_predictions(target_of(y, target), curves, **options)

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
        """Compare coverages of the training rows, before and after the calibration.

        Parameters
        ----------
        estimator : fitted estimator
            As in `IntervalDisplay.from_out_of_bag`, which says what is raised and warned of, too.
        coverages, band, target : optional
            As in `from_estimator`.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay

        Notes
        -----
        The curve of the HDI is that of ``oob_interval(kind="hdi")``. That of the calibrated
        intervals is the cross-check of `calibration_`: the conformal quantiles are those with which
        the intervals of the calibration rows themselves have the nominal coverage.
        """
        require_matplotlib(cls)
        one_share("band", band)
        calibration, coverages = _asked(estimator, "oob_interval", coverages)
        training = out_of_bag_of(estimator, coverages, "hdi", target)
        n = len(training.y)
        realised_by_level = _realised(training.y, training.intervals, coverages)
        levels = sorted(realised_by_level)
        realised = {"HDI, out of bag": np.array([realised_by_level[level] for level in levels])}
        if calibration is not None:
            checks = [
                calibration.level(c).cross_check if calibration.has(c) else None for c in levels
            ]
            realised["calibrated, cross-check"] = np.array(
                [np.nan if check is None else check.coverage for check in checks]
            )
            n = min(n, calibration.n)
        display = cls(coverages=np.array(levels), realised=realised, n_rows=n, band=band)
        return display.plot(**options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        intervals: Any,
        *,
        coverages: Sequence[float] | Array | None = None,
        band: float = 0.95,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compare the coverage of intervals that are already predicted with the nominal one.

        Parameters
        ----------
        y_true : (n,) array
            Observed targets.
        intervals : dict of float to (n, 2) array, or (n, 2, k) array, or dict of str to these
            Intervals by nominal coverage, or of k `coverages`; a dict of names gives a curve for
            each name, such as before and after a calibration.
        coverages : sequence of k floats, optional
            What the levels of arrays were meant to hold, above 0 and below 1.
        band, ax : optional
            As in `from_estimator`.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay
        """
        require_matplotlib(cls)
        one_share("band", band)
        has_names = isinstance(intervals, Mapping) and any(isinstance(k, str) for k in intervals)
        named = intervals if has_names else {"intervals": intervals}
        points = {
            name: _realised(y_true, curve, coverages) for name, curve in named.items()
        }  # {name: {coverage: realised}}
        levels = sorted({level for of_curve in points.values() for level in of_curve})
        display = cls(
            coverages=np.array(levels),
            realised={
                name: np.array([of_curve.get(level, np.nan) for level in levels])
                for name, of_curve in points.items()
            },
            n_rows=len(np.asarray(y_true)),
            band=band,
        )
        return display.plot(ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        difference: bool = False,
        line_kwargs: Style = None,
        band_kwargs: Style = None,
    ) -> Self:
        """Draw the curves, the band of chance and the line of exact coverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        difference : bool, default=False
            Whether to draw realised less nominal coverage, in percentage points, where small
            differences are seen better.
        line_kwargs, band_kwargs : dict, optional
            Keywords for the curves and for the band.

        Returns
        -------
        CalibrationDisplay
            The display itself.
        """
        ax = axes_for(self, ax)
        # Drawn from level to level: between them it would jump, because rows are whole.
        lower, upper = chance_range(self.coverages, self.n_rows, self.band)
        base = self.coverages if difference else 0.0 * self.coverages
        places, spread = self.coverages, (lower - base, upper - base)
        if len(places) == 1:
            places = places[0] + np.array([-0.01, 0.01])
            spread = (np.repeat(lower - base, 2), np.repeat(upper - base, 2))
        usual = {
            "color": MIST,
            "linewidth": 0,
            "label": f"{percent(self.band)} range of chance, {self.n_rows:,} rows",
        }
        look = styled(usual, band_kwargs, "collections.PolyCollection")
        self.band_ = ax.fill_between(100 * places, 100 * spread[0], 100 * spread[1], **look)
        ideal = np.array([0.0, 100.0])
        (self.ideal_,) = ax.plot(
            ideal, 0 * ideal if difference else ideal, color=GREY, linewidth=1, linestyle="--",
            label="exact",
        )  # fmt: skip
        self.lines_ = {}
        for i, (name, realised) in enumerate(self.realised.items()):
            colour, mark = CURVES[i % len(CURVES)]
            usual = {"color": colour, "marker": mark, "linewidth": 1.5, "markersize": 6}
            look = styled({**usual, "label": name}, line_kwargs, "lines.Line2D")
            known = np.isfinite(realised)
            nominal = self.coverages[known]
            drawn = realised[known] - nominal if difference else realised[known]
            (self.lines_[name],) = ax.plot(100 * nominal, 100 * drawn, **look)
        ax.set_xlabel("nominal coverage (%)")
        ax.set_ylabel(
            "realised less nominal coverage (points)" if difference else "realised coverage (%)"
        )
        shares = np.concatenate([self.coverages, *self.realised.values()])
        low = 100 * float(np.nanmin(shares)) - 4
        if difference:
            ax.set_xlim(low, 101)
            bottom, top = ax.get_ylim()
            ax.set_ylim(bottom, top + 0.4 * (top - bottom))  # room for the legend
        else:
            ax.set(xlim=(low, 101), ylim=(low, 101), aspect="equal")
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        return self._drawn_on(ax)


# What curves of `from_estimator` are called.
_NAMES = {
    "hdi": "HDI",
    "calibrated": "calibrated",
    "equal_tailed": "equal-tailed",
    "smoothed_hdi": "smoothed HDI",
    "lower": "lower bound",
    "upper": "upper bound",
}


def _asked(
    estimator: Any, method: str, coverages: Sequence[float] | None
) -> tuple[Any, Sequence[float]]:
    """Return the calibration of the model that has a method, or None, and the coverages to draw."""
    calibration = getattr(model_in(estimator, method), "calibration_", None)
    if coverages is None:
        coverages = COVERAGES if calibration is None else calibration.coverages
    return calibration, coverages


def _realised(
    y_true: ArrayLike, curve: Any, coverages: Sequence[float] | Array | None
) -> dict[float, float]:
    """Return realised coverages by nominal ones, of one curve."""
    if isinstance(curve, Mapping):
        levels = shares("coverages", list(curve)).tolist()
        by_level = dict(zip(levels, curve.values(), strict=True))
    else:
        ends = reals("intervals", curve)
        levels = [] if coverages is None else shares("coverages", coverages).tolist()
        if ends.ndim != 3 or ends.shape[2] != len(levels):
            raise ValueError(
                f"intervals must be a dict of coverages to arrays, or have shape (n, 2, k) with k "
                f"coverages, got shape {ends.shape} and {len(levels)} coverages"
            )
        by_level = {level: ends[..., j] for j, level in enumerate(levels)}
    if not by_level:
        raise ValueError("intervals must be of one coverage or more, got none")
    return {level: float(coverage_score(y_true, ends)) for level, ends in by_level.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class WidthDisplay(Display):
    """Coverage and width of intervals by group, such as thirds of their width.

    Intervals that hold the wanted share on average may hold too little in some group. Make it as
    `IntervalDisplay`.

    Parameters
    ----------
    groups : list of g str
        Names of the groups.
    counts : (g,) int array
        Rows of each group.
    realised : (g,) array
        Share of targets inside their interval.
    mean_width : (g,) array
        Mean width of the intervals.
    width_range : (2, g) array
        Between which the middle 80 % of widths lie.
    coverage : float
        Nominal coverage.
    target_name : str
        Name of the target, with the unit.
    band : float
        Probability with which a group of exactly the nominal coverage lies in its grey range.

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
        A mark for each group: of those within the range of chance, and of those beyond it.
    ranges_ : matplotlib artist
        A bar for each group: what chance gives, or the middle 80 % of widths.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    CalibrationDisplay : Coverage of all rows, at several levels.

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
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float = 0.9,
        groups: int | ArrayLike = 3,
        kind: str | None = None,
        target: int | None = None,
        target_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and compare groups of them.

        Parameters
        ----------
        estimator, X, y : fitted estimator and rows
            As in `IntervalDisplay.from_estimator`.
        coverage : float, default=0.9
            What the intervals are meant to hold, above 0 and below 1.
        groups : int or (n,) array, default=3
            A number of groups by width, equal in size up to ties; or the group of each row. Groups
            are drawn in ascending order, and categories of pandas in their own.
        kind, target, target_name, ax : optional
            As in `IntervalDisplay.from_estimator`.
        **options
            As in `from_predictions`.

        Returns
        -------
        WidthDisplay
        """
        interval = cls._predict_intervals(estimator, X, [coverage], kind, target)[..., 0]
        options |= {"coverage": coverage, "groups": groups, "ax": ax}
        options["target_name"] = target_label(y, target_name)
        return cls.from_predictions(target_of(y, target), interval, **options)

    @classmethod
    def from_out_of_bag(
        cls,
        estimator: Any,
        *,
        coverage: float = 0.9,
        groups: int | ArrayLike = 3,
        kind: str | None = None,
        target: int | None = None,
        **options: Any,
    ) -> Self:
        """Compare groups of the training rows, each predicted by the trees that did not draw it.

        Parameters
        ----------
        estimator : fitted estimator
            As in `IntervalDisplay.from_out_of_bag`, which says what is raised and warned of, too.
        coverage, groups, kind, target : optional
            As in `from_estimator`.
        **options
            As in `from_predictions`.

        Returns
        -------
        WidthDisplay

        Notes
        -----
        The conformal quantiles of calibrated intervals come from these rows, which makes the
        coverage of all groups together the nominal one; how it differs between groups is what the
        picture shows.
        """
        require_matplotlib(cls)
        training = out_of_bag_of(estimator, [coverage], kind, target)
        options |= {"coverage": coverage, "groups": training.of_rows("groups", groups)}
        return cls.from_predictions(training.y, training.intervals[..., 0], **options)

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
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compare groups of intervals that are already predicted.

        Parameters
        ----------
        y_true : (n,) array
            Observed targets.
        interval : (n, 2) array
            Lower and upper ends.
        coverage, groups : optional
            As in `from_estimator`.
        band : float, default=0.95
            See the class.
        target_name, ax : optional
            As in `from_estimator`.
        **options
            See `plot`.

        Returns
        -------
        WidthDisplay
        """
        require_matplotlib(cls)
        band, coverage = one_share("band", band), one_share("coverage", coverage)
        y, lower, upper = check_intervals(y_true, interval)
        if lower.ndim != 1:
            raise ValueError(f"interval must be of one level, (n, 2), got {lower.shape[1]} levels")
        widths, inside = upper - lower, (lower <= y) & (y <= upper)
        names, of_row = _grouped(groups, widths)
        members = [np.flatnonzero(of_row == g) for g in range(len(names))]
        display = cls(
            groups=names,
            counts=np.array([len(rows) for rows in members]),
            realised=np.array([inside[rows].mean() for rows in members]),
            mean_width=np.array([widths[rows].mean() for rows in members]),
            width_range=np.stack(
                [np.quantile(widths[rows], [0.1, 0.9], method="inverted_cdf") for rows in members],
                axis=1,
            ),
            coverage=coverage,
            target_name=target_label(y_true, target_name),
            band=band,
        )
        return display.plot(ax, **options)

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
            By default those of a new figure.
        what : {"coverage", "width"}, default="coverage"
            Realised coverage, with the range that chance gives where the nominal coverage is exact;
            or mean width, with the middle 80 % of widths.
        point_kwargs, range_kwargs : dict, optional
            Keywords for the marks and for the bars behind them.

        Returns
        -------
        WidthDisplay
            The display itself.
        """
        check_choice("what", what, WHAT)
        ax = axes_for(self, ax)
        place = np.arange(len(self.groups))
        if what == "coverage":
            low, high = chance_range(self.coverage, self.counts, self.band)
            outside = (self.realised < low) | (self.realised > high)
            values, low, high = 100 * self.realised, 100 * low, 100 * high
            bar = {"color": MIST, "label": f"{percent(self.band)} range of chance"}
            ax.vlines(100 * self.coverage, -0.5, len(place) - 0.5, color=GREY, linewidth=1,
                      linestyle="--", label=f"nominal, {percent(self.coverage)}")  # fmt: skip
            ax.set_xlabel("realised coverage (%)")
        else:
            values, (low, high) = self.mean_width, self.width_range
            bar = {"color": PALE_BLUE, "label": "middle 80 % of widths"}
            outside = np.zeros(len(place), dtype=bool)
            ax.set_xlabel(f"width of the {percent(self.coverage)} interval, {self.target_name}")
            plain_numbers(ax.xaxis)
        look = styled({"linewidth": 9, **bar}, range_kwargs, "collections.LineCollection")
        self.ranges_ = ax.hlines(place, low, high, **look)
        name = "realised" if what == "coverage" else "mean width"
        self.points_: list[Any] = []
        looks = [(~outside, BLUE, "o", name), (outside, VERMILLION, "^", f"{name}, beyond chance")]
        for rows, colour, mark, label in looks:
            if rows.any():
                usual = {"color": colour, "marker": mark, "s": 48, "zorder": 3, "linewidths": 0}
                usual["label"] = label
                look = styled(usual, point_kwargs, "collections.PathCollection")
                self.points_.append(ax.scatter(values[rows], place[rows], **look))
        ax.set_yticks(place, [
            f"{name}\n{count:,} row{'s' * (count != 1)}"
            for name, count in zip(self.groups, self.counts.tolist(), strict=True)
        ])  # fmt: skip
        n = len(place)
        ax.set_ylim(n - 0.5, -0.5 - 0.18 * n)  # room for the legend
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.legend(loc="upper center", ncols=2, edgecolor="none", framealpha=1, fontsize="small")
        return self._drawn_on(ax)


def _grouped(groups: Any, widths: Array) -> tuple[list[str], NDArray[np.intp]]:
    """Return names of groups that have rows, and the group of each row."""
    if np.ndim(groups) > 0:
        of_rows = np.asarray(groups)
        if of_rows.shape != widths.shape:
            raise ValueError(f"groups must have shape {widths.shape}, got {of_rows.shape}")
        labels, of_row = np.unique(of_rows.astype(str) if of_rows.dtype == object else of_rows,
                                   return_inverse=True)  # fmt: skip
        categories = getattr(getattr(groups, "cat", groups), "categories", None)
        if categories is not None:
            ranks = {str(category): rank for rank, category in enumerate(categories)}
            order = sorted(range(len(labels)), key=lambda i: ranks.get(str(labels[i]), len(ranks)))
            labels, of_row = labels[order], np.argsort(order)[of_row]
        return [plain(label) for label in labels], of_row
    strata = strata_by_width(widths, groups, "groups")
    names = ["width 0", *_width_names(int(groups))]
    present, of_row = np.unique(strata, return_inverse=True)
    return [names[stratum] for stratum in present], of_row


def _width_names(n: int) -> list[str]:
    if n == 1:
        return ["all"]
    if n <= 3:
        part = {2: "half", 3: "third"}[n]
        return [
            f"{size} {part}" for size in ("narrow", "middle", "wide") if n == 3 or size != "middle"
        ]
    return [
        f"{i} of {n}{', narrow' if i == 1 else ', wide' if i == n else ''}" for i in range(1, n + 1)
    ]


def chance_range(coverage: ArrayLike, n_rows: ArrayLike, confidence: float) -> tuple[Array, Array]:
    """Return the shares between which that of `n_rows` covered rows lies.

    Parameters
    ----------
    coverage : array
        Probability with which each row is covered, independently of the others.
    n_rows : array
        Number of rows, above 0.
    confidence : float
        Probability of the range.

    Returns
    -------
    two arrays
        Central range of the binomial distribution, as shares.
    """
    tail = (1 - confidence) / 2
    n: Any = np.asarray(n_rows)
    lower, upper = (binom.ppf(p, n, coverage) / n for p in (tail, 1 - tail))
    return np.asarray(lower), np.asarray(upper)
