"""The pictures of the report."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comparing import REFERENCE, against_reference
from frames import at, coverage_of_strata
from systems import SYSTEMS
from systems.ours import CALIBRATED, COVERAGES, EARLIER, UNCALIBRATED


def realised_coverage(scores: pd.DataFrame) -> Figure:
    """Draw realised over nominal coverage of every data set, before and after calibration."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    names = list(scores["set"].cat.categories)
    colours = matplotlib.colormaps["tab20"](np.linspace(0, 1, len(names)))
    for axes, system in zip(panels, (UNCALIBRATED, CALIBRATED), strict=True):
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":")
        rows = scores[scores["system"] == system]
        for name, colour in zip(names, colours, strict=True):
            mean = rows[rows["set"] == name].groupby("nominal")["coverage"].mean()
            axes.plot(mean.index, mean, "o-", color=colour, linewidth=1, markersize=4, label=name)
        axes.set(title=system, xlabel="nominal coverage", xlim=(0.45, 1.01), ylim=(0, 1.02))
        axes.set_xticks(COVERAGES, [f"{level:g}" for level in COVERAGES], rotation=60)
    panels[0].set_ylabel("realised coverage, mean of the splits")
    _legend_beside(figure, panels[1], ncols=2)
    return figure


def widths(scores: pd.DataFrame, nominals: tuple[float, ...]) -> Figure:
    """Draw every system's mean width over that of the reference, a row for each data set."""
    names = list(scores["set"].cat.categories)
    figure = Figure(figsize=(11, 1.5 + 0.13 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(nominals), sharey=True)
    for axes, nominal in zip(panels, nominals, strict=True):
        rows = at(scores, nominal)
        for system, style in _styles(scores).items():
            ratio = against_reference(rows, system, "width")
            heights = [names.index(name) for name in ratio.index]
            axes.plot(ratio, heights, linestyle="", label=system, **style)
        axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set(
            xscale="log", xlabel=f"mean width / that of {REFERENCE}", title=f"nominal {nominal:.2f}"
        )
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
        axes.minorticks_off()
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    _legend_beside(figure, panels[0])
    return figure


def by_width(scores: pd.DataFrame, nominals: tuple[float, ...]) -> Figure:
    """Draw the coverage of the fifths from narrow to wide, means over the data sets."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    panels = figure.subplots(1, len(nominals))
    for axes, nominal in zip(panels, nominals, strict=True):
        strata = coverage_of_strata(at(scores, nominal), ["system", "set"])
        fifths = strata.groupby("system", observed=True).mean().drop(columns=0)
        for system, style in _styles(scores).items():
            if system in fifths.index:
                axes.plot(fifths.columns, fifths.loc[system], linewidth=1, label=system, **style)
        axes.axhline(nominal, color="black", linewidth=0.8, linestyle=":")
        axes.set(xlabel="fifth by width, from narrow to wide", title=f"nominal {nominal:.2f}")
        axes.set_xticks(list(fifths.columns))
    panels[0].set_ylabel("coverage, mean over the data sets")
    _legend_beside(figure, panels[0])
    return figure


def _styles(scores: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return colour and marker of each system that has results: circles are ours."""
    present = set(scores["system"])
    colours = matplotlib.colormaps["tab20"].colors
    return {
        name: {"color": colours[i % 20], "marker": "o" if system.is_ours else "x", "markersize": 6}
        for i, (name, system) in enumerate(SYSTEMS.items())
        if name in present and name != EARLIER
    }


def _legend_beside(figure: Figure, axes: Axes, ncols: int = 1) -> None:
    handles, labels = axes.get_legend_handles_labels()
    place = "outside right upper"
    figure.legend(handles, labels, loc=place, ncols=ncols, frameon=False, fontsize=8)
