"""CalibrationDisplay: nominal against realised coverage, with what chance alone would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hdiforest._utils import Array
from hdiforest._utils.checks import one_share, reals, shares
from hdiforest._utils.hints import hints_that_name
from hdiforest._utils.meta_estimators import model_in
from hdiforest.displays._common import (
    CURVES,
    GREY,
    MIST,
    Display,
    Style,
    axes_for,
    chance_range,
    intervals_of,
    out_of_bag_of,
    percent,
    require_matplotlib,
    styled,
    target_of,
)
from hdiforest.metrics._intervals import coverage_score

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(kw_only=True, eq=False, repr=False)
class CalibrationDisplay(Display):
    """Realised coverage of intervals against the nominal one.

    Make it by `from_estimator`, `from_out_of_bag` or `from_predictions`; the parameters are
    stored as attributes. Without matplotlib all of these raise ImportError.

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
        output: int | None = None,
        band: float = 0.95,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and compare their coverage with the nominal one.

        Parameters
        ----------
        estimator : fitted estimator
            See `IntervalDisplay.from_estimator`.
        X : (n, n_features) array or table
            Rows that took no part in the fit or the calibration.
        y : (n,) or (n, n_outputs) array
            Their targets.
        coverages : sequence of floats, optional
            By default those that the model was calibrated at, or 0.1, 0.2, ..., 0.9, 0.95.
        kind : str or sequence of str, optional
            Kinds of intervals, each a curve; see `HDIForestRegressor.predict_interval`. By default
            "hdi", and "calibrated" too after a calibration.
        output : int, optional
            Which target, from 0 on; needed if the model has several.
        band : float, default=0.95
            See the class.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ValueError
            If an argument is out of range, or the model has several targets and `output` is None.
        """
        require_matplotlib(cls)
        one_share("band", band)
        calibration, coverages = _asked(estimator, "predict_interval", coverages)
        if kind is None:
            kind = ("hdi",) if calibration is None else ("hdi", "calibrated")
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        with hints_that_name(f"{cls.__name__}.from_out_of_bag(model)"):
            curves = {_NAMES.get(each, each): intervals_of(estimator, X, coverages, each, output)
                      for each in kinds}  # fmt: skip
        return cls.from_predictions(
            target_of(y, output),
            curves,
            coverages=coverages,
            band=band,
            ax=ax,
            **options,
        )

    @classmethod
    def from_out_of_bag(
        cls,
        estimator: Any,
        *,
        coverages: Sequence[float] | None = None,
        output: int | None = None,
        band: float = 0.95,
        **options: Any,
    ) -> Self:
        """Compare coverages of the training rows, before and after the calibration.

        Parameters
        ----------
        estimator : fitted estimator
            See `IntervalDisplay.from_out_of_bag`.
        coverages, output : optional
            As in `from_estimator`.
        band : float, default=0.95
            See the class.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay

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
        The curve of the HDI is that of ``oob_interval(kind="hdi")``. That of the calibrated
        intervals is the cross-check of `calibration_`: the conformal quantiles are those with which
        the intervals of the calibration rows themselves have the nominal coverage.
        """
        require_matplotlib(cls)
        one_share("band", band)
        calibration, coverages = _asked(estimator, "oob_interval", coverages)
        training = out_of_bag_of(estimator, coverages, "hdi", output)
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
        band : float, default=0.95
            See the class.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **options
            See `plot`.

        Returns
        -------
        CalibrationDisplay

        Raises
        ------
        ValueError
            If an argument is out of range, shapes differ, or a value is NaN.
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
