"""Which number a category becomes: coverage of new rows and width by frequency and by target means.

    python bench/tables/category_order.py [--quick]

Prints a table of docs/coverage_and_width.md, in about a minute on two cores. Codes are learned on
two thirds of the rows; calibrated intervals of 90 % are measured out of bag, and on the other
third.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from hdiforest import HDIForestRegressor
from hdiforest.metrics import coverage_score, mean_width_score

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

Array = NDArray[np.float64]
Categories = NDArray[np.int64]
N_FOLDS = 5
N_ROWS, N_DATA_ROWS = 6000, 8000
PRIOR_ROWS = 10  # that the mean of all targets counts in the mean of a category


class Table(NamedTuple):
    """Rows with columns of categories."""

    name: str
    numbers: Array  # (n, n_numbers)
    categories: Categories  # (n, n_categorical)
    y: Array  # (n,)


def tables() -> Iterator[Table]:
    rng = np.random.default_rng(0)
    n = N_ROWS
    for k in (100, 1000, 2500):
        yield Table(
            f"noise, {k} categories in {n} rows",
            rng.normal(size=(n, 2)),
            rng.integers(0, k, (n, 1)),
            rng.normal(size=n),
        )
    effects, found = rng.normal(size=1500), rng.integers(0, 1500, (n, 1))
    y = effects[found[:, 0]] + rng.normal(size=n)
    yield Table("an effect of each of 1500 categories", rng.normal(size=(n, 2)), found, y)
    for name, what, columns in (
        ("protein", "protein, two columns in 1000 and 50 categories", {0: 1000, 2: 50}),
        ("power_plant", "power plant, temperature in 200 shuffled categories", {0: 200}),
        ("wine", "wine, alcohol in 60 shuffled categories", {10: 60}),
    ):
        data = datasets.load(name)
        rows = rng.permutation(len(data.y))[:N_DATA_ROWS]
        X, y = data.X[rows].astype(float), data.y[rows]
        made = [shuffled_bins(X[:, j], k, rng) for j, k in columns.items()]
        yield Table(what, np.delete(X, list(columns), axis=1), np.column_stack(made), y)


def shuffled_bins(values: Array, k: int, rng: np.random.Generator) -> Categories:
    """Return categories of about equally many rows, whose numbers say nothing of their order."""
    bins = np.searchsorted(np.quantile(values, np.arange(1, k) / k), values)
    return rng.permutation(k)[bins]


def by_frequency(train: Categories, _: Array, new: Categories) -> tuple[Array, Array]:
    counts = np.bincount(train, minlength=1 + max(train.max(), new.max()))
    ranks = np.empty(len(counts))
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    ranks[counts == 0] = np.nan
    return ranks[train], ranks[new]


def means(categories: Categories, y: Array, k: int) -> Array:
    """Return the mean target of each category, drawn to the mean of all; NaN without rows."""
    counts = np.bincount(categories, minlength=k)
    sums = np.bincount(categories, weights=y, minlength=k)
    return np.where(counts > 0, (sums + PRIOR_ROWS * y.mean()) / (counts + PRIOR_ROWS), np.nan)


def by_mean(train: Categories, y: Array, new: Categories) -> tuple[Array, Array]:
    found = means(train, y, 1 + max(train.max(), new.max()))
    return found[train], found[new]


def by_mean_of_other_folds(train: Categories, y: Array, new: Categories) -> tuple[Array, Array]:
    k = 1 + max(train.max(), new.max())
    codes = np.empty(len(train))
    fold = np.random.default_rng(0).permutation(len(train)) % N_FOLDS
    for f in range(N_FOLDS):
        codes[fold == f] = means(train[fold != f], y[fold != f], k)[train[fold == f]]
    return codes, means(train, y, k)[new]


class Measured(NamedTuple):
    """How calibrated intervals did."""

    new: float  # coverage of new rows
    out_of_bag: float  # coverage that the cross-check found
    width: float  # mean of new rows


def measured(table: Table, coded: Callable[..., tuple[Array, Array]]) -> Measured:
    rows = np.random.default_rng(1).permutation(len(table.y))
    train, new = np.split(rows, [2 * len(rows) // 3])
    y = table.y
    codes = [coded(column[train], y[train], column[new]) for column in table.categories.T]
    X_train, X_new = (
        np.column_stack([table.numbers[part], *(pair[i] for pair in codes)])
        for i, part in enumerate((train, new))
    )
    forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0, n_jobs=-1)
    model = (
        HDIForestRegressor(forest, n_jobs=-1, calibration=False)
        .fit(X_train, y[train])
        .calibrate(coverage=0.9, random_state=0)
    )
    intervals = model.predict_interval(X_new, 0.9)
    check = model.calibration_.levels[0].cross_check
    return Measured(
        float(coverage_score(y[new], intervals)),
        check.coverage,
        float(mean_width_score(intervals)),
    )


def main() -> None:
    study.chosen(study.parser(__doc__), globals(), N_ROWS=600, N_DATA_ROWS=600)
    print(
        "| table | coverage of new rows: by frequency | by mean | by mean of other folds "
        "| out of bag, by mean | width over frequency: mean | mean of other folds |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    for table in tables():
        frequency, mean, folds = (
            measured(table, coded) for coded in (by_frequency, by_mean, by_mean_of_other_folds)
        )
        cells = [frequency.new, mean.new, folds.new, mean.out_of_bag]
        cells += [each.width / frequency.width for each in (mean, folds)]
        print(f"| {table.name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
