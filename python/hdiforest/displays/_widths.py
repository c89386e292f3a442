"""WidthDisplay: coverage and width of intervals by group of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, one_share
from hdiforest.displays._common import (
    BLUE,
    GREY,
    MIST,
    PALE_BLUE,
    VERMILLION,
    Display,
    Style,
    axes_for,
    chance_range,
    out_of_bag_of,
    percent,
    plain,
    plain_numbers,
    require_matplotlib,
    styled,
    target_label,
    target_of,
)
from hdiforest.metrics._intervals import check_intervals, strata_by_width

WHAT = ("coverage", "width")


@dataclass(kw_only=True, eq=False, repr=False)
class WidthDisplay(Display):
    """Coverage and width of intervals by group, such as thirds of their width.

    Intervals that hold the wanted share on average may hold too little in some group. Make it by
    `from_estimator`, `from_out_of_bag` or `from_predictions`; the parameters are stored as
    attributes. Without matplotlib all of these raise ImportError.

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
        kind: str | None = None,
        groups: int | ArrayLike = 3,
        output: int | None = None,
        target_name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and compare groups of them.

        Parameters
        ----------
        estimator : fitted estimator
            See `IntervalDisplay.from_estimator`.
        X : (n, n_features) array or table
            Rows to draw.
        y : (n,) or (n, n_outputs) array
            Their targets.
        coverage : float, default=0.9
            What the intervals are meant to hold.
        kind : str, optional
            See `HDIForestRegressor.predict_interval`.
        groups : int or (n,) array, default=3
            A number of groups by width, equal in size up to ties; or the group of each row. Groups
            are drawn in ascending order, and categories of pandas in their own.
        output : int, optional
            Which target, from 0 on; needed if the model has several.
        target_name : str, optional
            Name of the target in the label of widths, with the unit.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **options
            As in `from_predictions`.

        Returns
        -------
        WidthDisplay

        Raises
        ------
        ValueError
            If an argument is out of range, or the model has several targets and `output` is None.
        """
        interval = cls._predict_intervals(estimator, X, [coverage], kind, output)[..., 0]
        return cls.from_predictions(
            target_of(y, output),
            interval,
            coverage=coverage,
            groups=groups,
            target_name=target_label(y, target_name),
            ax=ax,
            **options,
        )

    @classmethod
    def from_out_of_bag(
        cls,
        estimator: Any,
        *,
        coverage: float = 0.9,
        kind: str | None = None,
        groups: int | ArrayLike = 3,
        output: int | None = None,
        **options: Any,
    ) -> Self:
        """Compare groups of the training rows, each predicted by the trees that did not draw it.

        Parameters
        ----------
        estimator : fitted estimator
            See `IntervalDisplay.from_out_of_bag`.
        coverage : float, default=0.9
            What the intervals are meant to hold.
        kind : str, optional
            See `HDIForestRegressor.oob_interval`.
        groups, output : optional
            As in `from_estimator`.
        **options
            As in `from_predictions`.

        Returns
        -------
        WidthDisplay

        Raises
        ------
        ValueError
            As `HDIForestRegressor.oob_interval` and `from_estimator`.

        Warns
        -----
        UserWarning
            If rows are left out, because every tree has seen them.

        Notes
        -----
        The conformal quantiles of calibrated intervals come from these rows, which makes the
        coverage of all groups together the nominal one; how it differs between groups is what the
        picture shows.
        """
        require_matplotlib(cls)
        training = out_of_bag_of(estimator, [coverage], kind, output)
        return cls.from_predictions(
            training.y,
            training.intervals[..., 0],
            coverage=coverage,
            groups=training.of_rows("groups", groups),
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        interval: ArrayLike,
        *,
        coverage: float = 0.9,
        groups: int | ArrayLike = 3,
        target_name: str | None = None,
        band: float = 0.95,
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
        coverage : float, default=0.9
            What the intervals were meant to hold, above 0 and below 1.
        groups, target_name : optional
            As in `from_estimator`.
        band : float, default=0.95
            See the class.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **options
            See `plot`.

        Returns
        -------
        WidthDisplay

        Raises
        ------
        ValueError
            If an argument is out of range, shapes differ, or a value is NaN.
        """
        require_matplotlib(cls)
        one_share("band", band)
        coverage = one_share("coverage", coverage)
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

        Raises
        ------
        ValueError
            If `what` is not known.
        """
        check_choice("what", what, WHAT)
        ax = axes_for(self, ax)
        place = np.arange(len(self.groups))
        if what == "coverage":
            low, high = chance_range(self.coverage, self.counts, self.band)
            outside = (self.realised < low) | (self.realised > high)
            self._draw(ax, 100 * self.realised, 100 * low, 100 * high, MIST, range_kwargs,
                       f"{percent(self.band)} range of chance")  # fmt: skip
            ax.vlines(100 * self.coverage, -0.5, len(place) - 0.5, color=GREY, linewidth=1,
                      linestyle="--", label=f"nominal, {percent(self.coverage)}")  # fmt: skip
            ax.set_xlabel("realised coverage (%)")
            values = 100 * self.realised
        else:
            low, high = self.width_range
            self._draw(ax, self.mean_width, low, high, PALE_BLUE, range_kwargs,
                       "middle 80 % of widths")  # fmt: skip
            outside = np.zeros(len(place), dtype=bool)
            ax.set_xlabel(f"width of the {percent(self.coverage)} interval, {self.target_name}")
            plain_numbers(ax.xaxis)
            values = self.mean_width
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

    def _draw(
        self,
        ax: Any,
        values: Array,
        low: Array,
        high: Array,
        colour: str,
        keywords: Style,
        label: str,
    ) -> None:
        usual = {"color": colour, "linewidth": 9, "label": label}
        look = styled(usual, keywords, "collections.LineCollection")
        self.ranges_ = ax.hlines(np.arange(len(values)), low, high, **look)


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
