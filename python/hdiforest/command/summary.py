"""What a model file holds, in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.fitted import FittedForest
from hdiforest._model.training_rows import WEIGHTINGS
from hdiforest.calibration._result import Record
from hdiforest.command.report import aligned
from hdiforest.serving import _model_file as model_file


@dataclass(frozen=True)
class Contents:
    """A model file that was checked, and its facts."""

    path: Path
    fitted: FittedForest
    facts: dict[str, Any]

    def json(self) -> str:
        """Return an object of JSON: names and sizes, the coding, and the calibration."""
        fitted = self.fitted
        forest, index = fitted.scorer.forest, fitted.scorer.index
        names, coding, calibration = fitted.feature_names, fitted.coding, fitted.calibration
        return json.dumps(
            {
                "file": str(self.path),
                "bytes": self.path.stat().st_size,
                "hdicore": self.facts["hdicore"],
                "scikit_learn": self.facts["scikit_learn"],
                "format_version": self.facts["format_version"],
                "trees": forest.n_trees,
                "leaves": int(forest.n_leaves.sum()),
                "training_rows": fitted.n_training_rows,
                "has_training_rows": fitted.training_rows is not None,
                "weights": fitted.weights,
                "bytes_in_memory": {"forest": forest.nbytes, "leaf_index": index.nbytes},
                "targets": [_range(index.atoms(output)) for output in range(fitted.n_outputs)],
                "n_features": fitted.n_features,
                "features": None if names is None else [str(name) for name in names],
                "coding": None if coding is None else coding.facts(),
                "calibration": None
                if calibration is None
                else {
                    "method": calibration.method,
                    "rows": calibration.n,
                    "coverages": list(calibration.coverages),
                },
            },
            indent=2,
            allow_nan=False,
        )

    def text(self) -> str:
        """Return the contents in aligned lines."""
        fitted, facts = self.fitted, self.facts
        forest, index = fitted.scorer.forest, fitted.scorer.index
        kept = "not in the file" if fitted.training_rows is None else "in the file"
        rows = [
            ["file", f"{self.path} ({_size(self.path.stat().st_size)})"],
            ["written by", f"hdicore {facts['hdicore']}, scikit-learn {facts['scikit_learn']}"],
            ["format version", str(facts["format_version"])],
            ["trees", f"{forest.n_trees:,}"],
            ["leaves", f"{forest.n_leaves.sum():,}"],
            ["training rows", f"{fitted.n_training_rows:,} ({kept})"],
            ["weights", f"{fitted.weights}: {WEIGHTINGS[fitted.weights]}"],
            ["in memory", f"forest {_size(forest.nbytes)}, leaf index {_size(index.nbytes)}"],
        ]
        for output in range(fitted.n_outputs):
            low, high, n = _range(index.atoms(output)).values()
            name = "target" if fitted.n_outputs == 1 else f"target {output}"
            rows.append([name, f"{low:g} to {high:g}, {n:,} distinct values"])
        calibration, coding = fitted.calibration, fitted.coding
        levels = "none" if calibration is None else f"at {_levels(calibration)}"
        rows.append(["calibration", levels])
        rows.append(["features", f"{fitted.n_features}: {_features(fitted)}"])
        if coding is not None and coding.ids:
            rows.append(["columns that name rows", ", ".join(coding.ids)])
        facts_of_file = aligned(rows, left=2)
        return facts_of_file if calibration is None else f"{facts_of_file}\n\n{calibration!r}"


def contents(path: Path) -> Contents:
    """Load a model file after checking everything in it.

    Raises
    ------
    OSError, ValueError
        As `HDIForestRegressor.load`.
    """
    loaded = model_file.load(path, verify=True)
    return Contents(path, loaded.content, loaded.facts)


def _features(fitted: FittedForest) -> str:
    if fitted.coding is not None:
        return ", ".join(map(str, fitted.coding.entries))
    names = fitted.feature_names
    return "without names" if names is None else ", ".join(map(str, names))


def _range(atoms: NDArray[np.float64]) -> dict[str, Any]:
    return {"min": float(atoms[0]), "max": float(atoms[-1]), "n_distinct": len(atoms)}


def _levels(calibration: Record) -> str:
    return ", ".join(f"{coverage:g}" for coverage in calibration.coverages)


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
