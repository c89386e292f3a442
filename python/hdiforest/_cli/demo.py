"""The demonstration: calibrated intervals of two data sets, as numbers, tables and a picture."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from hdiforest._cli.console import say
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._tables.formats import write_table
from hdiforest._tables.names import interval_names
from hdiforest._tables.training_table import read_training_table
from hdiforest._utils import Array, Kind
from hdiforest._utils.checks import aligned, significant
from hdiforest._utils.files import replacing
from hdiforest._utils.optional import need, pa
from hdiforest.displays import DistributionDisplay, IntervalDisplay
from hdiforest.displays._common import GREY
from hdiforest.metrics import coverage_score, mean_width_score

LEVELS = (0.8, 0.9, 0.95)
SHOWN = LEVELS.index(0.9)  # the level of the picture
ASKED = tuple(thousandth / 1000 for thousandth in range(500, 1000))  # of the forest's own intervals
KINDS: dict[Kind, str] = {"hdi": "HDI", "equal_tailed": "equal-tailed"}
N_FOLDS = 5


class DataSet(NamedTuple):
    """A table that comes with the package."""

    name: str
    target: str
    label: str
    rows: str


SETS = (
    DataSet("concrete", "compressive_strength", "compressive strength (MPa)", "concrete mixes"),
    DataSet("diamonds", "price", "price (US dollars)", "diamonds"),
)


class Predicted(NamedTuple):
    """What forests predict for rows that they were not fitted on."""

    y: Array  # (n,)
    fold: NDArray[np.int64]  # (n,)
    mean: Array  # (n,)
    calibrated: Array  # (n, 2, levels)
    own: dict[Kind, Array]  # (n, 2, asked) by kind


def run_demo(options: Any) -> None:
    """Cross-validate on both data sets, print the comparison, write tables and a picture."""
    folder: Path = options.output
    figure = need("matplotlib.figure").Figure(figsize=(15, 4.6), layout="constrained")
    folder.mkdir(parents=True, exist_ok=True)
    axes, written = figure.subplots(1, 3), []
    others = f"{N_FOLDS - 1} of {N_FOLDS} parts"
    say(f"Each row is scored by a random forest fitted and calibrated on the other {others}.")
    for own, ax in zip(SETS, axes, strict=False):
        with as_file(files("hdiforest._cli") / "data" / f"{own.name}.csv.gz") as path:
            frame, y, *_ = read_training_table(path, own.target)
        X = np.column_stack([column.to_numpy() for column in frame.columns])
        found, model, test = _predicted(X, y)
        say(_compare(own, found, X.shape[1]))
        written.append(folder / f"{own.name}_intervals.csv")
        _write(written[-1], own.target, found)
        look: dict[str, Any] = {"coverage": LEVELS[SHOWN], "target_name": own.label}
        ends = found.calibrated[..., SHOWN]
        IntervalDisplay.from_predictions(y, ends, prediction=found.mean, ax=ax, **look)
        ax.set_title(f"Calibrated: {own.rows} not seen in fitting", loc="left")
    _draw_skewed(axes[-1], found, model, X, test, look)  # of the last data set
    written.append(folder / "intervals.png")
    with replacing(written[-1]) as partial:
        figure.savefig(partial, format="png", dpi=120)
    say("\nWritten: " + ", ".join(map(str, written)))


def _predicted(X: Array, y: Array) -> tuple[Predicted, HDIForestRegressor, NDArray[np.intp]]:
    """Return what is predicted for all rows, and the last fold's model and rows."""
    n, k = len(y), len(ASKED)
    own = {kind: np.empty((n, 2, k)) for kind in KINDS}
    found = Predicted(y, np.empty(n, np.int64), np.empty(n), np.empty((n, 2, len(LEVELS))), own)
    folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(X)
    for number, (train, test) in enumerate(folds):
        forest = RandomForestRegressor(min_samples_leaf=5, random_state=number, n_jobs=-1)
        model = HDIForestRegressor(forest, n_jobs=-1).fit(X[train], y[train])
        found.fold[test], found.mean[test] = number, model.predict(X[test])
        found.calibrated[test] = model.predict_interval(X[test], LEVELS)
        for kind, intervals in own.items():
            intervals[test] = model.predict_interval(X[test], ASKED, kind=kind)
    return found, model, test


def _compare(own: DataSet, found: Predicted, n_features: int) -> str:
    """Compare mean widths where all kinds of interval hold the same share of the rows."""
    header = [f"{name} {what}" for name in KINDS.values() for what in ("asked for", "mean width")]
    rows = [["calibrated for", "inside", "mean width", *header]]
    for j, level in enumerate(LEVELS):
        ends = found.calibrated[..., j]
        share = coverage_score(found.y, ends)
        cells = [f"{level:g}", f"{share:.3f}", significant(float(mean_width_score(ends)))]
        for intervals in found.own.values():
            # Intervals at a higher level hold no fewer, up to some rows.
            at = np.flatnonzero(np.ravel(coverage_score(found.y, intervals)) >= share)[0]
            cells += [f"{ASKED[at]:g}", significant(float(mean_width_score(intervals[..., at])))]
        rows.append(cells)
    title = f"{own.label[0].upper()}{own.label[1:]} of {len(found.y):,} {own.rows}"
    asked = "asked for\nthe level at which they hold the same share of the rows"
    return (
        f"\n{title}, {n_features} features.\nThe forest's own intervals (HDI, equal-tailed) are "
        f"{asked}:\n{aligned(rows)}"
    )


def _draw_skewed(
    ax: Any,
    found: Predicted,
    model: HDIForestRegressor,
    X: Array,
    test: NDArray[np.intp],
    look: dict[str, Any],
) -> None:
    """Draw the distribution of the row whose equal-tailed interval the HDI shortens most."""
    at = ASKED.index(LEVELS[SHOWN])
    ends = {kind: intervals[test, :, at] for kind, intervals in found.own.items()}
    shortest, equal = (np.diff(each).ravel() for each in ends.values())
    one = int(np.argmax(np.where(equal > np.median(equal), 1 - shortest / equal, 0)))
    weights = model.predict_weights(X[test[[one]]]).toarray()[0]
    train = found.y[found.fold != found.fold[test[one]]]
    look = look | {"interval": ends["hdi"][one], "bins": 30, "ax": ax}
    DistributionDisplay.from_predictions(found.y[test[one]], train, weights, **look)
    ax.axvspan(*ends["equal_tailed"][one], ymax=0.02, color=GREY, label="equal-tailed interval")
    ax.locator_params(axis="x", nbins=5)
    ax.legend(loc="upper right", framealpha=0.85, edgecolor="none", fontsize="small")
    widths = f"{shortest[one]:,.0f} wide, equal-tailed {equal[one]:,.0f}"
    ax.set_title(f"One diamond: HDI {widths}", loc="left", fontsize="medium")


def _write(path: Path, target: str, found: Predicted) -> None:
    columns: dict[str, Any] = {"row": np.arange(1, len(found.y) + 1), "part": found.fold + 1}
    columns |= {target: found.y, "prediction": found.mean}
    shown = {"calibrated": found.calibrated}
    at = [ASKED.index(level) for level in LEVELS]
    shown["equal_tailed"] = found.own["equal_tailed"][..., at]
    for kind, ends in shown.items():
        names = interval_names(kind, LEVELS)[1:]
        columns |= dict(zip(names, ends.transpose(2, 1, 0).reshape(-1, len(ends)), strict=True))
    table = pa.table(columns)
    with write_table(path, table.schema) as write:
        write(table)
