"""What all displays share: colours, axes, the merging of styles, labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hdiforest._utils.checks import significant
from hdiforest._utils.optional import need

# Of the palette of Okabe and Ito, which the colour-blind can tell apart.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


ORANGE, SKY = "#E69F00", "#56B4E9"


INK, GREY, MIST = "#1d2733", "#6b7680", "#dfe3e8"


PALE_BLUE, PALE_VERMILLION = "#a6cde5", "#efb58c"


# A line of each has its own mark too.
CURVES = ((BLUE, "o"), (VERMILLION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"))


Style = Mapping[str, Any] | None


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


def styled(usual: Mapping[str, Any], given: Style, artist: str) -> dict[str, Any]:
    """Return keywords for an artist such as "lines.Line2D": those given, the usual for the rest."""
    module, _, name = artist.partition(".")
    kind = getattr(need(f"matplotlib.{module}"), name)
    named: dict[str, Any] = need("matplotlib.cbook").normalize_kwargs(given, kind)
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
