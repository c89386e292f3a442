"""Measure hdicore behind other libraries' forests: agreement with them, and rows per second.

    python bench/backend/run.py            # a table in bench/backend/results
    python bench/backend/run.py --quick    # small, printed only

Each library fits its forest, and what it has of its own for an interval that holds 0.9; both then
predict the same new rows in turns, after the answers were compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import catboost
import lightgbm
import numpy as np
import treelite
import xgboost
from quantile_forest import RandomForestQuantileRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from tabulate import tabulate

from hdiforest import LeafModel, from_index, from_leaves
from turns import seconds_in_turns, study

FOLDER = Path(__file__).parent / "results"
N_TREES = 100
ENDS = [0.05, 0.95]


class Rows(NamedTuple):
    """What is learned from, and what is predicted."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


class Entry(NamedTuple):
    """A library's forest behind our intervals, and the library's own intervals."""

    library: str
    leaves: str  # how it gives leaf ids
    model: LeafModel
    mean: Callable[[np.ndarray], np.ndarray] | None  # its own, if it is that of our distribution
    own_way: str
    own: Callable[[np.ndarray], np.ndarray]  # (n, 2)


def main() -> None:
    parser = study.parser(__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    n, n_new, turns = (1000, 500, 1) if options.quick else (20_000, 20_000, 5)
    X, y = make_friedman1(n + n_new, n_features=10, noise=1.0, random_state=0)
    rows = Rows(X[:n], y[:n], X[n:], y[n:])
    found = [measure(entry, rows, turns) for entry in entries(rows, options.threads)]
    table = table_of(found)
    print(table)
    if options.quick:
        return
    about = {"rows": n, "new_rows": n_new, "trees": N_TREES, "threads": options.threads}
    text = (
        f"{N_TREES} trees on {n:,} rows of 10 features, {n_new:,} new rows, {options.threads} "
        f"threads, medians of {turns} turns.\n\n{table}\n"
    )
    study.write_run(FOLDER / "table.md", about | {"entries": found}, text)


def entries(rows: Rows, n_jobs: int) -> Iterator[Entry]:
    """Fit one library after the other."""
    X, y = rows.X, rows.y
    shared: dict[str, Any] = {"n_estimators": N_TREES, "n_jobs": n_jobs}

    forest = lightgbm.LGBMRegressor(
        boosting_type="rf", colsample_bytree=0.7, min_child_samples=5, verbose=-1, **shared
    ).fit(X, y)
    pair = [
        lightgbm.LGBMRegressor(objective="quantile", alpha=end, verbose=-1, **shared).fit(X, y)
        for end in ENDS
    ]
    yield Entry(
        "lightgbm",
        "`predict(X, pred_leaf=True)`, int32",
        from_leaves(lambda X: forest.booster_.predict(X, pred_leaf=True), X, y, n_jobs=n_jobs),
        forest.booster_.predict,
        "two boosters of quantiles",
        lambda X: np.column_stack([one.booster_.predict(X) for one in pair]),
    )

    trees = xgboost.XGBRFRegressor(
        max_depth=10, subsample=1, colsample_bynode=0.5, reg_lambda=0, min_child_weight=5, **shared
    ).fit(X, y)
    boosted = xgboost.XGBRegressor(
        objective="reg:quantileerror", quantile_alpha=ENDS, **shared
    ).fit(X, y)
    yield Entry(
        "xgboost",
        "`apply`, float32",
        from_leaves(trees.apply, X, y, n_jobs=n_jobs),
        trees.predict,
        "one booster of both quantiles",
        boosted.predict,
    )

    quiet: dict[str, Any] = {"verbose": False, "allow_writing_files": False}
    quiet |= {"iterations": N_TREES, "thread_count": n_jobs}
    cat = catboost.CatBoostRegressor(**quiet).fit(X, y)
    levels = ",".join(map(str, ENDS))
    multiple = catboost.CatBoostRegressor(
        loss_function=f"MultiQuantile:alpha={levels}", **quiet
    ).fit(X, y)
    yield Entry(
        "catboost",
        "`calc_leaf_indexes`, uint32 (boosted)",
        from_leaves(
            lambda X: cat.calc_leaf_indexes(X, thread_count=n_jobs),
            X,
            y,
            n_leaves=cat.get_tree_leaf_counts(),
            n_jobs=n_jobs,
        ),
        None,
        "one booster of both quantiles",
        multiple.predict,
    )

    gradient = GradientBoostingRegressor(random_state=0).fit(X, y)
    two = [
        GradientBoostingRegressor(loss="quantile", alpha=end, random_state=0).fit(X, y)
        for end in ENDS
    ]
    yield Entry(
        "scikit-learn",
        "`GradientBoostingRegressor.apply`, float64 (boosted)",
        from_leaves(gradient.apply, X, y, n_jobs=n_jobs),
        None,
        "two boosters of quantiles",
        lambda X: np.column_stack([one.predict(X) for one in two]),
    )

    extra = ExtraTreesRegressor(min_samples_leaf=5, random_state=0, **shared).fit(X, y)
    compiled = treelite.sklearn.import_model(extra)

    def leaf_ids(X: np.ndarray) -> np.ndarray:
        return treelite.gtil.predict_leaf(compiled, X.astype(np.float32), nthread=n_jobs)

    def compiled_mean(X: np.ndarray) -> np.ndarray:
        return treelite.gtil.predict(compiled, X.astype(np.float32), nthread=n_jobs).ravel()

    yield Entry(
        "treelite",
        "`gtil.predict_leaf`, float64",
        from_leaves(leaf_ids, X, y, n_jobs=n_jobs),
        compiled_mean,
        "none; its mean is timed",
        compiled_mean,
    )

    for most, name in ((1, "its default"), (None, "exact")):
        quantiles = RandomForestQuantileRegressor(
            min_samples_leaf=5, max_samples_leaf=most, random_state=0, **shared
        ).fit(X, y)
        again = predictor(quantiles)
        yield Entry(
            "quantile-forest",
            f"its stored leaves ({name}) and trees",
            from_index(again.forest.apply, again.index, n_jobs=n_jobs),
            lambda X, q=quantiles: q.predict(X, quantiles="mean", weighted_leaves=True),
            "`predict` of two quantiles",
            # The same weights: rows of a leaf share what it weighs. With one row it is no option.
            lambda X, q=quantiles, shared=most is None: q.predict(
                X, quantiles=ENDS, weighted_leaves=shared
            ),
        )


def predictor(forest: RandomForestQuantileRegressor) -> Any:
    """Make what the page for authors shows: quantile-forest's predict on our backend."""
    page = (Path(__file__).parents[2] / "docs" / "backend.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(re.search(r"```python\n((?:(?!```).)*class Predictor.*?)```", page, re.DOTALL)[1], names)
    return names["Predictor"](forest)


def measure(entry: Entry, rows: Rows, turns: int) -> dict[str, Any]:
    """Compare the answers, then time both in turns."""
    unit = rows.y.std()
    apart = None
    if entry.mean is not None:
        apart = float(np.abs(entry.model.predict(rows.X_new) - entry.mean(rows.X_new)).max() / unit)
        assert apart < 1e-5, f"{entry.library} predicts another mean"
    calls = {
        "ours": lambda: entry.model.predict_interval(rows.X_new, 0.9),
        "leaves": lambda: entry.model.apply(rows.X_new),
        "own": lambda: entry.own(rows.X_new),
    }
    seconds = seconds_in_turns(calls, turns)
    lower, upper = entry.model.predict_interval(rows.X_new, 0.9).T
    own_lower, own_upper = np.asarray(entry.own(rows.X_new)).reshape(len(rows.X_new), -1).T[[0, -1]]
    ratios = np.array(seconds["own"]) / seconds["ours"]
    return {
        "library": f"{entry.library} {version(PACKAGES.get(entry.library, entry.library))}",
        "leaves": entry.leaves,
        "mean_apart": apart,
        "picp": float(np.mean((lower <= rows.y_new) & (rows.y_new <= upper))),
        "mpiw": float(np.mean(upper - lower) / unit),
        "own_picp": float(np.mean((own_lower <= rows.y_new) & (rows.y_new <= own_upper))),
        "own_mpiw": float(np.mean(own_upper - own_lower) / unit),
        "own_way": entry.own_way,
        "rows_per_second": {k: len(rows.X_new) / float(np.median(v)) for k, v in seconds.items()},
        "times_as_fast": [float(np.median(ratios)), float(ratios.min()), float(ratios.max())],
    }


PACKAGES = {"xgboost": "xgboost-cpu"}


def table_of(found: list[dict[str, Any]]) -> str:
    headers = ["library", "entry", "means apart, of sd(y)", "our rows/s", "leaf ids alone"]
    headers += ["its own way", "its rows/s", "ours / its", "our PICP, MPIW", "its"]
    lines = []
    for one in found:
        speed = {name: f"{value:,.0f}" for name, value in one["rows_per_second"].items()}
        middle, low, high = one["times_as_fast"]
        apart = "no such mean" if one["mean_apart"] is None else f"{one['mean_apart']:.0e}"
        ratio = f"{middle:.2f} ({low:.2f}-{high:.2f})"
        line = [one["library"], one["leaves"], apart, speed["ours"], speed["leaves"]]
        line += [one["own_way"], speed["own"], ratio]
        line += [f"{one['picp']:.3f}, {one['mpiw']:.2f}"]
        line += [f"{one['own_picp']:.3f}, {one['own_mpiw']:.2f}" if one["own_mpiw"] > 0 else ""]
        lines.append(line)
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
