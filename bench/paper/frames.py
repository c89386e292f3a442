"""Reads results into data frames: one row for each data set, system, split and target or level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

import tasks
from protocol import results_of
from published import SYSTEMS
from systems import FAMILIES
from systems.interface import LEVELS
from tasks import study

STRATA = ("zero", "narrow", "middle", "wide")
# The paper's systems in its order, then the others.
_RESULTS = [system for family in FAMILIES.values() for system in results_of(family)]
ORDER = [*SYSTEMS, *(system for system in _RESULTS if system not in SYSTEMS)]


def read_scores(folder: Path) -> pd.DataFrame:
    """Return the measures on the test part, a row for each target PICP."""
    rows = []
    for keys, result in _results(folder):
        shared = {
            name: result[name] for name in ("n_train", "n_test", "tuning_seconds", "unit_seconds")
        }
        for target, found in result["targets"].items():
            strata = {
                f"{measure}_{stratum}": value
                for measure in ("rows", "picp")
                for stratum, value in zip(STRATA, found["strata"][measure], strict=True)
            }
            rows.append(
                {
                    **keys,
                    **shared,
                    "target": float(target),
                    **{name: value for name, value in found.items() if name not in _NESTED},
                    "training_picp": found["training"]["picp"],
                    **strata,
                }
            )
    if not rows:
        raise study.NotHereError(f"{folder} holds no results; run.py measures them.")
    return _ordered(pd.DataFrame(rows))


def read_curves(folder: Path) -> pd.DataFrame:
    """Return PICP and MPIW at the nominal levels, a row for each level."""
    rows = [
        {**keys, "level": level, "picp": picp, "mpiw": mpiw}
        for keys, result in _results(folder)
        if result["curve"]
        for level, picp, mpiw in zip(
            LEVELS, result["curve"]["picp"], result["curve"]["mpiw"], strict=True
        )
    ]
    return _ordered(pd.DataFrame(rows))


def read_settings(folder: Path) -> pd.DataFrame:
    """Return what was chosen, a row for each target and setting."""
    rows = [
        {**keys, "target": float(target), "setting": setting, "value": value}
        for keys, result in _results(folder)
        for target, found in result["targets"].items()
        for setting, value in found["settings"].items()
    ]
    return _ordered(pd.DataFrame(rows))


_NESTED = ("settings", "strata", "training")


def _results(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for task in tasks.NAMES:
        results = study.read(study.path_of(folder, task))
        for system, seed in product(ORDER, range(tasks.MOST_SPLITS)):
            if (system, seed) in results:
                yield {"task": task, "system": system, "seed": seed}, results[system, seed]


def _ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Let rows sort in the order of the paper, not of the alphabet."""
    return frame.assign(
        task=pd.Categorical(frame["task"], tasks.NAMES, ordered=True),
        system=pd.Categorical(frame["system"], ORDER, ordered=True),
    )
