"""Makes a model from a fitted forest that skops or joblib stored, and the table of its fit."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._model.training_rows import Weighting
from hdiforest._tables.formats import ending
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.training_table import TrainingTable, read_training_table
from hdiforest._utils.meta_estimators import layers, pipelines
from hdiforest._utils.optional import need

# skops asks about it, but scikit-learn's own class holds arrays alone.
_KNOWN = ("sklearn.tree._tree.Tree",)


def load_forest(path: Path, *, trusted: bool, trusted_types: Sequence[str]) -> Any:
    """Return the estimator that a file holds.

    Parameters
    ----------
    path : Path
        Written by skops, or by joblib or pickle.
    trusted : bool
        Whether loading may run code of the file, as joblib and pickle do.
    trusted_types : sequence of str
        Types that skops may load besides those that it knows.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not of these formats, or something in it is not trusted.
    """
    with path.open("rb"):
        pass
    return _by_skops(path, trusted_types) if zipfile.is_zipfile(path) else _by_joblib(path, trusted)


def _by_skops(path: Path, trusted_types: Sequence[str]) -> Any:
    io = need("skops.io")
    allowed = {*_KNOWN, *trusted_types}
    try:
        types = io.get_untrusted_types(file=path)
        unknown = [name for name in types if name not in allowed]
        if not unknown:
            return io.load(path, trusted=[name for name in types if name in allowed])
    except Exception as error:  # a damaged file raises whatever it makes skops meet
        raise ValueError(f"{path} is not a file of skops, or is damaged: {error}") from None
    raise ValueError(
        f"{path} holds the types {', '.join(unknown)}, whose loading may run code; if you know "
        f"them, add --trust-types {' '.join(unknown)}"
    )


def _by_joblib(path: Path, trusted: bool) -> Any:
    if not trusted:
        raise ValueError(
            f"{path} is not a file of skops; if joblib or pickle wrote it, loading it runs "
            "whatever code it holds: add --trusted if it comes from you, or store the forest by "
            "skops.io.dump"
        )
    try:
        return need("joblib").load(path)
    except Exception as error:  # unpickling raises whatever the file says
        raise ValueError(f"cannot load {path} by joblib: {error!r}") from None


def read_table_of(
    forest: Any, path: Path, target: str, form: TextForm | None = None, **roles: Any
) -> TrainingTable:
    """Return the training table of a fitted forest: its columns by name, if it knows names.

    The steps of a pipeline get the columns as pandas reads them from such a file.

    Raises
    ------
    TableError
        As `read_training_table`; and if a column of the forest is missing, or does not hold numbers
        and there are no steps before the forest.
    """
    names = getattr(forest, "feature_names_in_", None)
    has_steps = bool(pipelines(layers(forest, fitted=True)))
    table = read_training_table(path, target, form, coded=not has_steps, **roles)
    if names is not None:
        names = [str(name) for name in names]
        missing = [repr(name) for name in names if name not in table.X.schema.names]
        if missing:
            raise TableError(
                f"{path} has no column{'s' * (len(missing) > 1)} {', '.join(missing)}, which the "
                "forest was fitted on"
            )
    columns = table.X.schema.names if names is None else names
    if has_steps:
        need("pandas")
        X = table.X.select(columns).to_pandas()
        if ending(path).startswith((".csv", ".tsv")):
            texts = [name for name in X if X[name].dtype == object]
            X[texts] = X[texts].where(X[texts].notna(), np.nan)
        return table._replace(X=X)
    entries = [] if table.coding is None else table.coding.entries
    others = [
        f"'{entry.name}' holds {'categories' if entry.kind == 'category' else entry.kind + 's'}"
        for entry in entries
        if entry.name in columns and entry.kind not in ("number", "boolean")
    ]
    if others:
        raise TableError(
            f"{path}: the forest takes numbers, but {', '.join(others)}; write the table as the "
            "forest was given it, or fit with 'hdiforest fit'"
        )
    return table._replace(X=table.X.select(columns), coding=None)


def import_model(
    forest: Any, table: TrainingTable, *, weights: Weighting, n_jobs: int
) -> HDIForestRegressor:
    """Return the model of a fitted forest; see `HDIForestRegressor.from_forest`."""
    X = table.X
    if not (hasattr(X, "iloc") or hasattr(forest, "feature_names_in_")):
        X = np.column_stack([column.to_numpy() for column in X.columns])
    return HDIForestRegressor.from_forest(
        forest, X, table.y, sample_weight=table.weights, weights=weights, n_jobs=n_jobs
    )
