"""fit_table: from a table with strings and dates to a model that takes such tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.random import RandomState
from numpy.typing import ArrayLike

from hdiforest._estimators.hdi_forest import CalibrationOfFit, HDIForestRegressor, attach_encoder
from hdiforest._estimators.input_rows import checked_sample_weight
from hdiforest._model.training_rows import Weighting
from hdiforest._tables.columns import NumberColumn
from hdiforest._tables.encoder import Categorical, TableEncoder
from hdiforest._tables.forms import Written
from hdiforest._tables.frames import frame_of
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.training_table import Roles, read_training_table, training_table
from hdiforest._utils.meta_estimators import layers, pipelines, thawed


def fit_table(
    table: Any,
    target: str,
    *,
    estimator: Any = None,
    categorical: Categorical = "auto",
    date_formats: Mapping[str, str] | None = None,
    thousands: str | None = None,
    decimal: str | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),  # noqa: A002 (as the command's option)
    sample_weight: str | ArrayLike | None = None,
    weights: Weighting = "all",
    calibration: CalibrationOfFit = "auto",
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
) -> HDIForestRegressor:
    """Fit a model to a table as it is; its methods take such tables.

    Every column but the target, the weights and those of `drop` and `id` becomes a feature: numbers
    as they are, booleans as 0 and 1, dates as numbers, and categories as ranks by frequency. Text
    is numbers or dates if all of its cells are written in one form. Missing cells stay missing.
    What was done is kept with the model, in its file too.

    Parameters
    ----------
    table : table or path
        Any table or dict of columns, or a file that ``hdiforest fit`` reads. Needs pyarrow.
    target : str
        Column to predict.
    estimator : estimator, optional
        See `HDIForestRegressor`.
    categorical : "auto" or sequence of str, default="auto"
        Columns of categories, such as codes, besides text and dictionaries (pandas' categorical).
    date_formats : mapping of str to str, optional
        How columns of text write dates, such as ``{"day": "%d/%m/%Y"}``, where cells do not say so.
    thousands, decimal : str, optional
        Separators in numbers that are text, where cells do not say so; of a CSV file, also in those
        of other columns.
    drop, id : sequence of str, default=()
        No features; columns of `id` name the rows, and are kept by ``hdiforest score``.
    sample_weight : str or (n,) array, optional
        A column, or the weights themselves.
    weights, calibration, n_jobs, random_state : optional
        See `HDIForestRegressor`.

    Returns
    -------
    HDIForestRegressor
        Fitted. All columns that are refused stand in one message.

    Examples
    --------
    >>> import pandas as pd
    >>> from hdiforest import fit_table
    >>> flats = pd.DataFrame({"town": ["Lyon", "Nice"] * 50, "rooms": range(100)})
    >>> flats["rent"] = 300 + 20 * flats["rooms"] + 100 * (flats["town"] == "Nice")
    >>> model = fit_table(flats, "rent", random_state=0)
    >>> model.predict_interval({"town": ["Nice", None], "rooms": [3, 40]}, coverage=0.8).shape
    (2, 2)
    """
    if not isinstance(target, str):
        raise ValueError(f"target must be the name of a column, got {target!r}")
    if estimator is not None and pipelines(layers(thawed(estimator), fitted=False)):
        raise ValueError(
            "estimator must be a forest, because fit_table encodes the table itself; fit "
            "HDIForestRegressor(pipeline) on the table, or give the forest alone"
        )
    is_column = isinstance(sample_weight, str)
    roles: dict[str, Any] = {"drop": _names("drop", drop), "ids": _names("id", id)}
    roles["categorical"] = "auto" if categorical == "auto" else _names("categorical", categorical)
    roles["sample_weight"] = sample_weight if is_column else None
    roles["written"] = Written(dict(date_formats or {}), thousands, decimal)
    if isinstance(table, str | os.PathLike):
        form = TextForm(decimal=roles["written"].point)
        read = read_training_table(Path(table), target, form, **roles)
    else:
        column_roles = Roles(target, **roles)
        frame = frame_of(table).sliceable()
        names = frame.names or []
        raw = frame.arrow([name for name in names if name not in column_roles.left_out])
        column_roles.require(names, "the table")
        try:
            read = training_table(raw, "the table", column_roles)
        except TableError as error:
            hint = " (drop and id leave columns out, categorical takes them as categories)"
            raise TableError(f"{error}{hint if error.columns else ''}", error.columns) from None
    row_weights: Any = read.weights
    if not (is_column or sample_weight is None):
        row_weights = checked_sample_weight(sample_weight, len(read.y))
    options: dict[str, Any] = {"weights": weights, "calibration": calibration, "n_jobs": n_jobs}
    model = HDIForestRegressor(estimator, random_state=random_state, **options)
    model.fit(read.X, read.y, sample_weight=row_weights)
    numbers = TableEncoder(tuple(map(NumberColumn, read.X.schema.names)))
    attach_encoder(model, read.encoder or numbers, table)
    return model


def _names(argument: str, names: Any) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} must be a list of names of columns, got {names!r}")
    return list(names)
