"""Turns results into tables: figures with their spread, their goals, and whether these are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cases import CASES
from default_fit import STEPS, times_forest
from goals import CALIBRATED_SCORING, FIT, Goal, goals_of

PEERS = {
    "forest": "scikit-learn, mean",
    "onnx": "ONNX Runtime, mean",
    "lightgbm": "LightGBM, mean",
    "xgboost": "XGBoost, mean",
    "peer_exact": "quantile-forest, exact",
    "peer_default": "quantile-forest, default",
}
WORKS = {"quantiles": "2 quantiles", "mean": "mean", "command": "mean and 3 levels"}


@dataclass(frozen=True)
class Cell:
    """A figure as text."""

    text: str
    goal: Goal | None = None
    met: bool | None = None  # None: no goal


@dataclass(frozen=True)
class Table:
    """One table; the first column names the case."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]


Result = dict[str, Any]


def tables_of(results: list[Result]) -> list[Table]:
    """All tables that the results can fill."""
    speed, memory = of_kind(results, "speed"), of_kind(results, "memory")
    fits = of_kind(results, "fit")
    makers = ((_work, speed), (_peers, speed), (_one_row, speed), (_build, speed), (_peak, memory))
    makers += ((_default_fit, fits), (_calibrated, fits))
    return [make(chosen) for make, chosen in makers if chosen]


def of_kind(results: list[Result], kind: str) -> list[Result]:
    """Results of one kind, in the order of the cases."""
    order = [case.name for case in CASES]

    def position(result: Result) -> tuple[int, str]:
        name = result["case"]["name"]
        return (order.index(name) if name in order else len(order)), name

    return sorted((result for result in results if result["kind"] == kind), key=position)


def remarks_on(results: list[Result]) -> list[str]:
    """Say what was left out, and why."""
    return [
        f"{result['case']['name']}: without {PEERS[name]}: {reason}"
        for result in of_kind(results, "speed")
        for name, reason in result["left_out"].items()
    ]


def ratios(result: Result, threads: str, work: str, base: str = "hdi") -> np.ndarray | None:
    """Time of one kind of work over another's, turn by turn; None if it was not measured."""
    times = result["us_per_row"][threads]
    measured = work in times and base in times
    return np.array(times[work]) / np.array(times[base]) if measured else None


def _work(results: list[Result]) -> Table:
    rows = []
    for result in results:
        case = result["case"]["name"]
        goals = goals_of(case)
        for threads, times in result["us_per_row"].items():
            one = None if threads == "1" else result["us_per_row"].get("1")
            speedup = None if one is None else np.array(one["hdi"]) / np.array(times["hdi"])
            used = result["machine"].get("instructions", "-")
            row = [Cell(case), Cell(threads), Cell(used), _spread(times["hdi"])]
            row.append(_spread(ratios(result, threads, "hdi", "routing"), goals["routing"]))
            row.append(_spread(ratios(result, threads, "routing_float64", "routing")))
            row.append(_spread(ratios(result, threads, "hdi_5"), goals["hdi_5"]))
            to_half = ratios(result, threads, "hdi_5", "hdi_half")
            row.append(_spread(to_half, goals["hdi_5_half"]))
            row += [_spread(ratios(result, threads, work)) for work in WORKS]
            row.append(_spread(speedup, goals["two_threads"] if threads == "2" else None))
            rows.append(row)
    columns = ["case", "threads", "instructions", "HDI, us/row", "HDI / routing"]
    columns += ["float64 routing / routing", "5 levels / HDI", "5 levels / level 0.5"]
    columns += [*(f"{name} / HDI" for name in WORKS.values()), "speed over 1 thread"]
    return Table("Kinds of work", columns, rows)


def _peers(results: list[Result]) -> Table:
    rows = []
    for result in results:
        case = result["case"]["name"]
        goals = goals_of(case)
        for threads in result["us_per_row"]:
            found = [(ratios(result, threads, peer), goals.get(peer)) for peer in PEERS]
            rows.append([Cell(case), Cell(threads), *(_spread(*figure) for figure in found)])
    columns = ["case", "threads", *(f"{name} / HDI" for name in PEERS.values())]
    return Table("How many times as long others take", columns, rows)


def _one_row(results: list[Result]) -> Table:
    rows = []
    for result in results:
        case, calls = result["case"]["name"], result["one_row_us"]
        goals = goals_of(case)
        medians = {name: times["median"] for name, times in calls.items()}
        shown = [
            Cell(f"{_short(times['median'])} ({_short(times['p10'])}-{_short(times['p90'])})")
            for times in (calls[name] for name in ("estimator", "scorer", "forest"))
        ]
        shown[0] = _judged(shown[0].text, medians["estimator"], goals["one_row"])
        factor = medians["forest"] / medians["estimator"]
        shown.append(_judged(_short(factor), factor, goals["one_row_forest"]))
        shown.append(Cell(_short(medians["onnx"]) if "onnx" in medians else "-"))
        rows.append([Cell(case), *shown])
    columns = ["case", "estimator, us", "scorer, us", "scikit-learn, mean, us"]
    columns += ["scikit-learn / estimator", "ONNX Runtime, mean, us"]
    return Table("One row per call", columns, rows)


