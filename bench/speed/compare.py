"""Times this code beside another commit's: a process for each, in turns, by processor time.

    python bench/speed/compare.py b2943ce [--only NAME ...] [--turns N] [--works NAME ...] [--quick]

Both get the same forest and rows. Answers are compared first, bit by bit; means to 2^-31 of the
targets' range. Shown are medians of the ratios, turn by turn, with the outer quarters. The other
commit is compiled once, into build/revisions. The work `score` is the command, from a Parquet file
to another, with its own start.
"""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
import revisions
from cases import CASES, load, study

N_SCORED_ROWS = 300_000  # by the command
COMMAND_LEVELS = ("0.8", "0.9", "0.95")
WORKS = ("hdi", "hdi_5", "quantiles", "mean", "command", "import", "score")
DEFAULT_WORKS = ("hdi", "hdi_5", "mean", "command")
DEFAULT_CASES = ("friedman_20k_leaf1", "friedman_20k_leaf5", "friedman_20k_leaf50", "few_distinct")


def serve(folder: Path, wanted: list[str], answers: Path) -> None:
    """Write answers once, then do each work that is named on standard input, and print its time."""
    from hdiforest import HDIForestRegressor

    forest, X, y, queries = pickle.loads((folder / "case").read_bytes())
    model = HDIForestRegressor.from_forest(forest, X, y, n_jobs=1)
    works = works_of(model, forest, X, y, queries, folder)
    shape = (len(queries),) if y.ndim == 1 else (len(queries), y.shape[1])

    def all_of() -> dict[str, np.ndarray]:
        mean = np.empty(shape)
        found = {name: works[name]() for name in wanted if name in ("hdi", "hdi_5", "quantiles")}
        found["command"] = model.scorer_.intervals(
            queries, [float(level) for level in COMMAND_LEVELS], mean=mean, n_threads=1
        )
        return found | {"mean": mean}

    np.savez(answers, **all_of())
    for name in wanted:
        works[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        before = processor_time()
        works[line.strip()]()
        print(processor_time() - before, flush=True)


def processor_time() -> float:
    """Of this process and of the children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def works_of(
    model: object, forest: object, X: np.ndarray, y: np.ndarray, queries: np.ndarray, folder: Path
) -> dict[str, Callable[[], np.ndarray]]:
    from hdiforest import HDIForestRegressor

    scorer, n = model.scorer_, len(queries)
    shape = (n,) if y.ndim == 1 else (n, y.shape[1])
    levels = [float(level) for level in COMMAND_LEVELS]
    model_file = folder / f"model-{os.getpid()}"

    def score() -> None:
        if not model_file.exists():
            model.save(model_file, training_rows=False)
        out = folder / f"out-{os.getpid()}.parquet"
        call = [
            sys.executable,
            "-P",
            "-m",
            "hdiforest",
            "score",
            model_file,
            folder / "new.parquet",
        ]
        call += ["-o", out, "--kind", "hdi", "--coverage", *COMMAND_LEVELS, "--jobs", "1"]
        subprocess.run([str(word) for word in call], check=True, stdout=subprocess.DEVNULL)

    return {
        "hdi": lambda: model.predict_interval(queries, 0.9),
        "hdi_5": lambda: model.predict_interval(queries, [0.5, 0.8, 0.9, 0.95, 0.99]),
        "quantiles": lambda: model.predict_quantiles(queries, [0.05, 0.95]),
        "mean": lambda: model.predict(queries),
        "command": lambda: scorer.intervals(queries, levels, mean=np.empty(shape), n_threads=1),
        "import": lambda: HDIForestRegressor.from_forest(forest, X, y, n_jobs=1),
        "score": score,
    }


def compare(name: str, other: str, works: list[str], turns: int) -> dict[str, list[float]]:
    """Ratios, turn by turn, of this code's time over the other's, by work.

    Raises
    ------
    AssertionError
        If answers differ.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        y = prepare(name, folder, with_table="score" in works)
        trees = {"new": revisions.built_tree(revisions.WORKTREE)}
        trees["old"] = revisions.built_tree(other)
        files = {side: folder / f"{side}.npz" for side in trees}
        with ExitStack() as ended:
            servers = {}
            for side, tree in trees.items():
                server = revisions.start(tree, __file__, "--serve", folder, files[side], *works)
                servers[side] = ended.enter_context(server)
            for server in servers.values():
                assert server.stdout is not None
                if server.stdout.readline() != "ready\n":
                    raise RuntimeError(f"a process of {name} failed")
            check_alike(np.load(files["new"]), np.load(files["old"]), y)
            ratios: dict[str, list[float]] = {work: [] for work in works}
            for turn in range(turns):
                for work in works:
                    sides = ("new", "old") if turn % 2 else ("old", "new")
                    times = {side: timed(servers[side], work) for side in sides}
                    ratios[work].append(times["new"] / times["old"])
            return ratios


def prepare(name: str, folder: Path, *, with_table: bool) -> np.ndarray:
    """Write forest and rows of a case, and return its targets."""
    (case,) = (each for each in CASES if each.name == name)
    X, y, queries = load(case)
    forest = RandomForestRegressor(
        case.trees, min_samples_leaf=case.leaf, n_jobs=-1, random_state=0
    )
    forest.fit(X, y).set_params(n_jobs=1)
    (folder / "case").write_bytes(pickle.dumps((forest, X, y, queries)))
    if with_table:
        drawn = np.random.default_rng(3).integers(len(queries), size=N_SCORED_ROWS)
        noise = 1e-3 * np.random.default_rng(4).normal(size=(N_SCORED_ROWS, X.shape[1]))
        names = [f"x{j}" for j in range(X.shape[1])]
        pd.DataFrame(queries[drawn] + noise, columns=names).to_parquet(folder / "new.parquet")
    return y


def timed(server: subprocess.Popen[str], work: str) -> float:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(work + "\n")
    server.stdin.flush()
    return float(server.stdout.readline())


def check_alike(new: dict[str, np.ndarray], old: dict[str, np.ndarray], y: np.ndarray) -> None:
    for name in new:
        if name == "mean":
            np.testing.assert_allclose(new[name], old[name], rtol=0, atol=2**-31 * np.ptp(y))
        else:
            np.testing.assert_array_equal(new[name], old[name])


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), sys.argv[4:], Path(sys.argv[3]))
        return
    parser = study.parser(__doc__)
    parser.add_argument("other", help="a commit")
    names = [case.name for case in CASES]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=DEFAULT_WORKS)
    parser.add_argument("--turns", type=int, default=11)
    tiny = {"CASES": (replace(CASES[0], name="tiny", rows=300, trees=5, queries=200),)}
    options = study.chosen(parser, globals(), **tiny, DEFAULT_CASES=("tiny",), N_SCORED_ROWS=100)
    print("| case | " + " | ".join(options.works) + " |")
    print("|---|" + "---:|" * len(options.works))
    for name in options.only or DEFAULT_CASES:
        ratios = compare(name, options.other, list(options.works), options.turns)
        shown = []
        for work in options.works:
            low, middle, high = np.percentile(ratios[work], [25, 50, 75])
            shown.append(f"{middle:.2f} ({low:.2f}-{high:.2f})")
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
