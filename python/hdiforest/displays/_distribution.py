"""The distribution of one row, what makes its interval, and where targets lie in theirs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdicore.regions import Regions
from hdiforest._tables.frames import frame_of
from hdiforest._utils import Array, checks
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest.displays import _common as common
from hdiforest.displays._common import BLUE, GREY, MIST, VERMILLION, Style, draw, percent
from hdiforest.metrics import pit_values
from hdiforest.metrics._intervals import chance_range

_MAX_LINES = 60  # atoms that are drawn each by itself
_N_BINS = 40


@dataclass(kw_only=True, eq=False, repr=False)
class DistributionDisplay(common.Display):
    """The distribution of one row: its mass function or its distribution function.

    Parameters
    ----------
    values : (m,) array
        Distinct values of the target, ascending.
    masses : (m,) array
        Probabilities of the values.
    y_true : float or None
        The observed target.
    interval : (2,) or (p, 2) array, or None
        The interval, or the p pieces of the region.
    coverage : float or None
        Nominal coverage of the interval or the region.
    target_name : str
        Label of the axis of the target, with the unit.

    Attributes
    ----------
    bars_ : matplotlib artists or None
        Masses inside and outside the interval. None if they are not drawn.
    curve_ : matplotlib line or None
        The distribution function. None if it is not drawn.
    interval_ : matplotlib artist or None
        The interval. None if it is not drawn.
    observed_ : matplotlib line or None
        The observed target. None if it is not drawn.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from hdiforest import DistributionDisplay
    >>> display = DistributionDisplay.from_predictions(2.5, [1, 2, 2, 5], interval=[1, 2])
    >>> display.values.tolist(), display.masses.tolist()
    ([1.0, 2.0, 5.0], [0.25, 0.5, 0.25])
    """

    values: Array
    masses: Array
    y_true: float | None
    interval: Array | None
    coverage: float | None
    target_name: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        row: int = 0,
        coverage: float = 0.9,
        kind: str | None = None,
        target: int | None = None,
        regions: Regions | None = None,
        **options: Any,
    ) -> Self:
        """Predict the distribution of one row and draw it, calibrated if the model is.

        Parameters
        ----------
        estimator : fitted estimator
            The model. See `IntervalDisplay.from_estimator`.
        X : (n, n_features) array or table
            The rows.
        y : (n,) or (n, n_outputs) array, optional
            Targets of the rows.
        row : int, default=0
            Number of the row of X to draw.
        coverage : float, default=0.9
            The coverage of the interval.
        kind : str, optional
            The kind of interval. See `HDIForestRegressor.predict_interval`.
        target : int, optional
            Number of the target to draw, from 0 on. A model of several targets needs it.
        regions : hdicore.regions.Regions, optional
            Regions of the rows of X, such as `hdiforest.regions.predict_region` gives. The region
            of the row is drawn in place of the interval.
        **options : optional
            Keywords of `from_predictions` and `plot`, such as `ax`.

        Returns
        -------
        DistributionDisplay
            The picture.
        """
        cls._require_matplotlib()
        frame = frame_of(X)
        row = checks.check_whole_number("row", row, 0)
        if frame.n_rows is not None:
            common.checked_position("row", row, frame.n_rows)
            if regions is not None and len(regions) != frame.n_rows:
                must = f"regions must be of the {frame.n_rows} rows of X"
                raise ValueError(f"{must}, got those of {len(regions)} rows")
        one = frame.rows(slice(row, row + 1))
        predictor = common.OneTarget(*model_and_rows(estimator, one, "predict_cdf"), target)
        values, masses = _distribution(predictor)
        options = {"target_name": common.target_label(y, None), "coverage": coverage, **options}
        if regions is None:
            options["interval"] = predictor.ask("interval", coverage, kind=kind)[0]
        else:
            options["interval"] = regions[row]
        y_true = None if y is None else float(np.asarray(predictor.targets(y))[row])
        return cls.from_predictions(y_true, values, masses, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: float | None,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        interval: ArrayLike | None = None,
        coverage: float | None = None,
        target_name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw a weighted sample.

        Parameters
        ----------
        y_true : float or None
            The observed target.
        values : (m,) array
            The sample.
        weights : (m,) array, optional
            Weights of the sample, not negative. None means equal weights.
        interval : (2,) or (p, 2) array, optional
            Lower and upper end, or the ends of p pieces. Infinite ends are drawn to the border.
        coverage : float, optional
            Nominal coverage of the interval.
        target_name : str, optional
            Label of the axis of the target, with the unit.
        **options : optional
            Keywords of `plot`, such as `ax`.

        Returns
        -------
        DistributionDisplay
            The picture.
        """
        atoms, masses = _checked_sample(values, weights)
        ends = None if interval is None else checks.reals("interval", interval)
        if ends is not None and (
            ends.shape[-1:] != (2,) or ends.ndim > 2 or not (ends[..., 0] <= ends[..., 1]).all()
        ):
            raise ValueError(f"interval must be a lower and an upper end, got {interval!r}")
        if y_true is not None and not np.isfinite(y_true):
            raise ValueError(f"y_true must be finite, got {y_true}")
        return cls(
            values=atoms,
            masses=masses,
            y_true=None if y_true is None else float(y_true),
            interval=ends,
            coverage=coverage,
            target_name=common.target_label(None, target_name),
        ).plot(**options)

    def plot(
        self,
        ax: Any = None,
        *,
        what: Literal["mass", "cdf"] = "mass",
        bins: int | None = None,
        bar_kwargs: Style = None,
        line_kwargs: Style = None,
    ) -> Self:
        """Draw the mass function or the distribution function.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        what : {"mass", "cdf"}, default="mass"
            The function to draw: the mass function, or the distribution function P(Y <= y).
        bins : int, optional
            Number of bins of equal width in which masses are added up. 0 draws a line for each
            value. The default is 0 for at most 60 values with mass, and 40 for more.
        bar_kwargs : dict, optional
            Keywords for the bars or lines of masses.
        line_kwargs : dict, optional
            Keywords for the curve.

        Returns
        -------
        DistributionDisplay
            The display itself.
        """
        checks.check_choice("what", what, ("mass", "cdf"))
        if bins is not None:
            checks.check_whole_number("bins", bins, 0)
        ax = self._draw_on(ax)
        seen = self.masses > 0
        shown = self.values[seen], self.y_true, self.interval
        low, high = common.finite_range(*shown, margin=0.04)
        self.bars_: list[Any] = []
        self.curve_, self.interval_, self.observed_ = None, None, None
        if self.interval is not None:
            name = "interval" if self.interval.ndim == 1 else "region"
            nominal = "" if self.coverage is None else f"{percent(self.coverage)} "
            label = f"{nominal}{name}, mass {percent(float(self.masses[self._inside()].sum()))}"
            for ends in np.atleast_2d(np.clip(self.interval, low, high)):
                look = {"color": "#eaf3f9", "linewidth": 0, "zorder": 0, "label": label}
                self.interval_, label = ax.axvspan(*ends, **look), "_nolegend_"
        if what == "mass":
            n_bins = (0 if seen.sum() <= _MAX_LINES else _N_BINS) if bins is None else bins
            ylabel = self._draw_masses(ax, n_bins, bar_kwargs)
        else:
            ylabel = self._draw_cdf(ax, low, high, line_kwargs)
        if self.y_true is not None:
            look = {"linewidth": 1.6, "linestyle": (0, (4, 2)), "label": "observed"}
            self.observed_ = ax.axvline(self.y_true, color=VERMILLION, **look)
        common.set_limits(ax, "x", low, high)
        common.plain_numbers(ax.xaxis)
        place = "upper right" if what == "mass" else "best"
        return self._label(self.target_name, ylabel, loc=place, framealpha=0.85, edgecolor="none")

    def _inside(self) -> NDArray[np.bool_]:
        pieces = [(-np.inf, np.inf)] if self.interval is None else np.atleast_2d(self.interval)
        in_pieces = [(low <= self.values) & (self.values <= up) for low, up in pieces]
        inside: NDArray[np.bool_] = np.any(in_pieces, axis=0)
        return inside

    def _draw_masses(self, ax: Any, n_bins: int, keywords: Style) -> str:
        """Draw lines or bars, and return what they show."""
        inside, seen = self._inside(), self.masses > 0
        if n_bins == 0:
            for rows, colour in ((inside & seen, BLUE), (~inside & seen, GREY)):
                lines = self.values[rows], 0, 100 * self.masses[rows]
                drawn = draw(ax.vlines, *lines, keywords=keywords, color=colour, linewidth=2)
                self.bars_.append(drawn)
            common.set_limits(ax, "y", 0, 118 * self.masses.max())  # room for the legend
            return "probability (%)"
        edges = np.histogram_bin_edges(self.values[seen], n_bins)
        parts = [self.values[inside], self.values[~inside]]
        masses = [100 * self.masses[inside], 100 * self.masses[~inside]]
        usual: dict[str, Any] = {"color": [BLUE, "#aab3bb"], "rwidth": 0.92}
        heights, _, self.bars_ = ax.hist(parts, edges, weights=masses, stacked=True, **usual)
        for bar in itertools.chain(*self.bars_):
            bar.set(edgecolor=bar.get_facecolor(), linewidth=0)
            bar.set(**keywords or {})
        common.set_limits(ax, "y", 0, 1.18 * heights[-1].max())
        return f"probability (%) in a bin of {checks.significant(edges[1] - edges[0], 2)}"

    def _draw_cdf(self, ax: Any, low: float, high: float, keywords: Style) -> str:
        """Draw steps, and return what they show."""
        heights = 100 * np.concatenate([[0], np.cumsum(self.masses), [1]])
        places = np.concatenate([[low], self.values, [high]])
        usual: dict[str, Any] = {"color": BLUE, "linewidth": 1.8, "drawstyle": "steps-post"}
        (self.curve_,) = draw(ax.plot, places, heights, keywords=keywords, **usual)
        ax.set_ylim(0, 101)
        return "P(Y ≤ y) (%)"


