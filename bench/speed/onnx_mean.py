"""ONNX Runtime's mean of a scikit-learn forest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor

MOST_NODES = 5_000_000  # half a minute to convert


def onnx_means(
    forest: RandomForestRegressor, queries: np.ndarray, threads: tuple[int, ...]
) -> tuple[dict[int, Callable[[np.ndarray], np.ndarray]], str | None]:
    """Functions from float32 rows to means, by number of threads; or none, and why not.

    Raises
    ------
    AssertionError
        If the means are not the forest's, to float32.
    """
    n_nodes = sum(member.tree_.node_count for member in forest.estimators_)
    if n_nodes > MOST_NODES:
        return {}, f"would convert {n_nodes / 1e6:.0f} million nodes"
    if np.isnan(queries).any():
        return {}, "takes no missing values of scikit-learn's forests"
    converted = to_onnx(forest, queries[:1]).SerializeToString()
    means = {n: _mean(converted, n) for n in threads}
    for mean in means.values():
        expected = forest.predict(queries[:1000])
        np.testing.assert_allclose(
            mean(queries[:1000]).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4
        )
    return means, None


def _mean(converted: bytes, n_threads: int) -> Callable[[np.ndarray], np.ndarray]:
    options = SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    session = InferenceSession(converted, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def mean(rows: np.ndarray) -> np.ndarray:
        return session.run(None, {name: rows})[0]

    return mean
