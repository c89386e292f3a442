"""The demonstration: both kinds of interval on real data, as numbers, a table and a picture."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from hdiforest._cli.report import aligned, say
from hdiforest._estimators.hdi_forest import HDIForestRegressor
from hdiforest._tables.formats import write_table
from hdiforest._tables.names import interval_names
from hdiforest._tables.training_table import read_training_table
from hdiforest._utils.checks import significant
from hdiforest._utils.files import replacing
from hdiforest._utils.optional import need
from hdiforest._utils.typing import Array, Kind
from hdiforest.displays import DistributionDisplay, IntervalDisplay
from hdiforest.displays._common import GREY
from hdiforest.metrics import coverage_score, mean_width_score

LEVELS = (0.8, 0.9, 0.95)
ASKED = tuple(thousandth / 1000 for thousandth in range(500, 1000))  # LEVELS are among them
SHOWN = ASKED.index(0.9)  # the level of the picture
TARGET = "compressive_strength"
N_FOLDS = 5


class _Scored(NamedTuple):
    """Results for each row, by the forest that was not fitted on it."""

    y: Array  # (n,)
    fold: NDArray[np.int64]  # (n,)
    prediction: Array  # (n,)
    hdi: Array  # (n, 2, k) at the k levels ASKED
    equal_tailed: Array  # (n, 2, k)


class _Row(NamedTuple):
    """One row and the weighted sample that is its distribution."""

    y: float
    hdi: Array  # (2,)
    equal_tailed: Array  # (2,)
    values: Array  # (n_train,)
    weights: Array  # (n_train,)


def run(folder: Path) -> None:
    """Cross-validate on the concrete data, print the comparison, write a table and a picture.

    Raises
    ------
    OSError
        If `folder` cannot be made or written to.
    """
    need("matplotlib.figure")
    with as_file(files("hdiforest._cli") / "data" / "concrete.csv.gz") as path:
        frame, y, *_ = read_training_table(path, TARGET)
    folder.mkdir(parents=True, exist_ok=True)
    X = np.column_stack([column.to_numpy() for column in frame.columns])
    say(
        f"Compressive strength of concrete in MPa: {len(y):,} mixes, {X.shape[1]} features.\n"
        f"Each mix is scored by a random forest fitted on the other {N_FOLDS - 1} of {N_FOLDS} "
        "parts.\n"
    )
    scored, row = _cross_validated(X, y)
    say(_comparison(scored))
    table, picture = folder / "concrete_intervals.csv", folder / "concrete_intervals.png"
    _write(table, scored)
    with replacing(picture) as partial:
        _draw(scored, row).savefig(partial, format="png", dpi=160)
    say(f"\nTable: {table}\nPicture: {picture}")


def _cross_validated(X: Array, y: Array) -> tuple[_Scored, _Row]:
    n, k = len(y), len(ASKED)
    scored = _Scored(
        y, np.empty(n, np.int64), np.empty(n), np.empty((n, 2, k)), np.empty((n, 2, k))
    )
    rows = []
    folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(X)
    for fold, (train, test) in enumerate(folds):
        forest = RandomForestRegressor(300, min_samples_leaf=5, random_state=fold, n_jobs=-1)
        model = HDIForestRegressor(forest, n_jobs=-1).fit(X[train], y[train])
        scored.fold[test] = fold
        scored.prediction[test] = model.predict(X[test])
        scored.hdi[test] = model.predict_interval(X[test], ASKED)
        scored.equal_tailed[test] = model.predict_interval(X[test], ASKED, kind="equal_tailed")
        chosen = test[_most_skewed(scored, test)]
        weights = model.predict_weights(X[[chosen]]).toarray()[0]
        ends = scored.hdi[chosen, :, SHOWN], scored.equal_tailed[chosen, :, SHOWN]
        rows.append(_Row(y[chosen], *ends, y[train], weights))
    return scored, rows[0]


def _comparison(scored: _Scored) -> str:
    """Compare mean widths where both kinds of interval hold the same share of the mixes."""
    kinds = ("HDI", "equal-tailed")
    header = [f"{kind} {what}" for kind in kinds for what in ("asked for", "mean width")]
    rows = [["inside", *header]]
    for share in LEVELS:
        cells = [f"{share:g}"]
        for ends in (scored.hdi, scored.equal_tailed):
            # Intervals at a higher level hold no fewer, up to some mixes.
            reached = (coverage_score(scored.y, ends[..., j]) >= share for j in range(len(ASKED)))
            level = list(reached).index(True)
            width = float(mean_width_score(ends[..., level]))
            cells += [f"{ASKED[level]:g}", significant(width)]
        rows.append(cells)
    return (
        "Mean widths in MPa where both kinds of interval hold the same share of the mixes, and the "
        f"level\nthat each must be asked for to hold it:\n{aligned(rows)}"
    )


def _most_skewed(scored: _Scored, rows: NDArray[np.intp]) -> int:
    """Position in `rows` of the wide interval that the HDI shortens most."""
    widths = scored.hdi[rows, 1, SHOWN] - scored.hdi[rows, 0, SHOWN]
    equal = scored.equal_tailed[rows, 1, SHOWN] - scored.equal_tailed[rows, 0, SHOWN]
    return int(np.argmax(np.where(equal > np.median(equal), 1 - widths / equal, 0)))


def _write(path: Path, scored: _Scored) -> None:
    pa = need("pyarrow")
    columns: dict[str, Any] = {
        "row": np.arange(1, len(scored.y) + 1),
        "part": scored.fold + 1,
        TARGET: scored.y,
    }
    kinds: tuple[tuple[Kind, Array], ...] = (
        ("hdi", scored.hdi),
        ("equal_tailed", scored.equal_tailed),
    )
    for kind, interval in kinds:
        at = [ASKED.index(level) for level in LEVELS]
        ends = interval[..., at].transpose(2, 1, 0).reshape(-1, len(interval))
        columns_of_kind = (scored.prediction, *ends)
        columns |= dict(zip(interval_names(kind, LEVELS), columns_of_kind, strict=True))
    table = pa.table(columns)
    with write_table(path, table.schema) as write:
        write(table)


def _draw(scored: _Scored, row: _Row) -> Any:
    """Draw the mixes of one part with their intervals, and the row's distribution."""
    figure = need("matplotlib.figure").Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    part, coverage = scored.fold == 0, ASKED[SHOWN]
    IntervalDisplay.from_predictions(
        scored.y[part],
        scored.hdi[part, :, SHOWN],
        coverage=coverage,
        prediction=scored.prediction[part],
        target_name="compressive strength (MPa)",
        ax=left,
    )
    left.set_title(f"90 % HDI of {part.sum()} concrete mixes not seen in fitting", loc="left")
    DistributionDisplay.from_predictions(
        row.y,
        row.values,
        row.weights,
        interval=row.hdi,
        coverage=coverage,
        target_name="compressive strength (MPa)",
        ax=right,
        bins=30,
    )
    lower, upper = row.equal_tailed
    right.axvspan(lower, upper, ymax=0.02, color=GREY, label="equal-tailed interval")
    right.legend(loc="upper right", framealpha=0.85, edgecolor="none", fontsize="small")
    (shortest,) = np.diff(row.hdi)
    right.set_title(
        f"A skewed one: HDI {shortest:.0f} MPa wide, equal-tailed {upper - lower:.0f}", loc="left"
    )
    return figure
