"""quantile-forest over the trees of a scikit-learn forest, exact and by its default."""

from __future__ import annotations

import warnings

import numpy as np
from quantile_forest import RandomForestQuantileRegressor
from sklearn.ensemble import RandomForestRegressor

MOST_BYTES = 8e9  # of memory while it builds


def peers_of(
    forest: RandomForestRegressor, X: np.ndarray, y: np.ndarray
) -> tuple[dict[str, RandomForestQuantileRegressor], dict[str, str]]:
    """Both variants by name; for those that cannot be had, why not."""
    made, left_out = {}, {}
    for name, most_rows in (("peer_exact", None), ("peer_default", 1)):
        expected = 2 * leaf_store_bytes(forest, most_rows)  # it builds a list, then one array
        if expected > MOST_BYTES:
            left_out[name] = f"would take {expected / 1e9:.0f} GB"
            continue
        try:
            made[name] = _over_trees_of(forest, X, y, most_rows)
        except ValueError as error:
            left_out[name] = str(error).splitlines()[0]
    return made, left_out


def leaf_store_bytes(forest: RandomForestRegressor, most_rows: int | None = None) -> int:
    """Bytes of quantile-forest's (n_trees, nodes, n_outputs, rows) int64 array of leaves.

    It has as many nodes as the largest tree and as many in-bag rows as the fullest leaf; exact
    (`most_rows` None) or with at most so many rows to a leaf.
    """
    trees = [member.tree_ for member in forest.estimators_]
    nodes = max(tree.node_count for tree in trees)
    if most_rows is None:
        leaves = [tree.weighted_n_node_samples[tree.children_left == -1] for tree in trees]
        most_rows = int(max(rows.max() for rows in leaves))
    return 8 * len(trees) * nodes * forest.n_outputs_ * most_rows


def _over_trees_of(
    forest: RandomForestRegressor, X: np.ndarray, y: np.ndarray, most_rows: int | None
) -> RandomForestQuantileRegressor:
    """Fit quantile-forest's leaves without fitting the trees again.

    With the same random_state it would grow the same ones. A warm start with all trees already
    there keeps them, and says so in a warning.
    """
    settings = {name: getattr(forest, name) for name in ("n_estimators", "min_samples_leaf")}
    settings |= {"n_jobs": forest.n_jobs, "random_state": forest.random_state}
    peer = RandomForestQuantileRegressor(max_samples_leaf=most_rows, warm_start=True, **settings)
    peer.estimators_ = forest.estimators_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warm-start fitting without increasing", UserWarning)
        return peer.fit(X, y)
