"""fit_table: from a table with strings and dates to a model that takes such tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from numpy.random import RandomState
from numpy.typing import ArrayLike

from hdiforest._estimators.hdi_forest import CalibrationOfFit, HDIForestRegressor
from hdiforest._estimators.input_rows import checked_sample_weight
from hdiforest._model.training_rows import Weighting
from hdiforest._tables.columns import NumberColumn
from hdiforest._tables.encoder import Categorical, TableEncoder
from hdiforest._tables.forms import Written
from hdiforest._tables.frames import frame_of
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.training_table import Roles, read_training_table, training_table
from hdiforest._utils.checks import check_flag
from hdiforest._utils.meta_estimators import layers, pipelines, thawed


def fit_table(
    table: Any,
    target: str,
    *,
    estimator: Any = None,
    categorical: Categorical = "auto",
    missing: Sequence[str | float] = (),
    date_formats: Mapping[str, str] | None = None,
    thousands: str | None = None,
    decimal: str | None = None,
    drop: Sequence[str] = (),
    id: Sequence[str] = (),  # noqa: A002 (as the command's option)
    drop_missing_target: bool = False,
    sample_weight: str | ArrayLike | None = None,
    weights: Weighting = "all",
    calibration: CalibrationOfFit = "auto",
    n_jobs: int | None = None,
    random_state: int | RandomState | None = None,
    verbose: int = 0,
) -> HDIForestRegressor:
    """Fit a model to a table as it is. The methods of the model take such tables.

    Every column becomes a feature, except the target, the weights, the columns in `drop` and `id`,
    and row numbers (an index of pandas without a name). Numbers stay as they are. Booleans become 0
    and 1. Dates become numbers. Categories become ranks by frequency. Text becomes numbers or dates
    if all of its cells are written in one form. Missing cells stay missing. The model and its file
    keep the encoding.

    Parameters
    ----------
    table : table or path
        Any table or dict of columns, or a file that ``hdiforest fit`` reads. Needs pyarrow.
    target : str
        Name of the column to predict.
    estimator : estimator, optional
        The forest to fit. See `HDIForestRegressor`.
    categorical : "auto" or sequence of str, default="auto"
        Columns of categories, such as codes, besides text and dictionaries (pandas' categorical).
    missing : sequence of str or number, default=()
        Cells that are missing, besides empty ones, such as ``["unknown", -999]``. The model reads
        later tables in the same way.
    date_formats : mapping of str to str, optional
        Formats of dates in columns of text, such as ``{"day": "%d/%m/%Y"}``. They are needed if the
        cells can be read in several ways.
    thousands : str, optional
        Separator of thousands in numbers that are text. It is needed if the cells can be read in
        several ways. In a CSV file it holds for all columns.
    decimal : str, optional
        Decimal separator in numbers that are text. It is needed if the cells can be read in several
        ways. In a CSV file it holds for all columns.
    drop : sequence of str, default=()
        Columns that are no features.
    id : sequence of str, default=()
        Columns that name the rows. They are no features, and ``hdiforest score`` keeps them.
    drop_missing_target : bool, default=False
        Whether rows without a target are left out. If not, they are refused.
    sample_weight : str or (n,) array, optional
        Weights of the rows: the name of a column, or an array.
    weights : {"all", "inbag", "oob", "monotonic"}, default="all"
        The training rows of a leaf that count. See `HDIForestRegressor`.
    calibration : "auto", bool, float or sequence of floats, default="auto"
        Coverages to calibrate. See `HDIForestRegressor`.
    n_jobs : int, default=None
        Threads for scoring. See `HDIForestRegressor`.
    random_state : int, RandomState or None, default=None
        Seed of the default forest. See `HDIForestRegressor`.
    verbose : int, default=0
        Lines to print. From 1 on, the encoding of the columns is printed, too. See
        `HDIForestRegressor`.

    Returns
    -------
    HDIForestRegressor
        A fitted model. One error message names all columns that are refused.

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
    check_flag("drop_missing_target", drop_missing_target)
    is_column = isinstance(sample_weight, str)
    roles: dict[str, Any] = {"drop": _names("drop", drop), "ids": _names("id", id)}
    roles["categorical"] = "auto" if categorical == "auto" else _names("categorical", categorical)
    roles["sample_weight"] = sample_weight if is_column else None
    roles |= {"missing": _words(missing), "drop_missing_target": drop_missing_target}
    roles["written"] = Written(dict(date_formats or {}), thousands, decimal)
    if isinstance(table, str | os.PathLike):
        form = TextForm(decimal=roles["written"].point)
        read = read_training_table(Path(table), target, form, **roles)
    else:
        column_roles = Roles(target, **roles)
        frame = frame_of(table).without(column_roles.missing).sliceable()
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
        given: Any = checked_sample_weight(sample_weight, len(read.has_target))
        row_weights = given[read.has_target]
    options: dict[str, Any] = {"weights": weights, "calibration": calibration, "n_jobs": n_jobs}
    options |= {"random_state": random_state, "verbose": verbose}
    model = HDIForestRegressor(estimator, **options)
    if verbose:
        print(
            read.summary("calibrate(method=OutOfBag(order=...)) by {} measures their coverage"),
            flush=True,
        )
    model.fit(read.X, read.y, sample_weight=row_weights)
    numbers = TableEncoder(tuple(map(NumberColumn, read.X.schema.names)))
    labels = frame_of(table).index
    if labels is not None and not read.has_target.all():
        labels = labels[read.has_target]
    return model._read_by(read.encoder or numbers, labels)


def _words(missing: Any) -> list[str]:
    words = missing if isinstance(missing, Iterable) and not isinstance(missing, str) else [None]
    if any(isinstance(word, bool) or not isinstance(word, str | Real) for word in words):
        raise ValueError(f"missing must be a list of words and numbers, got {missing!r}")
    return list(map(str, words))


def _names(argument: str, names: Any) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{argument} must be a list of names of columns, got {names!r}")
    return list(names)
