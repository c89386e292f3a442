"""Regions of several pieces: how they are read, and how those of a coverage are widened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hdicore import LeafIndex
from hdicore.regions import Regions, offsets_of
from hdiforest._utils import Array
from hdiforest._utils.checks import check_size, check_whole_number, one_share
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._quantiles import conformal_quantile, warn_of_infinite

BANDWIDTH, GAP = 0.1, 0.1  # by default, in standard deviations of the distinct targets
_N_BINS = 100  # of the range of the targets, where distributions are smoothed
_MAX_PIECES = 8


def check_max_pieces(max_pieces: int) -> None:
    """Raise ValueError unless it is a number of pieces that regions may have."""
    if check_whole_number("max_pieces", max_pieces, 1) > _MAX_PIECES:
        raise ValueError(f"max_pieces must be at most {_MAX_PIECES}, got {max_pieces}")


class Shape(NamedTuple):
    """What regions are: their mass, at most how many pieces, and how they are read."""

    level: float
    max_pieces: int
    gap: float  # what another piece costs, in the unit of y
    bandwidth: float  # of the Gaussian that smooths distributions, in the unit of y; 0: none


def shape_of(
    index: LeafIndex,
    level: float,
    max_pieces: int,
    gap: float = GAP,
    bandwidth: float = BANDWIDTH,
    output: int = 0,
) -> Shape:
    """Return a shape whose gap and bandwidth are in standard deviations of distinct targets."""
    unit = float(index.atoms(output).std()) or 1.0
    return Shape(level, max_pieces, gap * unit, bandwidth * unit)


def read_regions(
    ask: Callable[..., Any],
    index: LeafIndex,
    shape: Shape,
    lattice: Lattice | None,
    output: int = 0,
) -> Regions:
    """Return the regions of one output; `ask` is `LeafIndex.regions` of some rows.

    On a lattice a piece is as long as it has points, in steps, and nothing is smoothed.
    """
    atoms, grid, gap = index.atoms(output), None, shape.gap
    if lattice is not None:
        gap += lattice.step
    elif shape.bandwidth > 0 and len(atoms) > 1:
        grid = (float(atoms[0]), float(atoms[-1]), _N_BINS, shape.bandwidth)
    offsets, ends, bounds = ask(shape.level, shape.max_pieces, gap, grid=grid)
    counts = np.diff(offsets).reshape(-1, index.n_outputs)
    own = np.repeat(np.tile(np.arange(index.n_outputs), len(counts)), counts.ravel()) == output
    lower, upper = np.ascontiguousarray(ends[own].T)
    bound = bounds.reshape(counts.shape)[:, output]
    return Regions(offsets_of(counts[:, output]), lower, upper, bound)


@dataclass(frozen=True)
class RegionCalibration:
    """How regions of one coverage were calibrated; see `HDIForestRegressor.calibrate_region`.

    Parameters
    ----------
    coverage, method : float, and {"oob", "split"}
        The share of targets to cover, and whose rows the conformal quantile is of.
    shape : tuple
        Mass, most pieces, gap and bandwidth of the regions that are widened: of those compared out
        of bag the shortest, once widened.
    q_hat, n, mean_length : float, int and float
        Conformal quantile of the distances to them, of how many rows, and the mean length of the
        calibrated regions of these rows; on a lattice each piece but one counts a step more.
    postprocess : object
        Range and lattice of the training targets.
    """

    coverage: float
    method: str
    shape: Shape
    q_hat: float
    n: int
    mean_length: float
    postprocess: PostProcess

    def __post_init__(self) -> None:
        """Raise ValueError if a value cannot be, as in a file."""
        one_share("coverage", self.coverage)
        one_share("level", self.shape.level)
        check_max_pieces(self.shape.max_pieces)
        check_size("gap", self.shape.gap)
        check_size("bandwidth", self.shape.bandwidth)
        if np.isnan(self.q_hat):
            raise ValueError("q_hat must be a number, got nan")

    def widen(self, regions: Regions) -> Regions:
        """Return calibrated regions, whose ends targets can have."""
        return _finished(regions.padded(self.q_hat), self.postprocess)


def calibrate_region(
    regions: Regions,
    y: Array,
    coverage: float,
    method: str,
    shape: Shape,
    postprocess: PostProcess,
    weights: Array | None = None,
) -> RegionCalibration:
    """Widen regions until they hold a share of the targets y, by the distance to them.

    Rows may have positive weights, (n,): then a share of these is held.

    The values within a distance are nested sets, so that their conformal quantile is valid as those
    of intervals. Warns of infinite regions.
    """
    scores = regions.distance(y)
    if (n_empty := int(np.isnan(scores).sum())) > 0:
        raise ValueError(f"{n_empty} of the {len(y)} rows have no distribution")
    q_hat = float(conformal_quantile(scores, coverage, weights=weights))
    warn_of_infinite([coverage] if q_hat == np.inf else [], len(y))
    found = RegionCalibration(coverage, method, shape, q_hat, len(y), np.nan, postprocess)
    widened, step = found.widen(regions), 0.0 if (own := postprocess.lattice) is None else own.step
    lengths = widened.length + step * (widened.n_pieces - 1)
    return replace(found, mean_length=float(np.average(lengths, weights=weights)))


def _finished(regions: Regions, postprocess: PostProcess) -> Regions:
    """Return regions in the range and on the lattice of the targets, where these are known."""
    row = np.repeat(np.arange(len(regions)), regions.n_pieces)
    is_inside = (regions.upper >= postprocess.low) & (regions.lower <= postprocess.high)
    kept = is_inside | (np.bincount(row[is_inside], minlength=len(regions)) == 0)[row]
    ends = postprocess.apply(regions.lower[kept], regions.upper[kept])
    return Regions(offsets_of(np.bincount(row[kept], minlength=len(regions))), *ends)