def _build(results: list[Result]) -> Table:
    rows = []
    for result in results:
        case, size = result["case"]["name"], result["bytes"]
        goals = goals_of(case)
        imports = np.array(result["import_seconds"])
        row = [Cell(case), Cell(_short(result["fit_seconds"])), _spread(imports)]
        row.append(_spread(100 * imports / result["fit_seconds"], goals["import"]))
        row.append(_spread(1000 * np.array(result["load_seconds"]), goals["load"]))
        row += [_megabytes(size[name]) for name in ("index", "nodes", "forest", "peer_exact")]
        for other, goal in (("forest", "index_forest"), ("peer_exact", "index_peer")):
            if size[other] is None:
                row.append(Cell("-"))
            else:
                share = size["index"] / size[other]
                row.append(_judged(f"{share:.3f}", share, goals[goal]))
        rows.append(row)
    columns = ["case", "fit, s", "import, s", "import, % of fit", "load, ms"]
    columns += ["index, MB", "our nodes, MB", "forest, MB", "quantile-forest's leaves, MB"]
    columns += ["index / forest", "index / quantile-forest's leaves"]
    return Table("Build", columns, rows)


def _default_fit(results: list[Result]) -> Table:
    rows = []
    for result in results:
        name = result["case"]["name"]
        row = [Cell(name), Cell(str(result["threads"])), _spread(result["seconds"]["whole"])]
        row += [_spread(result["processor_seconds"][step]) for step in STEPS]
        row.append(_spread(times_forest(result, "processor_seconds"), FIT.get(name)))
        rows.append([*row, _spread(times_forest(result, "seconds"))])
    columns = ["training rows", "threads", "whole, s", *(f"{step}, CPU s" for step in STEPS)]
    columns += ["fit / forest, CPU time", "fit / forest, by the clock"]
    return Table("Default fit, whole", columns, rows)


def _calibrated(results: list[Result]) -> Table:
    rows = []
    for result in results:
        seconds = {name: np.array(times) for name, times in result["scoring_seconds"].items()}
        us = 1e6 * seconds["hdi_1"] / result["case"]["queries"]
        row = [Cell(result["case"]["name"]), Cell(str(result["threads"])), _spread(us)]
        for base, levels in (("hdi_1", 1), ("hdi_5", 5)):
            ratio = seconds[f"calibrated_{levels}"] / seconds[base]
            row.append(_spread(ratio, CALIBRATED_SCORING))
        rows.append([*row, Cell(", ".join(dict.fromkeys(result["bases"])))])
    columns = ["training rows", "threads", "raw HDI, us/row", "calibrated / raw, level 0.9"]
    columns += ["calibrated / raw, 5 levels", "bases of the last turn"]
    return Table("Calibrated scoring", columns, rows)


def _peak(results: list[Result]) -> Table:
    rows = []
    for result in results:
        build = result["build"]
        row = [Cell(result["case"]["name"]), Cell(f"{result['n_scored']:,}")]
        row += [_megabytes(build[name]) for name in ("increase", "kept", "X")]
        for step in ("score_float32", "score_float64"):
            score = result[step]
            row += [_megabytes(score["increase"] - score["output"]), _megabytes(score["X"])]
        rows.append(row)
    columns = ["case", "rows scored", "import, MB", "of it kept, MB", "training X, MB"]
    columns += ["scoring float32 beyond output, MB", "X, MB"]
    columns += ["scoring float64 beyond output, MB", "X, MB"]
    return Table("Peak memory above what was there before", columns, rows)


def _spread(figures: np.ndarray | list[float] | None, goal: Goal | None = None) -> Cell:
    """Median, least and largest; the median is held against the goal."""
    if figures is None:
        return Cell("-")
    middle, least, largest = np.median(figures), np.min(figures), np.max(figures)
    text = f"{_short(middle)} ({_short(least)}-{_short(largest)})"
    return Cell(text) if goal is None else _judged(text, middle, goal)


def _judged(text: str, figure: float, goal: Goal) -> Cell:
    return Cell(text, goal, bool(goal.met(figure)))


def _megabytes(size: int | None) -> Cell:
    return Cell("-" if size is None else _short(size / 1e6))


def _short(figure: float) -> str:
    """Three digits, or the whole number."""
    decimals = 0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2
    return f"{figure:,.{decimals}f}"
