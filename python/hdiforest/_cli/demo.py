"""The demonstration: both kinds of interval on real data, as numbers, a table and a picture."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

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
ASKED = tuple(thousandth / 1000 for thousandth in range(500, 1000))  # LEVELS are among them
SHOWN = ASKED.index(0.9)  # the level of the picture
KINDS: tuple[Kind, ...] = ("hdi", "equal_tailed")
TARGET = "compressive_strength"
LABEL = "compressive strength (MPa)"
N_FOLDS = 5


def run_demo(options: Any) -> None:
    """Cross-validate on the concrete data, print the comparison, write a table and a picture."""
    folder: Path = options.output
    matplotlib = need("matplotlib.figure")
    with as_file(files("hdiforest._cli") / "data" / "concrete.csv.gz") as path:
        frame, y, *_ = read_training_table(path, TARGET)
    folder.mkdir(parents=True, exist_ok=True)
    X = np.column_stack([column.to_numpy() for column in frame.columns])
    say(
        f"Compressive strength of concrete in MPa: {len(y):,} mixes, {X.shape[1]} features.\n"
        f"Each mix is scored by a random forest fitted on the other {N_FOLDS - 1} of {N_FOLDS} "
        "parts.\n"
    )
    n, k = len(y), len(ASKED)
    fold, mean, intervals = np.empty(n, np.int64), np.empty(n), np.empty((len(KINDS), n, 2, k))
    figure = matplotlib.Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(X)
    for number, (train, test) in enumerate(folds):
        forest = RandomForestRegressor(300, min_samples_leaf=5, random_state=number, n_jobs=-1)
        model = HDIForestRegressor(forest, n_jobs=-1).fit(X[train], y[train])
        fold[test], mean[test] = number, model.predict(X[test])
        for i, kind in enumerate(KINDS):
            intervals[i, test] = model.predict_interval(X[test], ASKED, kind=kind)
        if number == 0:
            ends, means = intervals[..., SHOWN][:, test], mean[test]
            look: dict[str, Any] = {"coverage": ASKED[SHOWN], "target_name": LABEL}
            IntervalDisplay.from_predictions(y[test], ends[0], prediction=means, ax=left, **look)
            title = f"90 % HDI of {len(test)} concrete mixes not seen in fitting"
            left.set_title(title, loc="left")
            shortest, equal = ends[..., 1] - ends[..., 0]
            # The wide interval that the HDI shortens most.
            one = int(np.argmax(np.where(equal > np.median(equal), 1 - shortest / equal, 0)))
            weights = model.predict_weights(X[test[[one]]]).toarray()[0]
            look |= {"interval": ends[0, one], "bins": 30, "ax": right}
            DistributionDisplay.from_predictions(y[test[one]], y[train], weights, **look)
            right.axvspan(*ends[1, one], ymax=0.02, color=GREY, label="equal-tailed interval")
            right.legend(loc="upper right", framealpha=0.85, edgecolor="none", fontsize="small")
            widths = f"HDI {shortest[one]:.0f} MPa wide, equal-tailed {equal[one]:.0f}"
            right.set_title(f"A skewed one: {widths}", loc="left")
    say(_compare(y, intervals))
    table, picture = folder / "concrete_intervals.csv", folder / "concrete_intervals.png"
    _write(table, fold, y, mean, intervals)
    with replacing(picture) as partial:
        figure.savefig(partial, format="png", dpi=160)
    say(f"\nTable: {table}\nPicture: {picture}")


def _compare(y: Array, intervals: Array) -> str:
    """Compare mean widths where both kinds of interval hold the same share of the mixes."""
    names = ("HDI", "equal-tailed")
    header = [f"{name} {what}" for name in names for what in ("asked for", "mean width")]
    rows = [["inside", *header]]
    for share in LEVELS:
        cells = [f"{share:g}"]
        for ends in intervals:
            # Intervals at a higher level hold no fewer, up to some mixes.
            reached = (coverage_score(y, ends[..., j]) >= share for j in range(len(ASKED)))
            level = list(reached).index(True)
            cells += [f"{ASKED[level]:g}", significant(float(mean_width_score(ends[..., level])))]
        rows.append(cells)
    return (
        "Mean widths in MPa where both kinds of interval hold the same share of the mixes, and the "
        f"level\nthat each must be asked for to hold it:\n{aligned(rows)}"
    )


def _write(path: Path, fold: NDArray[np.int64], y: Array, mean: Array, intervals: Array) -> None:
    columns: dict[str, Any] = {"row": np.arange(1, len(y) + 1), "part": fold + 1, TARGET: y}
    for kind, of_kind in zip(KINDS, intervals, strict=True):
        ends = of_kind[..., [ASKED.index(level) for level in LEVELS]]
        numbers = (mean, *ends.transpose(2, 1, 0).reshape(-1, len(y)))
        columns |= dict(zip(interval_names(kind, LEVELS), numbers, strict=True))
    table = pa.table(columns)
    with write_table(path, table.schema) as write:
        write(table)
