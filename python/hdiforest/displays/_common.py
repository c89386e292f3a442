"""What all displays share: colours, axes, the rows and intervals that they draw."""

from __future__ import annotations

import base64
import io
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdiforest._tables.frames import frame_of
from hdiforest._utils import Array, checks
from hdiforest._utils.meta_estimators import model_and_rows, model_in
from hdiforest._utils.optional import need
from hdiforest.exceptions import OutOfBagWarning

# Of the palette of Okabe and Ito, which the colour-blind can tell apart.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#E69F00", "#56B4E9"
INK, GREY, MIST = "#1d2733", "#6b7680", "#dfe3e8"
PALE_BLUE, PALE_VERMILLION = "#a6cde5", "#efb58c"
SHADES = "#4f9bcb", "#d3e6f2"
# A line of each has its own mark too.
CURVES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"))

Style = Mapping[str, Any] | None
Coverages = float | Sequence[float] | Array


def draw(method: Any, *data: Any, keywords: Style, **usual: Any) -> Any:
    """Draw data by a method of axes; the keywords of the caller replace the usual ones."""
    line, other = need("matplotlib.lines").Line2D, need("matplotlib.collections").Collection
    kind = line if method.__name__ == "plot" else other
    return method(*data, **{**usual, **need("matplotlib.cbook").normalize_kwargs(keywords, kind)})


def finite_range(*shown: Any, margin: float) -> tuple[float, float]:
    """Return ends around all that is finite of some numbers and arrays; None is left out."""
    numbers = np.concatenate([np.ravel(np.asarray(each, dtype=np.float64)) for each in shown])
    numbers = numbers[np.isfinite(numbers)]
    room = margin * np.ptp(numbers) or 1.0
    return numbers.min() - room, numbers.max() + room


def set_limits(ax: Any, axis: str, low: float, high: float) -> None:
    """Set the limits of axis "x" or "y"; widen them if other axes with data share that axis."""
    shared = getattr(ax, f"get_shared_{axis}_axes")().get_siblings(ax)
    if any(other is not ax and other.has_data() for other in shared):
        shown = getattr(ax, f"get_{axis}lim")()
        low, high = min(low, *shown), max(high, *shown)
    getattr(ax, f"set_{axis}lim")(low, high)


def plain_numbers(axis: Any) -> None:
    """Label the ticks of an axis in full, unless it has its own labels or is beyond 10^15."""

    def label(value: float, _: int) -> str:
        low, high = axis.get_view_interval()
        shown = 0.0 if abs(value) < 1e-9 * abs(high - low) else value  # zero, up to rounding
        return checks.significant(shown, 15).replace("-", "\N{MINUS SIGN}")

    ends = axis.get_data_interval()
    is_usual = axis.isDefault_majfmt and axis.get_scale() == "linear"
    if is_usual and np.abs(ends).max() < 1e15:
        axis.set_major_formatter(label)
        is_long = max(len(checks.significant(end)) for end in ends) > 6
        if is_long and axis.axis_name == "x" and axis.isDefault_majloc:
            axis.get_major_locator().set_params(nbins=5)  # labels do not touch


def percent(share: float) -> str:
    """Return a share as text, such as 90 % or 99.5 %."""
    return f"{100 * share:.3g} %"


def plain(name: object) -> str:
    """Return a name that matplotlib must not read as mathematics."""
    return str(name).replace("$", r"\$")


