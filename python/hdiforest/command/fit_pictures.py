"""The pictures of a report on a fit, each as the address of an SVG image."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.predict import chosen_kind_and_levels
from hdiforest._utils.checks import printable, significant
from hdiforest._utils.optional import need
from hdiforest.command.prediction import levels_to_show
from hdiforest.displays import CalibrationDisplay, IntervalDisplay, WidthDisplay
from hdiforest.displays._common import BLUE, axes_for, out_of_bag_of, percent, plain, plain_numbers


def pictures(model: HDIForestRegressor, target: str) -> Iterator[tuple[str, str]]:
    """Yield captions and pictures of the training rows, each row by trees that did not draw it.

    The intervals are those that `hdiforest score` writes. If there are none out of bag, the only
    picture is that of coverages.

    Parameters
    ----------
    model : HDIForestRegressor
        Just fitted, with its training rows, some of which are out of bag.
    target : str
        Column of targets.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        yield from _pictures(model, plain(printable(target)))


def _pictures(model: HDIForestRegressor, target: str) -> Iterator[tuple[str, str]]:
    fitted = model._require_fitted()
    kind, (level,) = chosen_kind_and_levels(fitted, None, None, lambda: 1)
    after = "" if kind == "hdi" else ", before and after the calibration"
    yield (
        f"Nominal and realised coverage{after}. In the grey range lie 95 % of the shares that "
        "exact intervals give by chance.",
        _image(
            lambda ax: CalibrationDisplay.from_out_of_bag(
                model, coverages=levels_to_show(model), ax=ax
            ),
            (5, 4.6),
        ),
    )
    name = f"{percent(level)} {'HDI' if kind == 'hdi' else 'calibrated interval'}"
    try:
        found = out_of_bag_of(model, [level], kind, None)
    except ValueError:
        return
    widths = found.intervals[:, 1, 0] - found.intervals[:, 0, 0]
    shown: dict[str, Any] = {"coverage": level, "target_name": target}

    def draw_rows(ax: Any) -> None:
        IntervalDisplay.from_predictions(
            found.y, found.intervals, prediction=found.prediction, subsample=150, ax=ax, **shown
        )

    def draw_widths(ax: Any) -> None:
        axes_for(draw_widths, ax)
        ax.hist(widths, bins=40, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.axvline(widths.mean(), color="black", linewidth=1.2, linestyle="--",
                   label=f"mean, {significant(widths.mean())}")  # fmt: skip
        ax.set(xlabel=f"width of the {name}, {target}", ylabel="training rows")
        plain_numbers(ax.xaxis)
        plain_numbers(ax.yaxis)
        ax.legend(loc="upper right", frameon=False, fontsize="small")

    def draw_thirds(ax: Any) -> None:
        WidthDisplay.from_predictions(found.y, found.intervals[..., 0], ax=ax, **shown)

    yield (
        f"Training rows sorted by their prediction, with their {name} out of bag; 150 of them, "
        "chosen at random, if there are more.",
        _image(draw_rows, (6, 4.6)),
    )
    yield f"Widths of the {name} of the training rows.", _image(draw_widths, (5, 3.6))
    yield f"Coverage of the {name} by its width.", _image(draw_thirds, (5, 3.6))


def _image(draw: Callable[[Any], Any], size: tuple[float, float]) -> str:
    matplotlib = need("matplotlib")
    # Letters as outlines, and marks with names that repeat: the same on every machine.
    with matplotlib.rc_context({"svg.hashsalt": "hdiforest", "svg.fonttype": "path"}):
        figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        text = io.BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # of the target
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue()).decode()}"
