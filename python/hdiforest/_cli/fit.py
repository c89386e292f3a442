"""The subcommands fit and import: from a training table to a fitted model and its record."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from hdiforest._cli.arguments import UsageError
from hdiforest._cli.console import CALIBRATED_LEVELS, aligned
from hdiforest._cli.prediction import calibration_of, levels_to_show
from hdiforest._estimators.hdi_forest import HDIForestRegressor, keep_finite_coverages
from hdiforest._model.calibrate import ignore_infinite_intervals
from hdiforest._model.training_rows import Weighting
from hdiforest._tables.formats import ending
from hdiforest._tables.read import TableError, TextForm
from hdiforest._tables.training_table import TrainingTable, read_training_table
from hdiforest._utils.checks import significant
from hdiforest._utils.meta_estimators import layers, pipelines
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array
from hdiforest.calibration import CVPlus
from hdiforest.calibration._quantiles import rows_needed
from hdiforest.calibration._selection import Objective
from hdiforest.metrics import coverage_score, mean_width_score

NO_RECORD = "No out-of-bag record: every tree saw every row."


def new_forest(extra_trees: bool, **options: Any) -> Any:
    """Return an unfitted forest whose trees leave rows out."""
    kind = ExtraTreesRegressor if extra_trees else RandomForestRegressor
    return kind(bootstrap=True, **options)


def fit_and_calibrate(
    model: HDIForestRegressor,
    table: TrainingTable,
    method: Literal["oob", "split", "cv+", "none"],
    *,
    coverages: Sequence[float] | None,
    boost: bool,
    objective: Objective,
    folds: int,
    seed: int,
) -> str:
    """Fit a model and calibrate it at some coverages, by default as `calibrate_as_far`.

    Returns
    -------
    str
        Why it could not be calibrated, or at which levels not, in a line; empty if it was, or if
        method is "none".

    Raises
    ------
    UsageError
        If there are too few rows for a coverage; nothing is fitted then.
    ValueError
        If the model cannot be fitted or calibrated.
    """
    how = CVPlus(folds, table.groups) if method == "cv+" else method
    options: dict[str, Any] = {"method": how, "objective": objective, "random_state": seed}
    options["mean"] = "boosting" if boost else None
    fitted_on = table
    if method == "split":
        kept, held_out = held_out_rows(table, seed)
        fitted_on, apart = table.rows(kept), table.rows(held_out)
        options |= {"X": apart.X, "y": apart.y}
    n_rows = len(apart.y) if method == "split" else len(table.y)
    require_rows(coverages, n_rows)
    model.fit(fitted_on.X, fitted_on.y, sample_weight=fitted_on.weights)
    return "" if method == "none" else calibrate_as_far(model, coverages, n_rows, **options)


def require_rows(
    coverages: Sequence[float] | None, n_rows: int, confidence: float | None = None
) -> None:
    """Raise UsageError if so many calibration rows are too few for a coverage that was asked for.

    The coverages are those of --coverage, and `confidence` is that of --confidence.
    """
    for coverage in coverages or ():
        needed = rows_needed(coverage, confidence=confidence)
        if n_rows < needed:
            raise UsageError(
                f"--coverage {coverage:g} needs {needed:,} calibration rows, and there are "
                f"{n_rows:,}"
            )


def calibrate_as_far(
    model: HDIForestRegressor, coverages: Sequence[float] | None, n_rows: int, **options: Any
) -> str:
    """Calibrate a fitted model, by default at those of `CALIBRATED_LEVELS` that its rows allow.

    Returns
    -------
    str
        As `fit_and_calibrate`.

    Raises
    ------
    ValueError
        If it cannot be calibrated, and the method or `coverages` was chosen.
    """
    usual = [c for c in CALIBRATED_LEVELS if rows_needed(c) <= n_rows]
    if coverages is not None or isinstance(options["method"], CVPlus):
        with infinite_intervals_refused():
            model.calibrate(coverage=usual if coverages is None else coverages, **options)
    else:
        try:
            with ignore_infinite_intervals():
                model.calibrate(coverage=usual, **options)
        except ValueError as error:
            if options["method"] != "oob":
                raise
            return f"Not calibrated: {error}\n"
        n_rows = model.calibration_.n
        keep_finite_coverages(model)
    calibration = calibration_of(model)
    known = () if calibration is None else calibration.coverages
    if not known and options["method"] != "oob":
        raise ValueError(f"{n_rows:,} calibration rows are too few for every coverage")
    left_out = [f"{level:g}" for level in CALIBRATED_LEVELS if level not in known]
    if coverages is not None or not left_out:
        return ""
    return f"Not calibrated at {', '.join(left_out)}: {n_rows} calibration rows are too few\n"


@contextmanager
def infinite_intervals_refused() -> Iterator[None]:
    """Raise the warning of `calibrate` that intervals are infinite as ValueError."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "intervals of coverage .* are infinite", UserWarning)
        try:
            yield
        except UserWarning as warning:
            raise ValueError(str(warning)) from None