@dataclass(kw_only=True, eq=False, repr=False)
class PITDisplay(common.Display):
    """Histogram of PIT values, with the band of uniform values by chance.

    Parameters
    ----------
    pit : (n,) array
        Probability integral transform of each row.

    Attributes
    ----------
    shares_ : (bins,) array
        Share of the values in each bin.
    bars_ : matplotlib artists
        The histogram.
    band_ : matplotlib artist
        The band in which nine of ten bars lie if the values are uniform.
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure.

    Examples
    --------
    >>> from hdiforest import PITDisplay
    >>> PITDisplay.from_predictions([0.1, 0.4, 0.45, 0.9], bins=2).shares_.tolist()
    [0.75, 0.25]
    """

    pit: Array

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, kind: str | None = None, **options: Any
    ) -> Self:
        """Compute PIT values of rows by a model of one target, and draw them.

        Parameters
        ----------
        estimator : fitted estimator
            The model, of one target. See `IntervalDisplay.from_estimator`.
        X : (n, n_features) array or table
            The rows.
        y : (n,) array
            Targets of the rows.
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. See
            `HDIForestRegressor.predict_quantiles`.
        **options : optional
            Keywords of `plot`.

        Returns
        -------
        PITDisplay
            The picture.
        """
        cls._require_matplotlib()
        model, rows = model_and_rows(estimator, X, "predict_cdf")
        ask = partial(model.predict_cdf, rows, np.asarray(y), kind=kind, output="numpy")
        return cls.from_predictions(pit_values(ask(), ask(inclusive=False)), **options)

    @classmethod
    def from_out_of_bag(cls, estimator: Any, *, kind: str | None = None, **options: Any) -> Self:
        """Draw the training rows, each predicted by the trees that did not draw it.

        Parameters
        ----------
        estimator : fitted estimator
            A model of one target that has ``oob_`` and its training rows.
        kind : {"calibrated", "raw"}, optional
            The distribution: the calibrated one, or the forest's own. Calibrated distributions of
            the training rows are uniform by construction.
        **options : optional
            Keywords of `plot`.

        Returns
        -------
        PITDisplay
            The picture.
        """
        cls._require_matplotlib()
        ask = partial(model_in(estimator, "oob_").oob_.cdf, kind=kind)
        cdf, below = ask(), ask(inclusive=False)
        is_present = ~np.isnan(cdf)
        return cls.from_predictions(pit_values(cdf[is_present], below[is_present]), **options)

    @classmethod
    def from_predictions(cls, pit: ArrayLike, **options: Any) -> Self:
        """Draw PIT values.

        Parameters
        ----------
        pit : (n,) array
            PIT values in [0, 1], such as `hdiforest.metrics.pit_values` returns them.
        **options : optional
            Keywords of `plot`, such as `bins`.

        Returns
        -------
        PITDisplay
            The picture.
        """
        values = checks.check_targets("pit", pit)
        if (values < 0).any() or (values > 1).any():
            raise ValueError("pit must be in [0, 1]")
        return cls(pit=values).plot(**options)

    def plot(self, ax: Any = None, *, bins: int = 20) -> Self:
        """Draw the histogram and the band.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        bins : int, default=20
            Number of bars.

        Returns
        -------
        PITDisplay
            The display itself.
        """
        checks.check_whole_number("bins", bins)
        ax, n = self._draw_on(ax), len(self.pit)
        self.shares_ = np.histogram(self.pit, bins, (0, 1))[0] / n
        low, high = 100 * chance_range(1 / bins, n, 0.9)
        label = f"90 % of bars, if uniform ({n:,} rows)"
        self.band_ = ax.axhspan(low, high, color=MIST, linewidth=0, label=label, zorder=0)
        edges, heights = np.arange(bins) / bins, 100 * self.shares_
        self.bars_ = ax.bar(edges, heights, 0.92 / bins, align="edge", color=BLUE, alpha=0.8)
        common.set_limits(ax, "x", 0, 1)
        common.set_limits(ax, "y", 0, 1.25 * max(high, heights.max()))
        shown = "probability integral transform of targets", "rows (%)"
        return self._label(*shown, loc="upper right", framealpha=0.85, edgecolor="none")


