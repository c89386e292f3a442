"""What all displays share: colours, axes, the rows and intervals that they draw."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._tables.frames import frame_of
from hdiforest._utils.checks import checked_random_state, reals, shares, significant
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array
from hdiforest._utils.warnings import hints_that_name

# Of the palette of Okabe and Ito, which the colour-blind can tell apart.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
INK, GREY, MIST = "#1d2733", "#6b7680", "#dfe3e8"
PALE_BLUE, PALE_VERMILLION = "#a6cde5", "#efb58c"


# A line of each has its own mark too.
CURVES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"))


Style = Mapping[str, Any] | None


class Display:
    """A picture of intervals or of a distribution, on axes that it keeps."""

    ax_: Any
    figure_: Any

    @classmethod
    def _predict_intervals(
        cls,
        estimator: Any,
        X: Any,
        coverages: float | Sequence[float],
        kind: str | None,
        target: int | None,
    ) -> Array:
        """Return intervals (n, 2, k); a warning on the rows of the fit names what to call."""
        require_matplotlib(cls)
        call = f"{cls.__name__}.from_out_of_bag(model"
        with hints_that_name(f"{call})", f"{call}, kind='hdi')"):
            return intervals_of(estimator, X, coverages, kind, target)

    def _drawn_on(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self


def axes_for(display: object, ax: Any) -> Any:
    """Return the given axes, or those of a new figure.

    Raises
    ------
    MissingPackageError
        If matplotlib is not installed.
    """
    if ax is None:
        pyplot = need("matplotlib.pyplot", type(display).__name__, "plots")
        ax = pyplot.subplots(layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(GREY)
    ax.tick_params(color=GREY)
    return ax


def require_matplotlib(display: type) -> None:
    """Raise MissingPackageError before any work if matplotlib is not installed."""
    need("matplotlib", display.__name__, "plots")


def styled(usual: Mapping[str, Any], keywords: Style, artist: str) -> dict[str, Any]:
    """Return keywords for an artist such as "lines.Line2D": these, the usual for the rest."""
    module, _, name = artist.partition(".")
    kind = getattr(need(f"matplotlib.{module}"), name)
    named: dict[str, Any] = need("matplotlib.cbook").normalize_kwargs(keywords, kind)
    return {**usual, **named}


def shades(k: int) -> list[tuple[float, float, float]]:
    """Return k blues, from dark to pale."""
    pale, dark = (
        np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        for colour in ("#d3e6f2", "#4f9bcb")
    )
    shares = np.linspace(0, 1, k) if k > 1 else np.array([0.5])
    return [tuple(((1 - share) * dark + share * pale).tolist()) for share in shares]


def set_limits(ax: Any, axis: str, low: float, high: float) -> None:
    """Set the limits of axis "x" or "y"; widen them if other axes with data share that axis."""
    shared = getattr(ax, f"get_shared_{axis}_axes")().get_siblings(ax)
    if any(other is not ax and other.has_data() for other in shared):
        shown = getattr(ax, f"get_{axis}lim")()
        low, high = min(low, *shown), max(high, *shown)
    getattr(ax, f"set_{axis}lim")(low, high)


def plain_numbers(axis: Any) -> None:
    """Label the ticks of an axis in full, with thousands separated.

    Axes with labels of their own stay, and those of numbers that float64 does not hold in full.
    """

    def label(value: float, _: int) -> str:
        low, high = axis.get_view_interval()
        shown = 0.0 if abs(value) < 1e-9 * abs(high - low) else value  # zero, up to rounding
        return significant(shown, 15).replace("-", "\N{MINUS SIGN}")

    ends = axis.get_data_interval()
    is_usual = axis.isDefault_majfmt and axis.get_scale() == "linear"
    if not is_usual or np.abs(ends).max() >= 1e15:
        return
    axis.set_major_formatter(label)
    is_long = max(len(significant(end)) for end in ends) > 6
    if is_long and axis.axis_name == "x" and axis.isDefault_majloc:
        axis.get_major_locator().set_params(nbins=5)  # labels do not touch


def percent(share: float) -> str:
    """Return a share as text, such as 90 % or 99.5 %."""
    return f"{100 * share:.3g} %"


def plain(name: object) -> str:
    """Return a name that matplotlib must not read as mathematics."""
    return str(name).replace("$", r"\$")


def intervals_of(
    estimator: Any,
    X: Any,
    coverages: float | Sequence[float] | Array,
    kind: str | None,
    target: int | None,
) -> Array:
    """Return intervals (n, 2, k) of one target, of k coverages.

    Raises
    ------
    ValueError
        If the estimator has no intervals, or an argument is wrong.
    """
    model, rows = model_and_rows(estimator, X, "predict_interval")
    position = checked_target(model, target)
    options: dict[str, Any] = {} if kind is None else {"kind": kind}
    levels = np.atleast_1d(shares("coverage", coverages, one=True)).tolist()
    ends: Array = model.predict_interval(rows, levels, output="numpy", **options)
    return ends if ends.ndim == 3 else ends[:, position]


class OutOfBag(NamedTuple):
    """Training rows of one target, each predicted by the trees that did not draw it."""

    rows: NDArray[np.intp]  # (n,) their positions: those that have intervals
    y: Array  # (n,)
    prediction: Array  # (n,)
    intervals: Array  # (n, 2, k)
    n_training_rows: int

    def of_rows(self, name: str, values: Any) -> Any:
        """Return values of all training rows for those here; None and numbers stay."""
        if np.ndim(values) == 0:
            return values
        if len(values) != self.n_training_rows:
            raise ValueError(
                f"{name} must have shape ({self.n_training_rows},), got {np.shape(values)}"
            )
        column = np.asarray(values) if isinstance(values, list | tuple) else values
        return frame_of(column).rows(self.rows)


def out_of_bag_of(
    estimator: Any,
    coverages: float | Sequence[float] | Array,
    kind: str | None,
    target: int | None,
) -> OutOfBag:
    """Return what `oob_interval` and `oob_prediction` say of one target.

    Raises
    ------
    ValueError
        If the estimator has no such intervals, or an argument is wrong.
    """
    model = model_in(estimator, "oob_interval")
    position = checked_target(model, target)
    levels = np.atleast_1d(shares("coverage", coverages, one=True))
    ends = model.oob_interval(levels, kind=kind)
    with warnings.catch_warnings():  # of the rows without an interval, of which one is enough
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag prediction", UserWarning)
        mean = model.oob_prediction()
    y = model.fitted_forest().require_training_rows().y
    if y.ndim > 1:
        ends, mean, y = ends[:, position], mean[:, position], y[:, position]
    rows = np.flatnonzero(~(np.isnan(ends).any(axis=(1, 2)) | np.isnan(mean)))
    if len(rows) == 0:
        raise ValueError("no training row has an interval out of bag; use more trees")
    return OutOfBag(rows, y[rows], mean[rows], ends[rows], len(y))


def predictions_of(estimator: Any, X: Any, target: int | None) -> Array:
    """Return means (n,) of one target."""
    model, rows = model_and_rows(estimator, X, "predict_interval")
    position = checked_target(model, target)
    means: Array = model.predict(rows, output="numpy")
    return means if means.ndim == 1 else means[:, position]


def checked_target(model: Any, target: int | None) -> int:
    """Return which target of a model is meant; a model of several needs a choice."""
    n = getattr(model, "n_outputs_", 1)
    if target is None and n > 1:
        raise ValueError(f"the model has {n} targets: choose one by target=, from 0 to {n - 1}")
    if target is None:
        return 0
    if isinstance(target, bool) or not isinstance(target, int | np.integer) or not 0 <= target < n:
        raise ValueError(f"target must be a whole number from 0 to {n - 1}, got {target!r}")
    return int(target)


def target_of(y: ArrayLike, target: int | None) -> Any:
    """Return the targets (n,) of y, those of the column `target` if there are several."""
    values = np.asarray(y)
    if values.ndim == 1:
        return values
    column = 0 if target is None else target
    n = values.shape[1] if values.ndim == 2 else 0
    if column >= n or (target is None and n > 1):
        raise ValueError(f"y must have one column per target of the model, got {values.shape}")
    return values[:, column]


def target_label(y: Any, label: str | None) -> str:
    """Return the label of targets: the given one, the name of a series, or "target"."""
    if label is not None:
        return label
    name = getattr(y, "name", None)
    return plain(name) if isinstance(name, str) and name else "target"


def one_per_row(name: str, array: ArrayLike, n: int) -> Array:
    """Return the argument `name` as float64, (n,)."""
    values = reals(name, array)
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {values.shape}")
    return values


def checked_feature(feature: ArrayLike, n: int) -> NDArray[Any]:
    """Return numbers or dates, (n,)."""
    values = np.asarray(feature)
    if values.shape != (n,):
        raise ValueError(f"feature must have shape ({n},), got {values.shape}")
    if values.dtype.kind not in "iufbmM":
        raise ValueError(f"feature must hold numbers or dates, got values of type {values.dtype}")
    return values


def feature_of(X: Any, feature: Any) -> tuple[Any, str | None]:
    """Return values of a feature, and its name if X has one."""
    if feature is None:
        return None, None
    if isinstance(feature, str):
        try:
            return np.asarray(X[feature]), plain(feature)
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"feature must be a column of X, got {feature!r}") from None
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        frame = frame_of(X)
        n = np.shape(X)[1] if frame.names is None else len(frame.names)
        if not 0 <= feature < n:
            raise ValueError(f"feature must be a column from 0 to {n - 1}, got {feature}")
        label = f"feature {feature}" if frame.names is None else plain(frame.names[feature])
        return frame.column(int(feature)), label
    return feature, None


def drawn_rows(
    n: int, subsample: float | int | None, random_state: int | np.random.RandomState | None
) -> NDArray[np.intp]:
    """Return positions of the rows to draw, ascending."""
    if subsample is None:
        return np.arange(n)
    is_share = isinstance(subsample, float)
    if isinstance(subsample, bool) or not (0 < subsample <= 1 if is_share else subsample >= 1):
        raise ValueError(
            f"subsample must be a share from 0 to 1, a whole number from 1 on, or None, got "
            f"{subsample!r}"
        )
    size = max(1, int(subsample * n)) if is_share else int(subsample)
    if size >= n:
        return np.arange(n)
    random = checked_random_state(0 if random_state is None else random_state)
    return np.sort(random.choice(n, size, replace=False))
