"""quantile-forest's statistics of one sample, each read from an index of one leaf."""

import numpy as np

from hdicore import LeafIndex


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
    return _read(rank, _ascending(inputs, issorted), np.ones_like(inputs), point, kind)


def rank(index, leaves, y, kind):
    """Quantile ranks of y in the distributions of rows, by any of the four definitions."""
    kinds = ("rank", "weak", "strict", "mean")
    if kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r}")
    weak, strict = (index.cdf(leaves, y, inclusive=inclusive) for inclusive in (True, False))
    if kind in ("weak", "strict"):
        return weak if kind == "weak" else strict
    mean = (weak + strict) / 2
    if kind == "mean":
        return mean
    # The mean rank of tied values, counted from 1, lies half an observation higher.
    half = 0.5 / np.maximum(index.n_samples(leaves), 1)
    return mean + ((weak > strict).T * half).T


def _read(query, values, counts, *arguments):
    index = LeafIndex(np.zeros((len(values), 1)), values, counts=np.reshape(counts, (-1, 1)))
    return query(index, [[0]], *arguments)[0].tolist()


def _ascending(values, issorted):
    # hdicore sorts. A sample said to be sorted is made so: a value below an earlier one is raised.
    return np.maximum.accumulate(values) if issorted else values
