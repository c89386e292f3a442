"""quantile-forest's statistics of one sample, each read from an index of one leaf."""

import numpy as np

from hdicore import LeafIndex
from hdiforest.adapters.quantile_forest import ranks


def calc_mean(inputs):
    return calc_weighted_mean(inputs, np.ones_like(inputs))


def calc_weighted_mean(inputs, weights):
    return _read(LeafIndex.mean, inputs, weights)


def calc_quantile(inputs, quantiles, interpolation=b"linear", issorted=False):
    ones = np.ones_like(inputs)
    return calc_weighted_quantile(inputs, ones, quantiles, interpolation, issorted)


def calc_weighted_quantile(inputs, weights, quantiles, interpolation=b"linear", issorted=False):
    """Quantiles where a value of weight w counts as w values; [] if there are none."""
    levels, method = list(quantiles), str(interpolation, "ascii")
    if not np.any(weights):
        return []
    return _read(LeafIndex.quantiles, _ascending(inputs, issorted), weights, levels, method)


def calc_quantile_rank(inputs, score, kind=b"rank", issorted=False):
    """Share of the sample below a score, or -1 if there is no sample."""
    point, kind = [float(score)], str(kind, "ascii")
    if len(inputs) == 0:
        return -1.0
    ones = np.ones_like(inputs)
    return _read(ranks, _ascending(inputs, issorted), ones, point, kind, 1)


def _read(query, values, counts, *arguments):
    index = LeafIndex(np.zeros((len(values), 1)), values, counts=np.reshape(counts, (-1, 1)))
    return query(index, [[0]], *arguments)[0].tolist()


def _ascending(values, issorted):
    # hdicore sorts. A sample said to be sorted is made so: a value below an earlier one is raised.
    return np.maximum.accumulate(values) if issorted else values
