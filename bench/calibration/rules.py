"""The calibration's rule, and the rule before it, on the same splits: widths, scores, coverages.

    python bench/calibration/rules.py            # what is missing, then the tables
    python bench/calibration/rules.py --tables   # the tables alone

Both have the forest of `HDIForestRegressor()` with 200 trees. The rule before is that of a commit,
compiled in `build/revisions`. Beside the splits of the evaluation: 300 rows of each data set, and
targets that are pure noise. Each result is written at once and skipped when present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor

from comparing import of_both
from frames import at, by_set, read_scores
from hdiforest import HDIForestRegressor
from hdiforest.calibration import OutOfBag
from hdiforest.metrics import coverage_score, mean_width_score
from protocol import (
    EVALUATION,
    GROUPS,
    RESULTS,
    SETS,
    Scale,
    datasets,
    measure,
    measure_on,
    split,
    study,
)
from revisions import WORKTREE, built_tree, start
from systems import SYSTEMS
from systems.interface import System, Training
from systems.ours import COVERAGES, DEFAULT, EARLIER, THREE_KINDS
from tables import pair_row

FOLDER, EVALUATED = RESULTS / "rules", RESULTS / EVALUATION.name
RULES = {DEFAULT: WORKTREE, EARLIER: "8da7a508"}
SMALL = Scale("rules", 300, 2000, 2, 200, SETS)
NOISE = {f"noise_{n}": n for n in (150, 300, 600, 2000)}
N_REPETITIONS = 12
# Sets with so many training rows, of which so many at most give the quantiles.
LARGE, N_LARGE, MAX_ROWS = ("diamonds", "protein"), 22_000, (10_000, 20_000)
N_FITS = 5
N_FEATURES, N_TEST = 6, 2000  # of noise
JUDGING = GROUPS["sets that judge"] + GROUPS["twelve more that judge"]
QUICK = {
    "EVALUATED": None,
    "RULES": {DEFAULT: WORKTREE},
    "SMALL": SMALL._replace(n_splits=1, n_trees=80),
    "SETS": ("concrete",),
    "NOISE": {"noise_150": 150},
    "N_REPETITIONS": 1,
    "LARGE": (),
}
_LOSES = 1.02  # a ratio that the last table shows


def main() -> None:
    asked = study.parser(__doc__, FOLDER)
    asked.add_argument("--tables", action="store_true", help="write the tables alone")
    asked.add_argument("--rule", choices=RULES, help="measure by the package that is imported")
    options = study.chosen(asked, globals(), **QUICK)
    if options.rule:
        measure_missing(options.rule)
    elif not options.tables:
        same = ["--results", options.results, *(["--quick"] if options.quick else [])]
        for rule, revision in RULES.items():
            process = start(built_tree(revision), __file__, "--rule", rule, *same)
            print(process.communicate()[0], end="")
            if process.returncode:
                raise SystemExit(process.returncode)
    if not options.rule:
        study.write_tables(FOLDER / "tables.md", sections())


def measure_missing(rule: str) -> None:
    """Measure a rule on small splits and on noise; the one before in the evaluation, too."""
    system = SYSTEMS[rule]._replace(fit=SYSTEMS[DEFAULT].fit)
    if rule == EARLIER:
        for seed, name in product(range(EVALUATION.n_splits), SETS):
            found = partial(measure, system, name, seed, EVALUATION)
            _keep(EVALUATED, name, system, seed, found)
    for seed, name in product(range(SMALL.n_splits), SETS):
        _keep(FOLDER, name, system, seed, partial(on_few, system, name, seed))
    for name, n in NOISE.items():
        for seed in range(N_REPETITIONS):
            _keep(FOLDER, name, system, seed, partial(on_noise, system, n, seed))
    if rule == DEFAULT:
        for name, seed in product(LARGE, range(N_FITS)):
            _keep(FOLDER, f"{name}_by_rows", system, seed, partial(by_rows, name, seed))


def by_rows(name: str, seed: int) -> dict[str, Any]:
    """Return coverage and width at 0.9 by the number of rows that give the quantile."""
    data = datasets.load(name, whole=True)
    order = np.random.default_rng(seed).permutation(len(data.y))
    train, test = np.split(order, [N_LARGE])
    forest = ExtraTreesRegressor(100, bootstrap=True, random_state=seed, n_jobs=1)
    model = HDIForestRegressor(forest, n_jobs=1, calibration=False)
    model.fit(data.X[train], data.y[train])
    found = {}
    for n in MAX_ROWS:
        model.calibrate(coverage=0.9, method=OutOfBag(n), random_state=seed)
        ends = model.predict_interval(data.X[test], 0.9)
        covered = float(coverage_score(data.y[test], ends))
        found[str(n)] = [round(covered, 5), round(float(mean_width_score(ends)), 6)]
    return found


def rows_table() -> pd.DataFrame:
    """Return means and standard deviations over the fits of `by_rows`."""

    def rows() -> Iterator[dict[str, str]]:
        for name in LARGE:
            results = study.read(study.path_of(FOLDER, f"{name}_by_rows")).values()
            for n in map(str, MAX_ROWS) if results else ():
                coverage, width = np.array([result[n] for result in results]).T
                yield {
                    "set": name,
                    "rows": n,
                    "fits": str(len(results)),
                    "coverage": f"{coverage.mean():.4f}",
                    "its sd": f"{coverage.std(ddof=1):.4f}",
                    "sd of the width, %": f"{100 * width.std(ddof=1) / width.mean():.2f}",
                }

    return pd.DataFrame(rows())


def _keep(
    folder: Path, name: str, system: System, seed: int, measured: Callable[[], dict[str, Any]]
) -> None:
    """Add a result unless it is there of the same version."""
    study.keep(study.path_of(folder, name), (system.name, seed), measured, system.version)


def on_few(system: System, name: str, seed: int) -> dict[str, Any]:
    """Measure a system on a split of `SMALL`."""
    data = datasets.load(name)
    train, test = split(len(data.y), seed, SMALL)
    training = Training(data.X[train], data.y[train], system.coverages, seed, SMALL.n_trees)
    spread = data.y.std(), np.ptp(data.y)
    return measure_on(system, training, data.X[test], data.y[test], spread)


def on_noise(system: System, n: int, seed: int) -> dict[str, Any]:
    """Measure a system where features say nothing of a standard normal target."""
    rng = np.random.default_rng(seed)
    X = rng.random((n + N_TEST, N_FEATURES), dtype=np.float32)
    y = rng.normal(size=len(X))
    training = Training(X[:n], y[:n], system.coverages, seed, SMALL.n_trees)
    return measure_on(system, training, X[n:], y[n:], (1.0, 1.0))


def sections() -> dict[str, str]:
    """Return the tables by title, as far as there are results."""
    now_and_before, kinds_and_one = (DEFAULT, EARLIER), (THREE_KINDS, DEFAULT)
    small = read_scores(FOLDER, (*SETS, *NOISE))
    full = read_scores(EVALUATED) if EVALUATED else small  # a small run has no other splits
    groups = {
        "all data sets": SETS,
        "all that judge": JUDGING,
        **{name: GROUPS[name] for name in ("sets that judge", "twelve more that judge")},
    }
    of_noise = beside(small, {f"{n} rows": (name,) for name, n in NOISE.items()}, now_and_before)
    of_noise = of_noise.filter(regex="^(?!.*(set|largest))")
    return {
        "Up to 2,000 training rows": study.markdown(beside(full, groups, now_and_before)),
        "300 training rows": study.markdown(beside(small, groups, now_and_before)),
        "Pure noise": study.markdown(of_noise),
        "Where it loses, up to 2,000 training rows": study.markdown(losses(full)),
        "Where it loses, 300 training rows": study.markdown(losses(small[small["set"].isin(SETS)])),
        "Three kinds of intervals beside one": study.markdown(beside(full, groups, kinds_and_one)),
        "Rows that give the quantile": study.markdown(rows_table()),
    }


def beside(
    scores: pd.DataFrame, groups: dict[str, Sequence[str]], pair: tuple[str, str]
) -> pd.DataFrame:
    """Return one system beside another at each coverage, over groups of data sets."""

    def rows() -> Iterator[dict[str, str]]:
        for coverage in COVERAGES:
            both = of_both(at(scores, coverage), *pair)
            for title, names in groups.items():
                if len(members := both[both["set"].isin(names)]):
                    yield {"nominal": f"{coverage:g}", "rows of": title} | pair_row(members, *pair)

    table = pd.DataFrame(rows())
    return table[[c for c in table if c not in ("system", "beside") and "prediction" not in c]]


def losses(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the data sets on which the rule has a larger width or score than the one before."""
    found = []
    for coverage in COVERAGES:
        if not len(both := of_both(at(scores, coverage), DEFAULT, EARLIER)):
            continue
        means = by_set(both)
        mine, its = (means.xs(name, level="system") for name in (DEFAULT, EARLIER))
        row = {"nominal": f"{coverage:g}"}
        for title, name in {"width": "width", "score": "interval_score"}.items():
            ratio = (mine[name] / its[name]).dropna().sort_values(ascending=False)
            lost = [f"{where} {value:.2f}" for where, value in ratio.items() if value >= _LOSES]
            row[f"{title}: {_LOSES} times or more"] = ", ".join(lost) or "none"
            row[f"{title}: so much less"] = str((ratio <= 1 / _LOSES).sum())
        found.append(row)
    return pd.DataFrame(found)


if __name__ == "__main__":
    main()
