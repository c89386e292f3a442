"""What the commands print: aligned columns of plain text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hdiforest.metrics import coverage_score, mean_width_score


def printable(text: str) -> str:
    """Escape what a terminal would not print as it stands, such as control characters."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Lay out rows of cells in columns; the first `left` columns lean left, the others right.

    Cells are escaped, see `printable`.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def comparison(
    y: NDArray[np.float64],
    hdi: NDArray[np.float64],
    equal_tailed: NDArray[np.float64],
    levels: Sequence[float],
) -> str:
    """Coverage and mean width of both kinds of (n, 2, k) intervals, a line per level."""
    kinds = ("HDI", "equal-tailed")
    header = [f"{kind} {what}" for kind in kinds for what in ("inside", "mean width")]
    rows = [["coverage", *header, "HDI narrower by"]]
    for j, level in enumerate(levels):
        cells = [f"{level:g}"]
        widths = []
        for interval in (hdi[..., j], equal_tailed[..., j]):
            widths.append(float(mean_width_score(interval)))
            cells += [f"{coverage_score(y, interval):.3f}", f"{widths[-1]:.4g}"]
        saved = 1 - widths[0] / widths[1] if widths[1] > 0 else 0.0
        rows.append([*cells, f"{saved:.1%}"])
    return aligned(rows)
