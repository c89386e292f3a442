"""The numbers of a table that was read, as a matrix."""

import numpy as np


def numbers(table, n_columns):
    """First columns, (n, n_columns) float64; null is NaN."""
    columns = [table.column(j).cast("double").to_numpy() for j in range(n_columns)]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
