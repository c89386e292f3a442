"""What intervals at one price for all rows gain, and what regions gain.

    python bench/calibration/batch.py [--quick]

One price: the total width of `allocate_coverage` over that of highest-density intervals, each of
which holds 0.90 of its distribution, with what both cover. The paper's eleven sets and three with
many zeros or ties, 2,000 training rows, three splits. Regions: `calibrate_region` of two pieces
over intervals calibrated by objective "width", and over regions of one piece. Last what a conformal
pad leaves to be gained in a model of widths, which needs no data.

Results are kept, a file a data set, and those that are there are not made again; all takes about
half an hour of one core. Prints tables of docs/coverage_and_width.md.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor

from hdiforest import HDIForestRegressor
from hdiforest.allocation import allocate_coverage
from hdiforest.calibration import OutOfBag
from hdiforest.metrics import coverage_score
from hdiforest.regions import calibrate_region

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import study

SETS = (*datasets.NAMES, "rand_hie", "rain_ibk", "storms")
SPLITS = range(3)
COVERAGE = 0.9
N_TEST = 2000
# Training rows and least leaf of what is measured; more of protein, whose targets have modes.
SIZES = dict.fromkeys(SETS, ((2000, 1),)) | {"protein": ((2000, 1), (20_000, 5))}
FOLDER = Path(__file__).parent / "results" / "batch"


def main() -> None:
    sizes = {"concrete": ((300, 1),)}
    asked = study.parser(__doc__, FOLDER)
    study.chosen(asked, globals(), SETS=tuple(sizes), SIZES=sizes, SPLITS=range(1), N_TEST=50)
    for name in SETS:
        for size, split in product(SIZES[name], SPLITS):
            work = partial(measured, name, *size, split)
            study.keep(study.path_of(FOLDER, name), (f"{size[0]} rows", split), work)
    price, region = tables()
    named = {"One price": price, "Regions": region, "What a pad leaves": table_of_pads()}
    text = "\n".join(f"**{name}**\n\n{table}\n" for name, table in named.items())
    (FOLDER / "tables.md").write_text(text, encoding="utf-8")
    print(text)


def measured(name: str, n_train: int, min_samples_leaf: int, split: int) -> dict[str, Any]:
    """Return width, coverage, worst fifth and interval score of each way, in sds of y."""
    data = datasets.load(name)
    rows = np.random.default_rng(split).permutation(len(data.y))
    n_test = min(N_TEST, len(rows) // 5)
    test, train = rows[:n_test], rows[n_test : n_test + n_train]
    X, y, unit = data.X[test], data.y[test], data.y.std()
    forest = ExtraTreesRegressor(
        200, bootstrap=True, min_samples_leaf=min_samples_leaf, random_state=split, n_jobs=-1
    )
    model = HDIForestRegressor(forest, calibration=False).fit(data.X[train], data.y[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            "hdi": _scores(y, model.predict_interval(X, COVERAGE, kind="hdi"), unit),
            "batch": _scores(y, allocate_coverage(model, X, COVERAGE).interval, unit),
        }
        model.calibrate(coverage=COVERAGE, method=OutOfBag(objective="width"), random_state=0)
        found["width"] = _scores(y, model.predict_interval(X, COVERAGE), unit)
        for way, max_pieces in {"one piece": 1, "region": 2}.items():
            known = calibrate_region(model, coverage=COVERAGE, max_pieces=max_pieces)
            found[way] = _scores_of_regions(y, known.predict(X), known, unit)
    return found


def _scores(y: np.ndarray, intervals: np.ndarray, unit: float) -> dict[str, Any]:
    return {
        "width": float((intervals[:, 1] - intervals[:, 0]).mean() / unit),
        "coverage": float(coverage_score(y, intervals)),
    }


def _scores_of_regions(y: np.ndarray, regions: Any, known: Any, unit: float) -> dict[str, Any]:
    # On a lattice a piece counts its points: else single points would cost nothing.
    lattice = known.postprocess.lattice
    more = 0.0 if lattice is None else lattice.step * (regions.n_pieces - 1)
    return {
        "width": float((regions.length + more).mean() / unit),
        "coverage": float(regions.contains(y).mean()),
        "two pieces": float((regions.n_pieces > 1).mean()),
    }


def tables() -> list[str]:
    """Return both tables of all results that are there, as Markdown."""
    price, region = [], []
    for name in SETS:
        by_size: dict[str, list[dict[str, Any]]] = {}
        for (size, _), found in sorted(study.read(study.path_of(FOLDER, name)).items()):
            by_size.setdefault(size, []).append(found)
        for size, found in by_size.items():
            own = name if size == "2000 rows" else f"{name}, {size}"
            price.append({"set": own, **_row_of_price(found)})
            region.append({"set": own, **_row_of_regions(found)})
    return [study.markdown(rows, ".2f") for rows in (price, region)]


def table_of_pads() -> str:
    """Return what pads leave to be gained where y = s e, with log-normal s and normal e.

    Mean widths are relative to those of intervals that each cover COVERAGE. One price for all rows
    gives the least of all: the density at each end is the same, so that the half width of a row is
    s sqrt(2 log(t / s)). A pad widens the base interval of each row by the same number.
    """
    found = []
    for tau in (0.25, 0.5, 0.75, 1.0):
        s = np.exp(tau * norm.ppf((np.arange(20_000) + 0.5) / 20_000))
        each = norm.ppf((1 + COVERAGE) / 2) * s

        def priced(t: float, s: np.ndarray = s) -> np.ndarray:
            return s * np.sqrt(np.log(np.maximum(t / s, 1.0)) * 2)

        def missing(half: np.ndarray, s: np.ndarray = s) -> float:
            return float((2 * norm.cdf(half / s) - 1).mean() - COVERAGE)

        def padded(level: float, s: np.ndarray = s) -> np.ndarray:
            base = norm.ppf((1 + level) / 2) * s
            pad = brentq(lambda q: missing(np.maximum(base + q, 0)), -20, 100)
            return np.maximum(base + pad, 0)

        least = priced(brentq(lambda t: missing(priced(t)), 1e-3, 1e5))
        level, best = min(
            ((level, padded(level)) for level in np.arange(0.3, 0.91, 0.02)),
            key=lambda pair: pair[1].mean(),
        )
        widest = s >= np.quantile(s, 0.8)
        shares = ((2 * norm.cdf(half[widest] / s[widest]) - 1).mean() for half in (least, best))
        found.append(
            {
                "tau": f"{tau:.2f}",
                "least of all methods": f"{least.mean() / each.mean():.3f}",
                "best base + pad (its level)": f"{best.mean() / each.mean():.3f} ({level:.2f})",
                "coverage of the widest fifth, both": ", ".join(f"{x:.2f}" for x in shares),
            }
        )
    return study.markdown(found)


def _mean(found: list[dict[str, Any]], way: str, what: str) -> float:
    return float(np.mean([each[way][what] for each in found]))


def _ratio(found: list[dict[str, Any]], way: str, other: str, what: str) -> float:
    """Return the geometric mean of the ratios of all splits."""
    logs = [np.log(each[way][what] / each[other][what]) for each in found]
    return float(np.exp(np.mean(logs)))


def _row_of_price(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "batch / HDI, raw": _ratio(found, "batch", "hdi", "width"),
        "coverage of both": _pair(found, "batch", "hdi", "coverage"),
    }


def _pair(found: list[dict[str, Any]], first: str, second: str, what: str) -> str:
    return ", ".join(f"{_mean(found, way, what):.2f}" for way in (first, second))


def _row_of_regions(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": _mean(found, "width", "width"),
        "region / interval": _ratio(found, "region", "width", "width"),
        "two pieces / one": _ratio(found, "region", "one piece", "width"),
        "coverage of both": _pair(found, "region", "width", "coverage"),
        "rows with two pieces": _mean(found, "region", "two pieces"),
    }


if __name__ == "__main__":
    main()