def _distribution(predictor: common.OneTarget) -> tuple[Array, Array]:
    """Return the values that a model knows of a target, and their masses in one row."""
    model, one, output = predictor.model, predictor.rows, predictor.target
    calibrated = getattr(predictor.calibration, "distribution", None)
    if calibrated is not None:
        levels = calibrated.levels
        quantiles = model.predict_quantiles(one, levels, output="numpy").reshape(-1, len(levels))
        return _checked_sample(quantiles[output], np.diff(levels, prepend=0.0))
    index = model.scorer_.index if hasattr(model, "scorer_") else model.index_
    values: Array = index.atoms(output)
    shape = (1, len(values)) if index.scalar_output else (1, index.n_outputs, len(values))
    cdf = model.predict_cdf(one, np.broadcast_to(values, shape), output="numpy")
    return values, np.diff(cdf.reshape(-1, len(values))[output], prepend=0.0)


def _checked_sample(values: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array]:
    """Return distinct values, ascending, and their shares of the weights."""
    sample = checks.reals("values", values)
    if sample.ndim != 1 or len(sample) == 0 or not np.isfinite(sample).all():
        raise ValueError(f"values must be finite and of shape (m,) with m > 0, got {sample.shape}")
    if weights is not None:
        weights = checks.check_weights("weights", weights, len(sample))
    atoms, which = np.unique(sample, return_inverse=True)
    masses = np.bincount(which, weights=weights, minlength=len(atoms))
    return atoms, masses / masses.sum()


