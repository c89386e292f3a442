"""Highest-density regions, as they are read from models of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hdicore import LeafIndex, Scorer
from hdicore.regions import Regions, offsets_of
from hdiforest._estimators.row_source import all_rows, table_of
from hdiforest._tables.frames import Output, frame_of, require_library
from hdiforest._utils.checks import check_size, check_whole_number, one_share
from hdiforest._utils.hints import warn_caller
from hdiforest._utils.meta_estimators import model_and_rows
from hdiforest._utils.optional import pa
from hdiforest.calibration._postprocess import Lattice, lattice_of_values

BANDWIDTH, GAP = 0.1, 0.1  # by default, in standard deviations of the distinct targets
_N_BINS = 100  # of the range of the targets, where distributions are smoothed
_MAX_PIECES = 8


def predict_region(
    model: Any,
    X: ArrayLike,
    coverage: float = 0.9,
    *,
    max_pieces: int = 2,
    gap: float = GAP,
    bandwidth: float | None = None,
    output: Output = "numpy",
) -> Any:
    """Return highest-density regions: unions of a few intervals, if they are shorter than one.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor`, a `LeafModel` or a `ForestSearchOOB`, also as the last step of a
        Pipeline or the best of a search.
    X : (n, n_features) array or table
        The rows to predict.
    coverage : float, default=0.9
        The share, above 0 and below 1, of the forest's distribution to hold. The regions are not
        calibrated. `calibrate_region` makes calibrated ones.
    max_pieces : int, default=2
        Largest number of intervals in a region, from 1 to 8.
    gap : float, default=0.1
        The length that another piece must save, in standard deviations of the distinct targets.
    bandwidth : float, optional
        Standard deviation of the Gaussian that smooths the distributions on 100 bins, in standard
        deviations of the distinct targets. The default is 0.1. With 0 nothing is smoothed, and most
        pieces are noise. Targets on a lattice, such as whole numbers, are never smoothed. On a
        lattice the length of a piece is its number of points, in steps.
    output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
        The type of the result: regions, or a table of the named library with the column ``region``,
        of lists.

    Returns
    -------
    hdicore.regions.Regions, or table
        A region for each row. Several outputs give a tuple with the regions of each output.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The regions have the least length plus gaps. They are found by dynamic programming at a price
    for mass (Hyndman 1996, for any number of pieces). O(pieces * (atoms + bins)) for each row and
    price that is tried.

    Examples
    --------
    >>> import numpy as np
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.regions import predict_region
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> y = np.random.default_rng(0).choice([-5, 5], 400) + 0.1 * np.sin(40 * X.ravel())
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X, y)
    >>> predict_region(model, [[0.5]]).n_pieces
    array([2])
    """
    level = one_share("coverage", coverage)
    sizes = gap, BANDWIDTH if bandwidth is None else bandwidth
    check_max_pieces(max_pieces)
    for name, size in zip(("gap", "bandwidth"), sizes, strict=True):
        check_size(name, size)
    if output != "numpy":
        require_library(output)
    estimator, rows = model_and_rows(model, X, "predict_cdf", "model")
    source = estimator._source(rows)
    engine, block, n_threads = all_rows(source)
    index = engine.index if isinstance(engine, Scorer) else engine
    n_rows, regions = estimator.n_training_rows_, []
    for of_output in range(index.n_outputs):
        shape = shape_of(index, level, max_pieces, *sizes, of_output)
        lattice = n_rows and lattice_of_values(index.atoms(of_output), n_rows)
        if lattice and bandwidth:
            warn_caller(
                f"targets lie on a lattice of step {lattice.step:g}: bandwidth is not used, "
                "and pieces count their points"
            )
        ask = partial(engine.regions, block, n_threads=n_threads)
        regions.append(read_regions(ask, index, shape, lattice or None, of_output))
    if output != "numpy":
        return regions_table(source.fitted, regions, output, X)
    return regions[0] if index.scalar_output else tuple(regions)


def check_max_pieces(max_pieces: int) -> None:
    """Raise ValueError unless regions may have the number of pieces."""
    if check_whole_number("max_pieces", max_pieces, 1) > _MAX_PIECES:
        raise ValueError(f"max_pieces must be at most {_MAX_PIECES}, got {max_pieces}")


class Shape(NamedTuple):
    """The shape of regions: their mass, largest number of pieces, gap and bandwidth."""

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
    mask = np.repeat(np.tile(np.arange(index.n_outputs), len(counts)), counts.ravel()) == output
    lower, upper = np.ascontiguousarray(ends[mask].T)
    bound = bounds.reshape(counts.shape)[:, output]
    return Regions(offsets_of(counts[:, output]), lower, upper, bound)


def regions_table(fitted: Any, regions: list[Regions], library: Output, X: ArrayLike) -> Any:
    """Return the regions of each output for the rows X, as a table."""
    columns = [_list_column(each, library) for each in regions]
    return table_of(fitted, library, "region", columns, frame_of(X).index)


def _list_column(regions: Regions, library: str) -> Any:
    """Return the pieces of each row as a list, of structs where a library has them."""
    if library == "pandas":
        return list(regions)
    ends = pa.StructArray.from_arrays([regions.lower, regions.upper], ["lower", "upper"])
    return pa.LargeListArray.from_arrays(regions.offsets, ends)
