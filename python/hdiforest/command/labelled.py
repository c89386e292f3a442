"""Tables with a target to measure a fitted model on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._tables.formats import open_table
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.row_counts import RowCounts
from hdiforest._tables.training_table import require_finite, with_names
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array
from hdiforest.command.features import Features
from hdiforest.command.prediction import has_names


def read_labelled_table(
    model: HDIForestRegressor, path: Path, target: str, form: TextForm | None = None
) -> tuple[Any, Array, RowCounts]:
    """Read the features of a fitted model and the target, both for all rows.

    Returns
    -------
    X : pyarrow.Table or (n, n_features) float64
        What the methods of the model take: raw columns if it has a coding, without names if it was
        fitted without.
    y : (n,) float64
    counts : RowCounts

    Raises
    ------
    TableError
        If a column is missing, a feature cannot be read, the target is not finite, or there are no
        rows.
    """
    with open_table(path, form=form) as table:
        features = Features(model._require_fitted(), table, more=[target])
        batches = list(features.batches())
    if not batches:
        raise TableError(f"{path} has no rows")
    y = np.concatenate([features.more(batch)[:, 0] for batch in batches])
    whole = need("pyarrow").concat_tables(batches)
    X = features.matrix(whole)
    require_finite(y, f"{path}: target '{target}'")
    if features.coding is not None:
        return features.raw(whole), y, features.counts
    return (with_names(X, features.names) if has_names(model) else X), y, features.counts
