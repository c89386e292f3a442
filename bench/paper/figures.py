"""The paper's two figures, drawn from our own results."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import hdicore
from published import SYSTEMS, TABLE_2

_COLOURS = dict(
    zip(
        SYSTEMS,
        ("#d1495b", "#1b6ca8", "#8a8d91", "#66a182", "#edae49", "#7b5ea7"),
        strict=True,
    )
)
_LEVEL = 0.5
# Equally likely points that stand for the distribution.
_N_POINTS = 100_000


def gamma_intervals() -> tuple[np.ndarray, np.ndarray]:
    """Return the 50 % highest-density and equal-tailed interval of Gamma(shape 2, scale 1)."""
    points = stats.gamma(2).ppf((np.arange(_N_POINTS) + 0.5) / _N_POINTS)
    tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    equal_tailed = np.quantile(points, tails, method="inverted_cdf")
    return hdicore.weighted_hdi(points, coverage=_LEVEL), equal_tailed


def figure_1() -> Figure:
    """Draw both intervals of the Gamma distribution, as the paper's Figure 1 does."""
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    z = np.linspace(0, 8, 400)
    density = stats.gamma(2).pdf
    axes.plot(z, density(z), color="black", linewidth=1)
    names = ("highest density", "equal-tailed")
    colours = (_COLOURS["HDI-Forest"], _COLOURS["QRF"])
    for (lower, upper), name, colour, height in zip(
        gamma_intervals(), names, colours, (-0.02, -0.045), strict=True
    ):
        label = f"{name}: [{lower:.4f}, {upper:.4f}], width {upper - lower:.4f}"
        axes.plot([lower, upper], [height] * 2, color=colour, linewidth=3, label=label)
        for end in (lower, upper):
            axes.plot([end] * 2, [height, density(end)], color=colour, linewidth=0.8)
    axes.set(xlabel="y", ylabel="density", title="50 % intervals of Gamma(shape 2, scale 1)")
    axes.legend(frameon=False)
    return figure


def figure_2(curves: pd.DataFrame) -> Figure:
    """Draw MPIW over PICP for every data set, as the paper's Figure 2 does for three systems."""
    names = list(curves["task"].cat.categories)
    figure = Figure(figsize=(13, 3 * -(-len(names) // 4)), layout="constrained")
    grid = figure.subplots(-(-len(names) // 4), 4).ravel()
    for axes, name in zip(grid, names, strict=False):
        _draw_curves(axes, curves[curves["task"] == name])
        axes.set_title(name)
    for axes in grid[len(names) :]:
        axes.axis("off")
    handles, labels = grid[0].get_legend_handles_labels()
    grid[-1].legend(handles, labels, loc="center", frameon=False)
    figure.supxlabel("PICP on the test part")
    figure.supylabel("MPIW, in standard deviations of the target")
    return figure


def _draw_curves(axes: Axes, curves: pd.DataFrame) -> None:
    for system, colour in _COLOURS.items():
        mean = (
            curves[curves["system"] == system]
            .groupby("level", observed=True)[["picp", "mpiw"]]
            .mean()
        )
        axes.plot(mean["picp"], mean["mpiw"], ".-", color=colour, linewidth=1, label=system)
    published = TABLE_2.get(str(curves["task"].iloc[0])) if len(curves) else None
    if published is not None:
        axes.scatter(
            published.picp, published.mpiw, marker="x", c=list(_COLOURS.values()), label="the paper"
        )
    reached = curves[curves["picp"].between(0.7, 0.995)]["mpiw"]
    axes.set_xlim(0.7, 1.005)
    if len(reached):
        axes.set_ylim(0, 1.1 * reached.quantile(0.98))
