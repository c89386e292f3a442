"""What a model file holds, in words."""

from __future__ import annotations

from pathlib import Path

from hdiforest import model_file
from hdiforest.calibration.base_record import Record
from hdiforest.command.report import aligned
from hdiforest.fitted import WEIGHTINGS


def describe(path: Path) -> str:
    """Load a model file, which checks it, and list its contents in aligned lines.

    Raises
    ------
    OSError, ValueError
        As `HDIForestRegressor.load`.
    """
    fitted, facts = model_file.load(path), model_file.read_facts(path)
    forest, index = fitted.scorer.forest, fitted.scorer.index
    kept = "not in the file" if fitted.training_rows is None else "in the file"
    rows = [
        ["file", f"{path} ({_size(path.stat().st_size)})"],
        ["written by", f"hdicore {facts['hdicore']}, scikit-learn {facts['scikit_learn']}"],
        ["format version", str(facts["format_version"])],
        ["trees", f"{forest.n_trees:,}"],
        ["leaves", f"{forest.n_leaves.sum():,}"],
        ["training rows", f"{fitted.n_training_rows:,} ({kept})"],
        ["weights", f"{fitted.weights}: {WEIGHTINGS[fitted.weights]}"],
        ["in memory", f"forest {_size(forest.nbytes)}, leaf index {_size(index.nbytes)}"],
    ]
    for output in range(fitted.n_outputs):
        atoms = index.atoms(output)
        name = "target" if fitted.n_outputs == 1 else f"target {output}"
        rows.append([name, f"{atoms[0]:g} to {atoms[-1]:g}, {len(atoms):,} distinct values"])
    calibration = fitted.calibration
    rows.append(["calibration", "none" if calibration is None else f"at {_levels(calibration)}"])
    names = fitted.feature_names
    listed = "without names" if names is None else ", ".join(map(str, names))
    rows.append(["features", f"{fitted.n_features}: {listed}"])
    facts_of_file = aligned(rows, left=2)
    return facts_of_file if calibration is None else f"{facts_of_file}\n\n{calibration!r}"


def _levels(calibration: Record) -> str:
    return ", ".join(f"{coverage:g}" for coverage in calibration.coverages)


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
