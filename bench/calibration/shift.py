"""What tells rows whose intervals miss, where rows to predict are not like the training rows.

    python bench/calibration/shift.py [--quick]

On fourteen data sets two shifts are made. "edge": the training rows have the lower 70 % of one of
the three features that matter most, and half the test rows the upper 30 %. "cluster": half the
test rows are of one of six clusters of the features, weighted by importance, that no training row
is of. The other test rows are like the training rows. Of each number of `diagnose`, and of others
that a forest has, the area under the ROC curve (AUC) for "the calibrated 0.90 interval misses" is
measured, where coverage of the shifted rows is below 0.85.

Results are kept, a file a data set, and those that are there are not made again; all takes about
five minutes. Prints a table of docs/coverage_and_width.md.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score

from hdiforest import HDIForestRegressor
from hdiforest.inspection import diagnose

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

PLAIN = ("boston", "parkinsons", "wine", "concrete", "energy", "naval", "power_plant")
SETS = (*PLAIN, "protein", "communities", "ames", "chicago", "computers", "diamonds", "hotel_rates")
KINDS = ("edge", "cluster")
SPLITS = range(3)
COVERAGE = 0.9
MAX_ROWS = 2000
SHIFTED = 0.85  # coverage of the shifted rows below which there is something to find
FOLDER = Path(__file__).parent / "results" / "shift"


def main() -> None:
    quick = {"SETS": ("concrete",), "SPLITS": range(1), "MAX_ROWS": 300}
    asked = study.parser(__doc__, FOLDER)
    study.chosen(asked, globals(), **quick, SHIFTED=1.1)  # whatever is covered counts
    for name, kind, split in product(SETS, KINDS, SPLITS):
        work = partial(measured, name, kind, split)
        study.keep(study.path_of(FOLDER, name), (kind, split), work)
    text = table()
    (FOLDER / "tables.md").write_text(text, encoding="utf-8")
    print(text)


def measured(name: str, kind: str, split: int) -> dict[str, Any]:
    """Return coverage, and for each number its AUC and the coverage of the tenth flagged first."""
    data = datasets.load(name)
    rng = np.random.default_rng(split)
    X, y = data.X[: len(data.y)], data.y
    first = rng.choice(len(y), min(len(y), 3 * MAX_ROWS), replace=False)
    X, y = X[first], y[first]
    importance = _model(X, y, False).estimator_.feature_importances_
    is_shifted = _edge(X, importance, split) if kind == "edge" else _cluster(X, importance, split)
    alike, shifted = np.flatnonzero(~is_shifted), np.flatnonzero(is_shifted)[:MAX_ROWS]
    n_test = min(len(shifted), len(alike) // 4)
    train, test = alike[n_test:][:MAX_ROWS], np.concatenate([alike[:n_test], shifted[:n_test]])
    model = _model(X[train], y[train], [COVERAGE])
    lower, upper = model.predict_interval(X[test], COVERAGE).T
    missed = (y[test] < lower) | (upper < y[test])
    found: dict[str, Any] = {
        "rows": [len(train), n_test],
        "coverage": [float(1 - part.mean()) for part in np.split(missed, 2)],
    }
    for number, values in _numbers(model, X[test], upper - lower).items():
        worst = np.argsort(-values, kind="stable")[: max(1, len(test) // 10)]
        auc = roc_auc_score(missed, values) if 0 < missed.sum() < len(missed) else None
        found[number] = {"auc": auc, "tenth": float(1 - missed[worst].mean())}
    return found


def _model(X: np.ndarray, y: np.ndarray, calibration: Any) -> HDIForestRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HDIForestRegressor(calibration=calibration, n_jobs=-1, random_state=0).fit(X, y)


def _edge(X: np.ndarray, importance: np.ndarray, rank: int) -> np.ndarray:
    """Return which rows have the upper 30 % of a feature; of those whose ties leave a fifth."""
    upper = np.nan_to_num(X, nan=-np.inf) > np.nanquantile(X, 0.7, axis=0)
    features = np.argsort(-importance, kind="stable")
    return upper[:, features[upper[:, features].mean(axis=0) >= 0.2][rank]]


def _cluster(X: np.ndarray, importance: np.ndarray, split: int) -> np.ndarray:
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X).astype(np.float64)
    sd = filled.std(axis=0)
    points = (filled - filled.mean(axis=0)) / np.where(sd > 0, sd, 1) * np.sqrt(importance)
    labels = KMeans(6, n_init=4, random_state=0).fit_predict(points)
    return labels == np.argsort(-np.bincount(labels))[split]  # of the largest three


def _numbers(model: HDIForestRegressor, X: np.ndarray, width: np.ndarray) -> dict[str, np.ndarray]:
    diagnosis = diagnose(model, X, COVERAGE)
    shown = ("dissimilarity", "out_of_range", "tree_spread", "mass_outside", "interval_se")
    raw = np.diff(model.predict_interval(X, COVERAGE, kind="hdi"), axis=1).ravel()
    squares = model.predict_weights(X).power(2).sum(axis=1)
    return {name: diagnosis[name].astype(float) for name in shown} | {
        "width of the raw HDI": raw,
        "width of the calibrated interval": width,
        "1 / effective rows (sum of squared weights)": np.asarray(squares).ravel(),
    }


def table() -> str:
    """Return the means over the cases with something to find, as a table."""
    cases = [
        (kind, case)
        for name in SETS
        for (kind, _), case in study.read(study.path_of(FOLDER, name)).items()
        if case["coverage"][1] < SHIFTED
    ]
    numbers = [each for each in cases[0][1] if each not in ("rows", "coverage")]
    rows = []
    for number in numbers:
        row: dict[str, Any] = {"number": number}
        for kind in KINDS:
            own = [case for of_kind, case in cases if of_kind == kind]
            aucs = [c[number]["auc"] for c in own if c[number]["auc"] is not None]
            row[f"AUC, {kind}"] = np.mean(aucs)
            row[f"coverage of the tenth flagged first, {kind}"] = np.mean(
                [c[number]["tenth"] for c in own]
            )
        rows.append(row)
    head = [
        f"{kind}: {len(own)} of {len(SETS) * len(SPLITS)} cases, coverage "
        f"{np.mean([c['coverage'][0] for c in own]):.2f} of rows alike and "
        f"{np.mean([c['coverage'][1] for c in own]):.2f} of shifted ones"
        for kind in KINDS
        for own in [[case for of_kind, case in cases if of_kind == kind]]
    ]
    body = study.markdown(rows, ".2f")
    return f"## Shifted rows\n\n{'; '.join(head)}.\n\n{body}\n"


if __name__ == "__main__":
    main()
