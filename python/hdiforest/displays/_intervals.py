"""IntervalDisplay: targets and their intervals, by prediction, by target or against a feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore.regions import Regions
from hdiforest._utils import Array
from hdiforest._utils.checks import check_choice, check_one_for_each, check_targets, shares
from hdiforest._utils.optional import need
from hdiforest.displays import _common as common
from hdiforest.displays._common import BLUE, INK, VERMILLION, Style, draw, percent
from hdiforest.metrics._intervals import check_intervals

Order = Literal["prediction", "target", "width"]


@dataclass(kw_only=True, eq=False, repr=False)
class IntervalDisplay(common.RowsDisplay):
    """Targets and their prediction intervals.

    Parameters
    ----------
    y_true : (n,) array
        Targets of the rows to draw.
    prediction : (n,) array or None
        Means of the rows to draw.
    intervals : (n, 2, k) array
        Lower and upper ends of k levels, the widest last.
    coverages : (k,) array or None
        Nominal coverages, ascending.
    realised : (k,) array
        Realised coverages on all rows, drawn or not.
    n_rows : int
        Number of all rows.
    position : (n,) array
        Place of each row on the axis: a feature or a rank.
    position_name : str
        Label of the axis of the places, with the unit.
    target_name : str
        Label of the axis of the targets, with the unit.
    flag : (n,) bool array, optional
        Rows with hollow targets, such as rows that `diagnose` flags.
    regions : Regions, optional
        Regions within the intervals. Their pieces are drawn.

    Attributes
    ----------
    intervals_ : list of k matplotlib collections
        The intervals. Bars of one level are two collections: rows with an interval that holds the
        target, and all other rows.
    inside_ : matplotlib artist
        Targets inside the widest interval.
    outside_ : matplotlib artist
        Targets outside the widest interval.
    prediction_ : matplotlib line or None
        The means.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from hdiforest import IntervalDisplay
    >>> y, intervals = [1.0, 2.0, 3.0, 9.0], [[0, 2], [1, 4], [2, 5], [3, 6]]
    >>> display = IntervalDisplay.from_predictions(y, intervals, coverage=0.9)
    >>> display.realised.tolist()
    [0.75]
    """

    y_true: Array
    prediction: Array | None
    intervals: Array
    coverages: Array | None
    realised: Array
    n_rows: int
    position: NDArray[Any]
    position_name: str
    target_name: str
    flag: NDArray[np.bool_] | None = None
    regions: Regions | None = None

    _shows_predictions = True

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        intervals: ArrayLike | Regions,
        *,
        coverage: float | ArrayLike | None = None,
        prediction: ArrayLike | None = None,
        feature: ArrayLike | None = None,
        flag: ArrayLike | None = None,
        sort_by: Order | None = None,
        subsample: int | None = 300,
        random_state: int | np.random.RandomState | None = None,
        target_name: str | None = None,
        feature_name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw intervals that are already predicted. ValueError if shapes differ or one is NaN.

        Parameters
        ----------
        y_true : (n,) array
            Observed targets.
        intervals : (n, 2) or (n, 2, k) array, table, or Regions
            Lower and upper ends, a table of `predict_interval`, or `hdicore.regions.Regions`.
            Infinite ends are drawn a little beyond all others.
        coverage : float or list of k floats, optional
            Nominal coverages of the levels, for the legend.
        prediction : (n,) array, optional
            Means, drawn as a line.
        feature : (n,) array, optional
            Numbers or dates to draw the rows against.
        flag : (n,) bool array, optional
            Rows to draw hollow, such as ``diagnose(model, X)["flag"]``.
        sort_by : {"prediction", "target", "width"}, optional
            The order of the rows without `feature`. The default is "prediction", or "target"
            without a `prediction`.
        subsample : int or None, default=300
            Number of rows to draw at random, or None for all.
        random_state : int, RandomState or None, default=None
            Seed of the choice of rows. None means 0, so that a picture repeats.
        target_name : str, optional
            Label of the axis of the targets, with the unit. Dollar signs enclose mathematics.
        feature_name : str, optional
            Label of the axis of the feature, with the unit. Dollar signs enclose mathematics.
        **options : optional
            Keywords of `plot`, such as `ax`.

        Returns
        -------
        IntervalDisplay
            The picture.
        """
        regions = intervals if isinstance(intervals, Regions) else None
        hull: Any = intervals if regions is None else regions.hull
        y, lower, upper = check_intervals(y_true, hull)
        y, n = y.reshape(-1), len(y)
        ends = np.stack([lower, upper], axis=1).reshape(n, 2, -1)
        k = ends.shape[2]
        levels = None
        if coverage is not None:
            levels = np.atleast_1d(shares("coverage", coverage, one=True))
            if levels.shape != (k,):
                wanted = f"{k} number{'s' * (k > 1)} above 0 and at most 1, one per level"
                raise ValueError(f"coverage must be {wanted} of intervals, got {coverage!r}")
            ends, levels = ends[..., np.argsort(levels)], np.sort(levels)
        means = None if prediction is None else check_targets("prediction", prediction)
        if means is not None:
            check_one_for_each("prediction", means.shape, n)
        flags = None if flag is None else np.asarray(flag)
        if flags is not None and (flags.dtype != np.bool_ or flags.shape != (n,)):
            raise ValueError(f"flag must be {n} booleans, got {flags.dtype} of {flags.shape}")
        order = ("target" if means is None else "prediction") if sort_by is None else sort_by
        check_choice("sort_by", order, get_args(Order))
        by_rank = feature is None
        keys = {"prediction": means, "target": y, "width": ends[:, 1, -1] - ends[:, 0, -1]}
        if by_rank and keys[order] is None:
            raise ValueError("sort_by must not be 'prediction' without prediction")
        key = np.asarray(keys[order] if by_rank else feature)
        check_one_for_each("feature", key.shape, n)
        if key.dtype.kind not in "iufbmM":
            raise ValueError(f"feature must hold numbers or dates, got values of type {key.dtype}")
        rows = common.drawn_rows(n, subsample, random_state)
        rows = rows[np.argsort(key[rows], kind="stable")]
        return cls(
            y_true=y[rows],
            prediction=None if means is None else means[rows],
            intervals=ends[rows],
            coverages=levels,
            realised=_holding(y, ends, regions).mean(axis=0),
            n_rows=n,
            position=np.arange(len(rows)) if by_rank else key[rows],
            position_name=f"rows, sorted by {order}" if by_rank else feature_name or "feature",
            target_name=common.target_label(y_true, target_name),
            flag=None if flags is None else flags[rows],
            regions=None if regions is None else regions.take(rows),
        ).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        style: Literal["auto", "bars", "bands"] = "auto",
        interval_kwargs: Style = None,
        scatter_kwargs: Style = None,
        line_kwargs: Style = None,
    ) -> Self:
        """Draw intervals, targets and the mean.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        style : {"auto", "bars", "bands"}, default="auto"
            The form of the intervals: a bar for each row, or bands from row to row. "auto" means
            bands if there are several levels and the rows stand at distinct places.
        interval_kwargs : dict, optional
            Keywords for the intervals.
        scatter_kwargs : dict, optional
            Keywords for the targets.
        line_kwargs : dict, optional
            Keywords for the line of the mean.

        Returns
        -------
        IntervalDisplay
            The display itself.
        """
        check_choice("style", style, ("auto", "bars", "bands"))
        if style == "bands" and self.regions is not None:
            raise ValueError("style must not be 'bands' for regions")
        ax = self._draw_on(ax)
        k = self.intervals.shape[2]
        distinct = len(np.unique(self.position)) == len(self.position)
        as_bands = style == "bands" or (style == "auto" and k > 1 and distinct)
        inside = _holding(self.y_true, self.intervals, self.regions)[:, -1]
        # With what the axes held before; infinite ends are drawn to the border.
        shown = self.intervals, self.y_true, self.prediction, ax.dataLim.intervaly
        low, high = common.finite_range(*shown, margin=ax.margins()[1])
        self._draw_intervals(ax, (low, high), inside, as_bands, interval_kwargs)
        self.prediction_ = None
        if self.prediction is not None:
            usual: dict[str, Any] = {"color": INK, "linewidth": 1, "label": "mean"}
            if not as_bands and (np.diff(self.prediction) < 0).any():  # no line up and down
                usual |= {"linestyle": "none", "marker": "_", "markersize": 5}
            points = self.position, self.prediction
            (self.prediction_,) = draw(ax.plot, *points, keywords=line_kwargs, **usual)
        wide = f" {percent(self.coverages[-1])}" if k > 1 and self.coverages is not None else ""
        dot = {"color": BLUE if k == 1 and not as_bands else INK, "s": 12, "label": "target inside"}
        mark = {"color": VERMILLION, "s": 24, "marker": "^", "label": f"target outside{wide}"}
        self.inside_ = self._dots(ax, inside, scatter_kwargs, dot)
        self.outside_ = self._dots(ax, ~inside, scatter_kwargs, mark)
        if self.flag is not None and self.flag.any():
            empty = {"facecolors": "none", "edgecolors": INK, "s": 16, "linewidths": 0.8}
            ax.scatter([], [], label="unlike the training rows", **empty)
        common.plain_numbers(ax.yaxis)
        if self.position.dtype.kind in "iuf":
            common.plain_numbers(ax.xaxis)
        self._label(self.position_name, self.target_name, loc="upper left", ncols=2, frameon=False)
        room = 0.055 * ((len(ax.get_legend().get_texts()) + 1) // 2)
        common.set_limits(ax, "y", low, low + (high - low) * (1 + room))
        return self

    def _name(self, level: int) -> str:
        text = f"holds {percent(self.realised[level])}"
        if level == len(self.realised) - 1:
            text += f" of {self.n_rows:,} rows"
        nominal = "" if self.coverages is None else f"{percent(self.coverages[level])} "
        return f"{nominal}{'interval' if self.regions is None else 'region'}, {text}"

    def _draw_intervals(
        self, ax: Any, limits: Any, inside: Any, as_bands: bool, keywords: Style
    ) -> None:
        """Draw the levels from wide to narrow, so that narrow ones are above."""
        place, all_ends, k = self.position, self.intervals, self.intervals.shape[2]
        by_rank, n = np.array_equal(place, np.arange(len(place))), len(place)
        if self.regions is not None:  # a bar for each piece
            all_ends = np.stack([self.regions.lower, self.regions.upper], axis=1)[..., np.newaxis]
            place, inside = (np.repeat(each, self.regions.n_pieces) for each in (place, inside))
        shades = need("matplotlib.colors").LinearSegmentedColormap.from_list("", common.SHADES)
        self.intervals_: list[Any] = []
        width = max(0.8, min(4.0, 250 / max(n, 1)))  # bars do not touch
        for level in reversed(range(k)):
            shade, label = shades(level / (k - 1) if k > 1 else 0.5), self._name(level)
            parts: list[Any] = [(slice(None), shade, label)]
            look: dict[str, Any] = {"linewidth": (k - level) ** 0.5 * width}
            if as_bands:
                look = {"linewidth": 0, "step": "mid" if by_rank else None}
            elif k == 1:
                parts = [(inside, common.PALE_BLUE, label), (~inside, common.PALE_VERMILLION, None)]
            for rows, colour, name in parts:
                ends = np.clip(all_ends[rows, :, level].T, *limits)
                usual = {"color": colour, "label": name, **look}
                method = ax.fill_between if as_bands else ax.vlines
                self.intervals_.append(draw(method, place[rows], *ends, keywords=keywords, **usual))

    def _dots(self, ax: Any, rows: NDArray[np.bool_], keywords: Style, usual: Any) -> Any:
        points = self.position[rows], self.y_true[rows]
        dots = draw(ax.scatter, *points, keywords=keywords, linewidths=0, zorder=3, **usual)
        if self.flag is not None and self.flag[rows].any():
            colours = np.resize(dots.get_facecolor(), (np.count_nonzero(rows), 4))
            dots.set(edgecolor=colours, linewidth=0.8)
            dots.set_facecolor(np.where(self.flag[rows, np.newaxis], 0, colours))
        return dots


def _holding(y: Array, ends: Array, regions: Regions | None) -> NDArray[np.bool_]:
    """Return whether the intervals of each row hold its target, (n, k)."""
    if regions is not None:
        return regions.contains(y)[:, np.newaxis]
    targets = y[:, np.newaxis]
    return np.asarray((ends[:, 0] <= targets) & (targets <= ends[:, 1]))
