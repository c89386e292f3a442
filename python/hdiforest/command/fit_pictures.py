"""The pictures of a report on a fit, each as the address of an SVG image."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from hdiforest.calibration.base_record import Record
from hdiforest.command.fitting import Array, OutOfBagRecord
from hdiforest.command.report import CALIBRATED_LEVELS
from hdiforest.displays import CalibrationDisplay, IntervalDisplay, WidthDisplay
from hdiforest.displays.style import BLUE, VERMILLION, axes_for
from hdiforest.extras import need
from hdiforest.metrics import coverage_score

SHOWN = CALIBRATED_LEVELS.index(0.9)  # the level of pictures of one level


def calibration_picture(record: OutOfBagRecord, calibration: Record | None) -> str:
    """Nominal and realised coverage, before and after the calibration."""
    k = len(CALIBRATED_LEVELS)
    shares = [float(coverage_score(record.y, record.hdi[..., j])) for j in range(k)]
    curves = {"HDI, out of bag" if calibration is None else "before: HDI, out of bag": shares}
    if calibration is not None:
        audits = {level.coverage: level.audit for level in calibration.levels}
        curves["after: calibrated, audit"] = [
            np.nan if (audit := audits.get(level)) is None else audit.coverage
            for level in CALIBRATED_LEVELS
        ]
    display = CalibrationDisplay(
        coverages=np.array(CALIBRATED_LEVELS),
        realised={name: np.array(points) for name, points in curves.items()},
        n_rows=len(record.y) if calibration is None else min(len(record.y), calibration.n),
    )
    return _image(display.plot, (5, 4.6))


def widths_picture(record: OutOfBagRecord, calibration: Record | None) -> str:
    """Widths of the raw intervals of the training rows, and their mean after the calibration."""
    widths = record.hdi[:, 1, SHOWN] - record.hdi[:, 0, SHOWN]

    def draw(ax: Any) -> None:
        axes_for(draw, ax)
        ax.hist(widths, bins=40, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.axvline(widths.mean(), color="black", linewidth=1.2, linestyle="--",
                   label=f"mean, {widths.mean():.4g}")  # fmt: skip
        if calibration is not None and calibration.has(0.9):
            after = calibration.level(0.9).mean_width
            ax.axvline(
                after, color=VERMILLION, linewidth=1.6, label=f"mean, calibrated, {after:.4g}"
            )
        ax.set(xlabel="width of the 90 % HDI, in the unit of the target", ylabel="training rows")
        ax.legend(frameon=False, fontsize="small")

    return _image(draw, (5, 3.6))


def thirds_picture(record: OutOfBagRecord) -> str:
    """Coverage of the raw intervals by thirds of their width."""

    def draw(ax: Any) -> None:
        WidthDisplay.from_predictions(record.y, record.hdi[..., SHOWN], coverage=0.9, ax=ax)

    return _image(draw, (5, 3.6))


def rows_picture(record: OutOfBagRecord, prediction: Array) -> str:
    """Targets and raw intervals of some training rows."""

    def draw(ax: Any) -> None:
        IntervalDisplay.from_predictions(
            record.y,
            record.hdi[..., SHOWN],
            coverage=0.9,
            prediction=prediction,
            subsample=150,
            ax=ax,
        )

    return _image(draw, (5, 4.6))


def _image(draw: Callable[[Any], Any], size: tuple[float, float]) -> str:
    matplotlib = need("matplotlib")
    # Letters as outlines, and marks with names that repeat: the same on every machine.
    with matplotlib.rc_context({"svg.hashsalt": "hdiforest", "svg.fonttype": "path"}):
        figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        text = io.BytesIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(text.getvalue()).decode()}"
