"""Calibrated regions: the shortest ones out of bag, widened until they cover what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import make_pipeline

from hdicore import LeafIndex
from hdicore.regions import Regions, offsets_of
from hdiforest._estimators.row_source import all_rows
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest._model.training_rows import draw_rows
from hdiforest._tables.frames import Output, require_library
from hdiforest._utils import Array
from hdiforest._utils.checks import one_share
from hdiforest._utils.meta_estimators import model_and_rows, model_and_steps
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.calibration._quantiles import conformal_quantile, warn_of_infinite
from hdiforest.calibration._split import refuse_training_rows
from hdiforest.regions._predict import (
    Shape,
    check_max_pieces,
    read_regions,
    regions_table,
    shape_of,
)

# What is compared; bandwidths and gaps in standard deviations of the distinct targets.
_LEVELS = (0.60, 0.68, 0.74, 0.80, 0.84, 0.88, 0.92)
_BANDWIDTHS = (0.05, 0.15)
_GAPS = (0.1, 0.3)
_MAX_ROWS = 2000


@dataclass(frozen=True, eq=False)
class RegionCalibration:
    """Calibrated regions of one coverage, as `calibrate_region` returns them.

    Parameters
    ----------
    coverage : float
        The share of targets to cover.
    method : {"oob", "split"}
        The rows of the conformal quantile: the training rows, out of bag, or new rows.
    shape : tuple
        Mass, largest number of pieces, gap and bandwidth of the regions that are widened. They were
        chosen out of bag: the widened regions are the shortest.
    q_hat : float
        Conformal quantile of the distances to the regions, in the unit of y.
    n : int
        Number of rows of the conformal quantile.
    mean_length : float
        Mean length of the calibrated regions of the rows. On a lattice each piece but one counts a
        step more.
    postprocess : object
        Range and lattice of the training targets.
    model : fitted estimator
        The model at the time of the calibration. Later changes of the model change nothing here.

    Notes
    -----
    Model files do not hold the calibration of regions. It can be pickled, with its model.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.regions import calibrate_region
    >>> X, y = make_regression(n_samples=300, n_features=4, noise=10, random_state=0)
    >>> model = HDIForestRegressor(calibration=False, random_state=0).fit(X[:200], y[:200])
    >>> calibrated = calibrate_region(model, X[200:], y[200:], coverage=0.8)
    >>> calibrated.method, calibrated.n, len(calibrated.predict(X[:5] + 0.1))
    ('split', 100, 5)
    """

    coverage: float
    method: str
    shape: Shape
    q_hat: float
    n: int
    mean_length: float
    postprocess: PostProcess = field(repr=False)
    model: Any = field(repr=False)

    def predict(self, X: ArrayLike, *, output: Output = "numpy") -> Any:
        """Return calibrated regions.

        Parameters
        ----------
        X : (n, n_features) array or table
            The rows to predict.
        output : {"numpy", "pandas", "polars", "pyarrow"}, default="numpy"
            The type of the result: regions, or a table of the named library with the column
            ``region``, of lists.

        Returns
        -------
        hdicore.regions.Regions, or table
            Regions in the range and on the lattice of the training targets.
        """
        if output != "numpy":
            require_library(output)
        estimator, rows = model_and_rows(self.model, X, "predict_cdf")
        rows = estimator._source(rows)
        engine, block, n_threads = all_rows(rows)
        ask = partial(engine.regions, block, n_threads=n_threads)
        read = read_regions(ask, engine.index, self.shape, self.postprocess.lattice)
        regions = self._widened(read)
        return regions if output == "numpy" else regions_table(rows.fitted, [regions], output, X)

    def _of_rows(
        self, ask: Callable[..., Any], index: LeafIndex, y: Array, weights: Array | None = None
    ) -> RegionCalibration:
        """Return the same with the quantile that rows need, whose regions `ask` reads.

        Rows may have positive weights, (n,): then a share of these is held. The values within a
        distance are nested sets, so that their conformal quantile is valid as those of intervals.
        Warns of infinite regions.
        """
        regions = read_regions(ask, index, self.shape, self.postprocess.lattice)
        scores = regions.distance(y)
        if (n_empty := int(np.isnan(scores).sum())) > 0:
            raise ValueError(f"{n_empty} of the {len(y)} rows have no distribution")
        q_hat = float(conformal_quantile(scores, self.coverage, weights=weights))
        warn_of_infinite([self.coverage] if q_hat == np.inf else [], len(y))
        calibration, lattice = replace(self, q_hat=q_hat, n=len(y)), self.postprocess.lattice
        widened = calibration._widened(regions)
        step = 0.0 if lattice is None else lattice.step
        lengths = widened.length + step * (widened.n_pieces - 1)
        return replace(calibration, mean_length=float(np.average(lengths, weights=weights)))

    def _widened(self, regions: Regions) -> Regions:
        """Return the regions padded, in the range and on the lattice where these are known."""
        regions, of_all = regions.padded(self.q_hat), self.postprocess
        row = np.repeat(np.arange(len(regions)), regions.n_pieces)
        is_inside = (regions.upper >= of_all.low) & (regions.lower <= of_all.high)
        kept = is_inside | (np.bincount(row[is_inside], minlength=len(regions)) == 0)[row]
        ends = np.stack([regions.lower[kept], regions.upper[kept]], axis=1)
        lower, upper = of_all.engine.widen(ends[..., np.newaxis], [0.0])[..., 0].T.copy()
        return Regions(offsets_of(np.bincount(row[kept], minlength=len(regions))), lower, upper)


def calibrate_region(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    coverage: float = 0.9,
    max_pieces: int = 2,
) -> RegionCalibration:
    """Choose and widen the regions of `predict_region` so that they cover a share of the targets.

    Parameters
    ----------
    model : fitted estimator
        An `HDIForestRegressor` of one target with its training rows, or a `ForestSearchOOB`, also
        as the last step of a Pipeline or the best of a search. It stays as it is.
    X : (n, n_features) array or table, optional
        Rows that took no part in the fit. With them split conformal prediction covers at least
        `coverage` of exchangeable rows. Without them the conformal quantile is of at most 2,000
        training rows, each out of bag, with their sample_weight, and has no guarantee. Every call
        uses the same training rows.
    y : (n,) array, optional
        Targets of the rows X.
    coverage : float, default=0.9
        The share of targets to cover, above 0 and below 1.
    max_pieces : int, default=2
        Largest number of pieces of a region, from 1 to 8.

    Returns
    -------
    RegionCalibration
        ``predict`` gives calibrated regions. Mass, gap and bandwidth are the ones with the shortest
        calibrated regions out of bag. ``mean_length`` is their mean length. If it is not less than
        the mean width in ``model.calibration_``, intervals do as well.

    Raises
    ------
    ValueError
        If an argument is refused, or there are no rows out of bag and no X.

    Notes
    -----
    Calibrated regions are shorter than intervals if modes are several noise widths apart given the
    features, and rarely otherwise (:doc:`/distributions`).

    Examples
    --------
    >>> import numpy as np
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.regions import calibrate_region
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> y = np.random.default_rng(0).choice([-5, 5], 400) + 0.1 * np.sin(40 * X.ravel())
    >>> model = HDIForestRegressor(random_state=0).fit(X, y)
    >>> calibrated = calibrate_region(model)
    >>> calibrated.mean_length < model.calibration_.level(0.9).mean_width
    True
    """
    level = one_share("coverage", coverage)
    check_max_pieces(max_pieces)
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together, or neither")
    estimator, steps = model_and_steps(model, "oob_", "model")
    kept = make_pipeline(*steps, estimator) if steps else estimator
    fitted = estimator._fitted_forest()
    if fitted.n_outputs > 1:
        raise ValueError(f"calibrate_region needs a model of one target, got {fitted.n_outputs}")
    source, index = OutOfBagIntervals(fitted, estimator._n_threads()), fitted.scorer.index
    if X is None:
        new_rows = "call calibrate_region(model, X, y) with rows that took no part in the fit"
        source.require_rows("calibrate_region", new_rows)
    if X is not None:
        given = model_and_rows(kept, X, "oob_")[1]
        rows, targets = estimator._checked_calibration_rows(given, y, fitted)
        refuse_training_rows(rows, targets, source.rows.X, source.rows.y)
    postprocess = PostProcess.from_targets(source.rows.weighted_targets)
    shape = shape_of(index, level, max_pieces)
    best = RegionCalibration(level, "split", shape, 0.0, 0, np.nan, postprocess, kept)
    if source.shortage is None:
        drawn = draw_rows(source.usable, _MAX_ROWS, 0)
        ask, y_drawn = partial(source.query_raw, LeafIndex.regions, drawn), source.rows.y[drawn]
        bandwidths = _BANDWIDTHS if postprocess.lattice is None else (0.0,)
        weights = source.weights_of(drawn)
        candidates = []
        for mass, gap, bandwidth in product(_LEVELS, _GAPS, bandwidths):
            shape = shape_of(index, mass, max_pieces, gap, bandwidth)
            compared = replace(best, method="oob", shape=shape)
            candidates.append(compared._of_rows(ask, index, y_drawn, weights))
        best = min(candidates, key=lambda each: each.mean_length)
    if X is None:
        return best
    ask = partial(fitted.scorer.regions, rows, n_threads=estimator._n_threads())
    return replace(best, method="split")._of_rows(ask, index, targets)
