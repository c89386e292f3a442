"""Coverage and width of calibrated intervals on the paper's data, before and after.

    python bench/calibration/run.py [--sets NAME ...] [--seeds N]

Each unit is a data set and a split: 2,000 random training rows (or four fifths of a smaller set),
up to 5,000 others as test rows. Units that are in `results` are not run again. Prints the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "paper")]

import store  # noqa: E402
from datasets import NAMES, load  # noqa: E402
from hdiforest import HDIForestRegressor  # noqa: E402
from hdiforest.metrics import (  # noqa: E402
    coverage_by_width,
    coverage_score,
    interval_score,
    mean_width_score,
)

RESULTS = HERE / "results"
MAX_TRAINING = 2000
MAX_TEST = 5000
COVERAGES = (0.5, 0.8, 0.9, 0.95)
# Forests by name: scikit-learn's default, and the paper's least leaf.
FORESTS = {"default": {}, "leaf 5": {"min_samples_leaf": 5, "max_features": 1 / 3}}


def measure(name: str, seed: int) -> dict[str, object]:
    """Fit, calibrate and score one split."""
    data = load(name)
    order = np.random.default_rng(seed).permutation(len(data.y))
    n_train = min(MAX_TRAINING, round(0.8 * len(order)))
    train, test = order[:n_train], order[n_train : n_train + MAX_TEST]
    results: dict[str, object] = {"n_train": len(train), "n_test": len(test)}
    scale = float(data.y[train].std())
    for forest_name, options in FORESTS.items():
        forest = RandomForestRegressor(300, random_state=seed, n_jobs=2, **options)
        forest.fit(data.X[train], data.y[train])
        model = HDIForestRegressor.from_forest(forest, data.X[train], data.y[train])
        found = {"raw": model.predict_interval(data.X[test], COVERAGES, kind="hdi")}
        model.calibrate(COVERAGES)
        found["calibrated"] = model.predict_interval(data.X[test], COVERAGES)
        for kind, intervals in found.items():
            y = data.y[test]
            worst = [
                float(np.nanmin(coverage_by_width(y, intervals[..., j], n_strata=5).coverage))
                for j in range(len(COVERAGES))
            ]
            results[f"{forest_name}, {kind}"] = {
                "coverage": np.asarray(coverage_score(y, intervals)).tolist(),
                "width": (np.asarray(mean_width_score(intervals)) / scale).tolist(),
                "interval_score": (
                    np.asarray(interval_score(y, intervals, COVERAGES)) / scale
                ).tolist(),
                "worst_of_five": worst,
            }
        results[f"{forest_name}, chosen"] = [
            [*level.choice.base] for level in model.calibration_.levels
        ]
    return results


def frame(sets: Sequence[str]) -> pd.DataFrame:
    """One line for each data set, split, forest, kind and coverage."""
    lines = []
    for name in sets:
        for (_, seed), result in store.read(RESULTS / f"{name}.jsonl").items():
            for key, values in result.items():
                if not isinstance(values, dict):
                    continue
                forest, kind = key.split(", ")
                for j, coverage in enumerate(COVERAGES):
                    entry = {measure: column[j] for measure, column in values.items()}
                    lines.append(
                        {"set": name, "seed": seed, "forest": forest, "kind": kind}
                        | {"nominal": coverage, **entry}
                    )
    return pd.DataFrame(lines)


def tables(results: pd.DataFrame) -> str:
    """Means over splits, a line for each data set."""
    texts = []
    for (forest, nominal), part in results.groupby(["forest", "nominal"]):
        means = part.groupby(["set", "kind"])[
            ["coverage", "width", "interval_score", "worst_of_five"]
        ].mean()
        texts.append(f"Forest: {forest}; nominal {nominal:g}\n\n{means.unstack().round(3)}\n")
        off = (means["coverage"].unstack() - nominal).abs().mean()
        texts.append(f"mean |coverage - nominal|: {off.round(4).to_dict()}\n")
    return "\n".join(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    options = parser.parse_args(arguments)
    for name in options.sets:
        path = RESULTS / f"{name}.jsonl"
        done = store.read(path)
        for seed in range(options.seeds):
            if (name, seed) not in done:
                store.add(path, {(name, seed): measure(name, seed)})
                print(name, seed, file=sys.stderr, flush=True)
    with pd.option_context("display.width", 200, "display.max_columns", 20):
        print(tables(frame(options.sets)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
