"""Times the quantiles and means of ranger (R) beside an exact HDI, in turns, one thread.

    nox -s ranger [-- --turns N]

Each has a forest of its own of the same size, on the same rows. ranger keeps one training row of
each leaf, and so do its quantiles: they are those of quantile-forest's default, not the exact ones.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

from cases import CASES, Case, load
from hdiforest import HDIForestRegressor

NAMES = ("friedman_20k_leaf1", "friedman_20k_leaf5", "friedman_20k_leaf50")
N_PEER = 2000  # rows that ranger predicts


def ratios_of(case: Case, turns: int) -> dict[str, list[float]]:
    """Processor time a row of ranger over that of the HDI, by kind of work."""
    X, y, queries = load(case)
    forest = RandomForestRegressor(case.trees, min_samples_leaf=case.leaf, n_jobs=-1)
    model = HDIForestRegressor.from_forest(forest.set_params(random_state=0).fit(X, y), X, y)
    model.n_jobs = 1
    names = [f"x{j}" for j in range(X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        train, new = Path(folder, "train.csv"), Path(folder, "new.csv")
        pd.DataFrame(X, columns=names).assign(target=y).to_csv(train, index=False)
        pd.DataFrame(queries[:N_PEER], columns=names).to_csv(new, index=False)
        call = ["Rscript", Path(__file__).with_suffix(".R"), train, new]
        call += [case.trees, 2 * case.leaf]  # ranger splits nodes of so many rows
        peer = subprocess.Popen(
            [str(word) for word in call], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert peer.stdin is not None
        assert peer.stdout is not None
        if peer.stdout.readline() != "ready\n":
            raise RuntimeError("ranger did not start")
        found: dict[str, list[float]] = {"quantiles": [], "mean": []}
        for _ in range(turns):
            start = time.process_time()
            model.predict_interval(queries, 0.9)
            ours = (time.process_time() - start) / len(queries)
            for work, ratios in found.items():
                peer.stdin.write(work + "\n")
                peer.stdin.flush()
                ratios.append(float(peer.stdout.readline()) / N_PEER / ours)
        peer.communicate()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    print("| case | ranger, 2 quantiles / HDI | ranger, mean / HDI |")
    print("|---|---:|---:|")
    for case in CASES:
        if case.name not in NAMES:
            continue
        found = ratios_of(case, options.turns)
        cells = [
            f"{np.median(ratios):.3g} ({min(ratios):.3g}-{max(ratios):.3g})"
            for ratios in found.values()
        ]
        print(f"| {case.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