@dataclass(kw_only=True, eq=False, repr=False)
class ExplanationDisplay(common.Display):
    """Training rows behind one interval by weight, and features by their effect on its width.

    Parameters
    ----------
    rows : dict of columns
        The training rows of one row. See `Explanation.rows`.
    features : dict of columns
        The features of one row. See `Explanation.features`.
    interval : (2,) array
        Lower and upper end of the interval.

    Attributes
    ----------
    rows_ : matplotlib artists
        Weights of the training rows.
    pins_ : matplotlib artists
        Weights of the training rows that are an end of the interval.
    bars_ : matplotlib artists
        Bars of the features.
    axes_ : two matplotlib Axes
        Both axes.
    ax_ : matplotlib Axes
        The first of the axes.
    figure_ : matplotlib Figure
        The figure.
    """

    rows: Mapping[str, NDArray[Any]]
    features: Mapping[str, NDArray[Any]]
    interval: Array

    def plot(self, axes: Any = None, *, n_features: int = 10) -> Self:
        """Draw the training rows and the features.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            The axes to draw on. The default is axes of a new figure.
        n_features : int, default=10
            Largest number of features to show.

        Returns
        -------
        ExplanationDisplay
            The display itself.
        """
        left, right = self.axes_ = self._draw_on(axes, 2, figsize=(9, 4))
        values, weights = self.rows["value"], self.rows["weight"]
        pins = self.rows["pins"] != ""
        left.axvspan(*self.interval, color=MIST, label="interval")
        self.rows_ = left.vlines(values[~pins], 0, weights[~pins], color=BLUE, alpha=0.6)
        look = {"color": VERMILLION, "linewidth": 2, "label": "holds an end, unwidened"}
        self.pins_ = left.vlines(values[pins], 0, weights[pins], **look)
        left.set_ylim(0, None)
        self._label("where training rows stand", "weight")
        columns = self.features["feature"], self.features["change_of_width"]
        names, change = (column[:n_features][::-1] for column in columns)
        colours = np.where(change > 0, VERMILLION, BLUE)
        self.bars_ = right.barh(list(map(common.plain, names)), change, color=colours)
        right.axvline(0, color=GREY, linewidth=1)
        right.set(xlabel="width less that with other values of the feature")
        return self
