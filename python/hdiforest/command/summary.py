"""What a model file holds, in words."""

from __future__ import annotations

from pathlib import Path

from hdiforest.command.report import aligned
from hdiforest.estimator import HDIForestRegressor
from hdiforest.model_file import read_facts

WEIGHTS = {
    "all": "all training rows of a leaf",
    "inbag": "training rows as often as the tree drew them",
    "oob": "training rows that the tree did not see",
}


def describe(path: Path) -> str:
    """Load a model file, which checks it, and list its contents in aligned lines.

    Raises
    ------
    OSError, ValueError
        As `HDIForestRegressor.load`.
    """
    model = HDIForestRegressor.load(path)
    facts = read_facts(path)
    forest, index = model.scorer_.forest, model.scorer_.index
    rows = [
        ["file", f"{path} ({_size(path.stat().st_size)})"],
        ["written by", f"hdicore {facts['hdicore']}, scikit-learn {facts['scikit_learn']}"],
        ["format version", str(facts["format_version"])],
        ["trees", f"{forest.n_trees:,}"],
        ["leaves", f"{forest.n_leaves.sum():,}"],
        ["training rows", f"{model.n_training_rows_:,} ({_kept(model)})"],
        ["weights", f"{model.weights_}: {WEIGHTS[model.weights_]}"],
        ["in memory", f"forest {_size(forest.nbytes)}, leaf index {_size(index.nbytes)}"],
    ]
    for output in range(model.n_outputs_):
        atoms = index.atoms(output)
        name = "target" if model.n_outputs_ == 1 else f"target {output}"
        rows.append([name, f"{atoms[0]:g} to {atoms[-1]:g}, {len(atoms):,} distinct values"])
    names = getattr(model, "feature_names_in_", None)
    listed = "without names" if names is None else ", ".join(map(str, names))
    rows.append(["features", f"{model.n_features_in_}: {listed}"])
    return aligned(rows, left=2)


def _kept(model: HDIForestRegressor) -> str:
    return "not in the file" if model._training_rows is None else "in the file"


def _size(n_bytes: int) -> str:
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
