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
        _drawn(scored, row).savefig(partial, format="png", dpi=160)
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


BLUE, PALE, ORANGE, PEACH = "#1f5fa8", "#b3cfeb", "#dd4b24", "#f6c1ae"


INK, GREY, MIST = "#1d2733", "#7b8794", "#d9dee4"


def _drawn(scored: _Scored, row: _Row) -> Any:
    need("matplotlib.figure")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    _draw_rows(left, scored)
    _draw_distribution(right, row)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(GREY)
        axes.tick_params(colors=INK, color=GREY)
    return figure


def _draw_rows(axes: Any, scored: _Scored) -> None:
    rows = np.flatnonzero(scored.fold == 0)
    rows = rows[np.argsort(scored.prediction[rows], kind="stable")]
    place = np.arange(len(rows))
    lower, upper = scored.hdi[rows, :, SHOWN].T
    y = scored.y[rows]
    inside = (lower <= y) & (y <= upper)
    looks = ((inside, PALE, BLUE, "inside"), (~inside, PEACH, ORANGE, "outside"))
    for hit, bar, dot, name in looks:
        axes.vlines(place[hit], lower[hit], upper[hit], color=bar, linewidth=1.9)
        axes.scatter(
            place[hit], y[hit], s=14, color=dot, zorder=3, linewidths=0,
            label=f"measured, {name} its interval ({hit.sum()})",
        )  # fmt: skip
    axes.plot(place, scored.prediction[rows], color=INK, linewidth=1, label="predicted mean")
    axes.set_title(f"90% HDI of {len(rows)} concrete mixes not seen in fitting", loc="left")
    axes.set_xlabel("mixes, sorted by prediction", color=INK)
    axes.set_ylabel("compressive strength (MPa)", color=INK)
    axes.set_xlim(-2, len(rows) + 1)
    axes.set_ylim(0)
    axes.legend(frameon=False, loc="upper left", labelcolor=INK, handletextpad=0.4)


def _draw_distribution(axes: Any, row: _Row) -> None:
    step = 2.0
    inside = (row.hdi[0] <= row.values) & (row.values <= row.hdi[1])
    seen = row.values[row.weights > 0]
    edges = np.arange(np.floor(seen.min() / step), np.ceil(seen.max() / step) + 1) * step
    tails, body = (
        np.histogram(row.values[part], edges, weights=100 * row.weights[part])[0]
        for part in (~inside, inside)
    )
    look = {"width": 0.92 * step, "align": "edge"}
    axes.bar(edges[:-1], body, color=PALE, **look)
    axes.bar(edges[:-1], tails, bottom=body, color=MIST, **look)
    top = (tails + body).max()
    for (lower, upper), colour, name, height in (
        (row.hdi, BLUE, "90% HDI", 1.12),
        (row.equal_tailed, GREY, "equal-tailed 90%", 1.28),
    ):
        axes.plot([lower, upper], [height * top] * 2, color=colour, linewidth=3, marker="|",
                  markersize=11, markeredgewidth=2.5)  # fmt: skip
        axes.annotate(f"{name}, {upper - lower:.1f} MPa wide", (lower, height * top), (1, 6),
                      textcoords="offset points", color=colour, weight="bold")  # fmt: skip
    axes.plot([row.y] * 2, [0, 1.04 * top], color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.annotate("measured", (row.y, 0.9 * top), (-6, 0), textcoords="offset points",
                  color=INK, ha="right")  # fmt: skip
    axes.set_title("The mix whose two intervals differ most", loc="left")
    axes.set_xlabel("compressive strength (MPa)", color=INK)
    axes.set_ylabel("predicted probability (%)", color=INK)
    axes.set_ylim(0, 1.42 * top)