def checked_position(name: str, value: Any, n: int, what: str = "a whole number") -> int:
    """Return the argument `name`, one of n positions from 0 on."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (is_whole and 0 <= value < n):
        raise ValueError(f"{name} must be {what} from 0 to {n - 1}, got {value!r}")
    return int(value)


class OneTarget:
    """A model, rows that it is asked about, and which of its targets is meant.

    Without rows these are the training rows, each by the trees that did not draw it.
    """

    def __init__(self, model: Any, rows: Any, target: int | None) -> None:
        self.model, self.rows, self.n = model, rows, getattr(model, "n_outputs_", 1)
        if target is None and self.n > 1:
            choice = f"choose one by target=, from 0 to {self.n - 1}"
            raise ValueError(f"the model has {self.n} targets: {choice}")
        self.target = checked_position("target", 0 if target is None else target, self.n)

    @property
    def calibration(self) -> Any:
        """That of the target; None without one."""
        calibration = getattr(self.model, "calibration_", None)
        outputs = getattr(calibration, "outputs", None)
        return calibration if outputs is None else outputs[self.target]

    def ask(self, what: Literal["interval", "prediction"], *levels: Any, **options: Any) -> Array:
        """Return intervals, (n, 2) or of a list of levels (n, 2, k), or means, (n,)."""
        if self.rows is None:
            ask = getattr(self.model.oob_, what)
        else:
            method = {"interval": "predict_interval", "prediction": "predict"}[what]
            ask = partial(getattr(self.model, method), self.rows)
        values: Array = ask(*levels, output="numpy", **options)
        return values if self.n == 1 else values[:, self.target]

    def targets(self, y: ArrayLike) -> Any:
        """Return those of the rows, (n,), of a column for each target of the model."""
        values = np.asarray(y)
        if values.ndim == 1:
            return y  # a series has a name
        if values.shape[1:] != (self.n,):
            raise ValueError(f"y must have one column per target of the model, got {values.shape}")
        return values[:, self.target]


class OutOfBag(NamedTuple):
    """Training rows of one target, each predicted by the trees that did not draw it."""

    rows: NDArray[np.intp]  # (n,) their positions: those that have intervals
    y: Array  # (n,)
    prediction: Array  # (n,)
    intervals: Array  # (n, 2), or of a list of coverages (n, 2, k)
    n_training_rows: int

    def of_rows(self, name: str, values: Any) -> Any:
        """Return values of all training rows for those here; None and numbers stay."""
        if np.ndim(values) == 0:
            return values
        checks.check_one_for_each(name, np.shape(values)[:1], self.n_training_rows)
        column = np.asarray(values) if isinstance(values, list | tuple) else values
        return frame_of(column).rows(self.rows)


def out_of_bag_of(predictor: OneTarget, coverages: Coverages, kind: str | None) -> OutOfBag:
    """Return what a model says of its training rows; ValueError if it has no such intervals."""
    ends = predictor.ask("interval", coverages, kind=kind)
    with warnings.catch_warnings():  # of the rows without an interval, of which one is enough
        warnings.simplefilter("ignore", OutOfBagWarning)
        mean = predictor.ask("prediction")
    y = predictor.targets(predictor.model._fitted_forest().require_training_rows().y)
    numbers = np.column_stack([ends.reshape(len(y), -1), mean])
    rows = np.flatnonzero(~np.isnan(numbers).any(axis=1))
    if len(rows) == 0:
        raise ValueError("no training row has an interval out of bag; use more trees")
    return OutOfBag(rows, y[rows], mean[rows], ends[rows], len(y))


def target_label(y: Any, label: str | None) -> str:
    """Return the label of targets: the given one, the name of a series, or "target"."""
    name = getattr(y, "name", None)
    default = plain(name) if isinstance(name, str) and name else "target"
    return default if label is None else label


def feature_of(X: Any, feature: Any) -> tuple[Any, str | None]:
    """Return values of a feature, and its name if it is a column of X."""
    frame, names = frame_of(X), frame_of(X).names
    if isinstance(feature, str):
        if feature not in (names or ()):
            raise ValueError(f"feature must be a column of X, got {feature!r}")
        return np.asarray(X[feature]), plain(feature)
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
        return feature, None
    n = np.shape(X)[1] if names is None else len(names)
    j = checked_position("feature", feature, n, "a column")
    return frame.column(j), f"feature {j}" if names is None else plain(names[j])


def drawn_rows(
    n: int, subsample: int | None, random_state: int | np.random.RandomState | None
) -> NDArray[np.intp]:
    """Return positions of the rows to draw, ascending."""
    size = n if subsample is None else min(checks.check_whole_number("subsample", subsample), n)
    random = checks.checked_random_state(0 if random_state is None else random_state)
    return np.sort(random.choice(n, size, replace=False))


def svg_of(figure: Any) -> str:
    """Return a figure as the source of an image; it is the same on every machine."""
    # Letters as outlines, and marks with names that repeat.
    style = {"svg.hashsalt": "hdiforest", "svg.fonttype": "path"}
    with need("matplotlib").rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # of names
        text = io.BytesIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue()).decode()}"


class Display:
    """A picture of intervals or of a distribution, on axes that it keeps."""

    ax_: Any
    figure_: Any

    @classmethod
    def _require_matplotlib(cls) -> None:
        need("matplotlib", cls.__name__, "plots")

    def _draw_on(self, axes: Any, n: int = 1, **options: Any) -> Any:
        """Keep and return the given axes, or n of a new figure."""
        if axes is None:
            pyplot = need("matplotlib.pyplot", type(self).__name__, "plots")
            axes = pyplot.subplots(1, n, layout="constrained", **options)[1]
        each = np.ravel(axes)
        self.ax_, self.figure_ = each[0], each[0].figure
        for ax in each:
            ax.spines[["top", "right"]].set_visible(False)
            ax.spines[["bottom", "left"]].set_color(GREY)
            ax.tick_params(color=GREY)
        return axes

    def _label(self, xlabel: str, ylabel: str, **legend: Any) -> Self:
        """Label the axes, and draw the legend where something has a label."""
        self.ax_.set(xlabel=xlabel, ylabel=ylabel)
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend(fontsize="small", **legend)
        return self


class RowsDisplay(Display):
    """A picture of rows of one target, each with its interval."""

    _shows_predictions = False

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **options: Any) -> Self:
        """Draw what is already predicted."""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        coverage: float | Sequence[float] = 0.9,
        kind: str | None = None,
        target: int | None = None,
        **options: Any,
    ) -> Self:
        """Predict intervals of rows and draw them.

        Parameters
        ----------
        estimator : fitted estimator
            HDIForestRegressor, LeafModel or ForestSearchOOB, also as the last step of a Pipeline or
            the best of a search.
        X : (n, n_features) array or table
            Rows to draw.
        y : (n,) or (n, n_outputs) array
            Targets of the rows. The name of a series is the label of the axis.
        coverage : float or list of floats, default=0.9
            The coverage of the intervals. Only `IntervalDisplay` takes several levels.
        kind : str, optional
            The kind of interval. See `HDIForestRegressor.predict_interval`.
        target : int, optional
            Number of the target to draw, from 0 on. A model of several targets needs it.
        **options : optional
            Keywords of `from_predictions` and `plot`, such as `ax`. A `feature` may also be a
            column of X, by position or name.

        Returns
        -------
        display
            The picture.

        Raises
        ------
        ValueError
            If an argument is out of range, or the model has several targets and `target` is None.
        """
        cls._require_matplotlib()
        if "feature" in options:
            values, name = feature_of(X, options["feature"])
            options = {"feature_name": name, **options, "feature": values}
        predictor = OneTarget(*model_and_rows(estimator, X, "predict_interval"), target)
        ends = predictor.ask("interval", coverage, kind=kind)
        if cls._shows_predictions:
            options["prediction"] = predictor.ask("prediction")
        return cls.from_predictions(predictor.targets(y), ends, coverage=coverage, **options)

    @classmethod
    def from_out_of_bag(
        cls,
        estimator: Any,
        *,
        coverage: float | Sequence[float] = 0.9,
        kind: str | None = None,
        target: int | None = None,
        **options: Any,
    ) -> Self:
        """Draw the training rows, each predicted by the trees that did not draw it.

        Parameters
        ----------
        estimator : fitted estimator
            A model that has ``oob_`` and its training rows. See `from_estimator`.
        coverage : float or list of floats, default=0.9
            The coverage of the intervals. See `from_estimator`.
        kind : str, optional
            The kind of interval. See `HDIForestRegressor.predict_interval`.
        target : int, optional
            Number of the target to draw, from 0 on. A model of several targets needs it.
        **options : optional
            Keywords of `from_predictions`, with a value for each training row, and of `plot`.

        Returns
        -------
        display
            The picture.

        Raises
        ------
        ValueError
            If `hdiforest.OutOfBagPredictions.interval` or `from_estimator` refuses the arguments.

        Warns
        -----
        UserWarning
            If rows are left out because every tree has drawn them.
        """
        cls._require_matplotlib()
        predictor = OneTarget(model_in(estimator, "oob_"), None, target)
        training = out_of_bag_of(predictor, coverage, kind)
        for name in {"feature", "flag", "groups"} & options.keys():
            options[name] = training.of_rows(name, options[name])
        if cls._shows_predictions:
            options["prediction"] = training.prediction
        return cls.from_predictions(training.y, training.intervals, coverage=coverage, **options)
