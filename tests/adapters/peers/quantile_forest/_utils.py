"""Helpers of quantile-forest that its tests call by name; plain numpy."""

import numpy as np


def generate_unsampled_indices(sample_indices, n_total_samples, duplicates):
    """Rows that were not drawn, and of which no duplicate was drawn."""
    unsampled = np.ones(n_total_samples, dtype=bool)
    unsampled[sample_indices] = False
    for group in map(list, duplicates):
        unsampled[group] &= unsampled[group].all()
    return np.flatnonzero(unsampled)


def group_indices_by_value(a):
    """Distinct values, ascending, and the positions of each."""
    order = np.argsort(a, kind="stable")
    values, begin = np.unique(a[order], return_index=True)
    return values, np.split(order, begin[1:])


def map_indices_to_leaves(y_train_leaves_slice, bootstrap_indices, leaf_indices, leaf_values_list):
    """Write the samples of each leaf into its row of the table (n_leaves, n_outputs, width)."""
    for leaf, samples in zip(leaf_indices, leaf_values_list, strict=True):
        y_train_leaves_slice[leaf, :, : len(samples)] = bootstrap_indices[samples].T
    return y_train_leaves_slice
