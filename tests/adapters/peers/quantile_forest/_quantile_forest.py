"""Our two estimators, with what quantile-forest's tests call by name.

These are internals of quantile-forest that users do not need: the samples of each node, and which
rows a tree did not draw.
"""

import warnings

import numpy as np

from hdiforest.adapters import quantile_forest
from hdiforest.adapters.quantile_forest import leaf_limit, out_of_bag_mask, tree_mask


class Internals:
    def _oob_samples(self, X, indices=None, duplicates=None):
        """Leaves of rows in all trees, and which trees did not draw the row."""
        asked = tree_mask(self._samples, len(X), indices, duplicates)
        return self.apply(X), asked

    def _get_unsampled_indices(self, estimator, duplicates=None):
        """Rows that a tree did not draw."""
        if not self.bootstrap:
            warnings.warn("without bootstrap every row is in every bag", stacklevel=2)
            return np.empty(0, dtype=np.intp)
        left_out = out_of_bag_mask(self._samples, duplicates)
        return np.flatnonzero(left_out[:, self.estimators_.index(estimator)])

    def _get_y_train_leaves(self, X, y):
        """For each tree, the rows that each node keeps: counted from 1, 0 for no more."""
        leaf_limit(self.max_samples_leaf, len(X))
        forest, tables = self._samples.forest, []
        nodes = np.split(forest.leaf_nodes, np.cumsum(forest.n_leaves)[:-1])
        for _, of_rows, counts in self._samples.blocks(forest, n_threads=1):
            for leaves, kept in zip(of_rows.T, counts.T, strict=True):
                rows = np.repeat(np.arange(len(kept)), kept)
                rows = rows[np.argsort(leaves[rows], kind="stable")]
                place = np.arange(len(rows)) - np.searchsorted(leaves[rows], leaves[rows])
                tree = len(tables)
                n_nodes = self.estimators_[tree].tree_.node_count
                table = np.zeros((n_nodes, 1, place.max() + 1), dtype=np.intp)
                table[nodes[tree][leaves[rows]], 0, place] = rows + 1
                tables.append(table)
        return tables


class RandomForestQuantileRegressor(Internals, quantile_forest.RandomForestQuantileRegressor):
    pass


class ExtraTreesQuantileRegressor(Internals, quantile_forest.ExtraTreesQuantileRegressor):
    pass