def held_out_rows(table: TrainingTable, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return four fifths of the rows to fit on, and the others; groups are not divided."""
    share = 1 / 5
    n = len(table.y) if table.groups is None else len(np.unique(table.groups))
    if n < 2:
        what = "row" if table.groups is None else "group"
        raise ValueError(f"--calibrate split needs two {what}s or more, and the table has {n}")
    if table.groups is None:
        splitter: Any = ShuffleSplit(1, test_size=share, random_state=seed)
    else:
        splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
    kept, held_out = next(splitter.split(table.y, groups=table.groups))
    return np.sort(kept), np.sort(held_out)


class OutOfBagRecord(NamedTuple):
    """Raw intervals of the training rows, each from the trees that did not draw the row."""

    levels: list[float]  # k, see `levels_to_show`
    y: Array  # (n,) of the training rows that have intervals
    hdi: Array  # (n, 2, k)

    def at(self, level: float) -> tuple[float, float]:
        """Return the share of rows inside, and the mean width, at one of the levels."""
        own = self.hdi[..., self.levels.index(level)]
        return float(coverage_score(self.y, own)), float(mean_width_score(own))


def out_of_bag_record(model: HDIForestRegressor) -> OutOfBagRecord | None:
    """Return the intervals of the model's own training rows, None if no tree left a row out."""
    levels = levels_to_show(model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*no out-of-bag interval", UserWarning)
        try:
            hdi = model.oob_interval(levels, kind="hdi")
        except ValueError:  # the forest was fitted on all rows; no other error is possible here
            return None
    rows = np.flatnonzero(~np.isnan(hdi).any(axis=(1, 2)))
    if len(rows) == 0:
        return None
    y = model.fitted_forest().require_training_rows().y
    return OutOfBagRecord(levels, y[rows], hdi[rows])


def out_of_bag_report(model: HDIForestRegressor, record: OutOfBagRecord | None) -> str:
    """Coverage and width of the model's intervals, as text.

    Of calibrated ones if the model has them, because these are what it predicts, and of raw ones of
    its own training rows. A forest that was fitted on all rows in each tree has no record of these.
    """
    calibration = calibration_of(model)
    if calibration is None and record is None:
        return NO_RECORD
    rows = [["coverage"]]
    if calibration is not None:
        rows[0] += ["calibrated inside", "mean width"]
        title = f"Calibrated on {calibration.n:,} {_HOW[calibration.method]}:"
    if record is not None:
        rows[0] += ["raw HDI inside", "mean width"]
        if calibration is None:
            title = f"Out-of-bag record of {len(record.y):,} training rows:"
    for level in CALIBRATED_LEVELS if calibration is None else calibration.coverages:
        cells = [f"{level:g}"]
        if calibration is not None:
            found = calibration.level(level)
            check = found.cross_check
            share = "-" if check is None else f"{check.coverage:.3f} ± {check.standard_error:.3f}"
            cells += [share, significant(found.mean_width)]
        if record is not None:
            inside, width = record.at(level)
            cells += [f"{inside:.3f}", significant(width)]
        rows.append(cells)
    return f"{title}\n{aligned(rows)}"


# On which rows, and what "calibrated inside" is.
_HOW = {
    "oob": "training rows, out of bag; 'calibrated inside' is of intervals selected on the other "
    "half of them",
    "split": "rows held out of the fit; 'calibrated inside' is of intervals widened by the other "
    "half of them",
    "cv+": "training rows, each held out of a fold; 'calibrated inside' is of intervals widened by "
    "the other folds",
}


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
    table = read_training_table(path, target, form, encoded=not has_steps, **roles)
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
    entries = [] if table.encoder is None else table.encoder.entries
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
    return table._replace(X=table.X.select(columns), encoder=None)


def import_model(
    forest: Any, table: TrainingTable, *, weights: Weighting, n_jobs: int
) -> HDIForestRegressor:
    """Return the model of a fitted forest; see `HDIForestRegressor.from_forest`."""
    X = table.X
    if isinstance(X, need("pyarrow").Table) and not hasattr(forest, "feature_names_in_"):
        X = np.column_stack([column.to_numpy() for column in X.columns])
    return HDIForestRegressor.from_forest(
        forest, X, table.y, sample_weight=table.weights, weights=weights, n_jobs=n_jobs
    )
