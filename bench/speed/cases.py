"""The cases of the speed benchmark: which forests are fitted, and how many rows they score."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study as study  # of the scripts beside this one, too


@dataclass(frozen=True)
class Case:
    """One forest and the rows it scores."""

    name: str
    data: str = "friedman"  # one of SYNTHETIC, or of datasets.NAMES
    rows: int = 20_000  # training rows of synthetic data; real data: four fifths of the set
    leaf: int = 5  # min_samples_leaf
    trees: int = 100
    outputs: int = 1
    queries: int = 50_000
    peer_queries: int = 10_000  # for quantile-forest, whose time per row hardly depends on it
    small: bool = False  # measured without --full too


class Data(NamedTuple):
    """Rows of one case."""

    X: np.ndarray  # (n, n_features) float32, C order
    y: np.ndarray  # (n,) or (n, n_outputs) float64
    queries: np.ndarray  # (n_queries, n_features) float32, C order


CASES = (
    Case("friedman_20k_leaf1", leaf=1, small=True),
    Case("friedman_20k_leaf5", small=True),
    Case("friedman_20k_leaf50", leaf=50, small=True),
    Case("friedman_20k_leaf200", leaf=200),
    Case("friedman_20k_leaf1000", leaf=1000, peer_queries=2000),
    Case("friedman_20k_leaf5000", leaf=5000, peer_queries=1000),
    Case("friedman_200k_leaf1", rows=200_000, leaf=1, peer_queries=2000),
    Case("friedman_200k_leaf5", rows=200_000, peer_queries=2000),
    Case("friedman_200k_leaf50", rows=200_000, leaf=50, peer_queries=2000),
    Case("few_distinct", data="few_distinct", rows=8_000, small=True),  # 45 % of the queries differ
    Case("huge_leaf", data="huge_leaf", rows=4_000, queries=5_000, peer_queries=500),
    Case("huge_leaf_unlike", data="huge_leaf_unlike", rows=4_000, queries=5_000, peer_queries=500),
    Case("million", rows=1_000_000, trees=20, peer_queries=2000),
    Case("trees_500", trees=500, queries=20_000, peer_queries=5000),
    Case("outputs_10", trees=50, outputs=10, queries=20_000, peer_queries=2000),
    Case("outputs_10_leaf1", trees=50, outputs=10, leaf=1, queries=20_000, peer_queries=2000),
    Case("protein", data="protein", small=True),
    Case("online_news", data="online_news"),
    Case("communities", data="communities"),  # wide, with missing values
    Case("wine", data="wine", small=True),  # six distinct targets
)
MEMORY_CASES = tuple(
    case for case in CASES if case.name in ("friedman_20k_leaf5", "friedman_200k_leaf5", "million")
)

FIT_CASES = (
    Case("1k", rows=1_000, leaf=1, trees=300, small=True),
    Case("20k", leaf=1, trees=300),
    Case("100k", rows=100_000, leaf=1, trees=300),
)


def load(case: Case) -> Data:
    """Training rows and queries of a case, the same at every call."""
    if case.data in SYNTHETIC:
        make = SYNTHETIC[case.data]
        X, y = make(case.rows, seed=0)
        queries, _ = make(case.queries, seed=1)
        if case.outputs > 1:
            rng = np.random.default_rng(2)
            means = [datasets.friedman_mean(np.roll(X, k, axis=1)) for k in range(case.outputs)]
            y = np.stack(means, axis=1) + rng.normal(size=(case.rows, case.outputs))
        return Data(X, y, queries)
    whole = datasets.load(case.data)
    X, rest, y, _ = train_test_split(whole.X, whole.y, test_size=0.2, random_state=0)
    return Data(np.ascontiguousarray(X), y, _moved(rest, case.queries))


def _moved(rows: np.ndarray, n: int) -> np.ndarray:
    """Draw n rows with replacement, moved by a thousandth of each column's spread, as float32.

    Rows that are drawn twice would be scored once, which flatters the scorer.
    """
    rng = np.random.default_rng(0)
    drawn = rows[rng.integers(len(rows), size=n)]
    noise = 1e-3 * np.nanstd(rows, axis=0) * rng.normal(size=drawn.shape)
    return np.ascontiguousarray(drawn + noise, dtype=np.float32)


def few_distinct(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four skewed whole-numbered features, as codes and counts are; of 50,000 rows 45 % differ."""
    rng = np.random.default_rng(seed)
    X = np.minimum(rng.geometric(0.188, size=(n, 4)), 40).astype(np.float32)
    return X, X.sum(axis=1) + 4 * np.sin(X[:, 0]) + rng.normal(size=n)


def huge_leaf(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One feature, of which four fifths are equal, so that no tree can split them."""
    return _of_one_feature(n, np.full(n, 0.5), np.random.default_rng(seed))


def huge_leaf_unlike(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One feature, of which four fifths differ, but by less than scikit-learn splits."""
    rng = np.random.default_rng(seed)
    return _of_one_feature(n, 1e-5 + 5e-8 * rng.random(n), rng)


def _of_one_feature(
    n: int, close: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    x = np.where(rng.random(n) < 0.8, close, rng.random(n))
    return x[:, None].astype(np.float32), np.sin(6 * x) + rng.normal(size=n)


SYNTHETIC = {
    "friedman": datasets.friedman,
    "few_distinct": few_distinct,
    "huge_leaf": huge_leaf,
    "huge_leaf_unlike": huge_leaf_unlike,
}
