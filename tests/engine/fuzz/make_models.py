"""Write the model files that mutations start from: small ones of every kind.

    python tests/engine/fuzz/make_models.py

Run it again when the format changes.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import corpus
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from hdicore import LeafIndex
from hdiforest import HDIForestRegressor, fit_table, from_index
from hdiforest._model.out_of_bag import OutOfBagIntervals
from hdiforest.calibration import Base, Calibration, FixedLevel
from hdiforest.calibration._postprocess import PostProcess
from hdiforest.monitoring import recalibrate

N = 14


def small(**options: bool) -> RandomForestRegressor:
    """Two trees of at most four leaves."""
    return RandomForestRegressor(2, max_depth=2, random_state=0, **options)


def centred(model: HDIForestRegressor, y: np.ndarray) -> HDIForestRegressor:
    """Calibrate by hand, as the rows are too few."""
    source = OutOfBagIntervals(model._fitted, 1)
    level = FixedLevel(
        coverage=0.8,
        mean_width=1.0,
        realised=0.75,
        cross_check=None,
        base=Base("centred", "averaged", 0.5),
        q_hat=0.25,
        interval_score=1.5,
    )
    calibration = Calibration("oob", (level,), PostProcess.from_targets(y), N)
    model._fitted = replace(model._fitted, calibration=calibration, centred=source.centred_forest())
    return model


def main() -> None:
    """Put all of them in the place of the committed ones."""
    with tempfile.TemporaryDirectory() as name:
        save_all(Path(name))
        corpus.write(corpus.read() | {"model_files": corpus.files_of(Path(name))})


def save_all(folder: Path) -> None:
    """Save each model in a file of the folder."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2)).round(1).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=N)).round(1)
    weights = rng.random(N).round(2) + 0.1
    missing = X.copy()
    missing[3, 0] = np.nan
    extra = ExtraTreesRegressor(2, max_depth=1, random_state=0, bootstrap=True)
    models = {
        "all": HDIForestRegressor(small(), calibration=False).fit(X, y),
        "inbag": HDIForestRegressor(small(), weights="inbag", calibration=False).fit(X, y),
        "oob": HDIForestRegressor(small(), weights="oob", calibration=False).fit(X, y),
        "weighted": HDIForestRegressor(small(), calibration=False).fit(X, y, weights),
        "inbag_weighted": HDIForestRegressor(small(), weights="inbag", calibration=False).fit(
            X, y, weights
        ),
        "two_outputs": HDIForestRegressor(small(), calibration=False).fit(
            X, np.column_stack([y, -y])
        ),
        "extra_trees": HDIForestRegressor(extra, calibration=False).fit(X, y),
        "no_bootstrap": HDIForestRegressor(small(bootstrap=False), calibration=False).fit(X, y),
        "missing": HDIForestRegressor(small(), calibration=False).fit(missing, y),
    }
    named = HDIForestRegressor(small(), calibration=False).fit(X, y)
    named.feature_names_in_ = np.array(["a", "b"], dtype=object)
    for name, model in (models | {"named": named}).items():
        model.save(folder / name)
    models["all"].save(folder / "lean", training_rows=False)
    models["missing"].save(folder / "reference", training_rows=False, diagnostics=True)
    days = ["2024-05-30", None, "2024-06-01", "2024-05-31"]
    table = {
        "number": X[:, 0],
        "flag": [True, False] * (N // 2),
        "day": (4 * days)[:N],
        "town": ["a", "b"] * (N // 2),
        "code": [7, 5] * (N // 2),
        "key": [f"k{i}" for i in range(N)],
        "y": y,
    }
    options = {"categorical": ["code"], "id": ["key"]}
    fit_table(table, "y", estimator=small(), calibration=False, **options).save(folder / "encoded")
    new = rng.normal(size=(N, 2)).round(1).astype(np.float32)
    split = HDIForestRegressor(small(), calibration=False).fit(X, y)
    split.calibrate(new, new[:, 0], coverage=[0.5, 0.8]).save(folder / "calibrated")
    recalibrate(split, new, new[:, 0], window=9, method="aci").save(folder / "recalibrated")
    centred(HDIForestRegressor(small(), calibration=False).fit(X, y), y).save(folder / "centred")

    leaves = rng.integers(0, 3, (N, 2)).astype(np.int32)
    indices = {
        "leaves": LeafIndex(leaves, y),
        "leaves_two_outputs": LeafIndex(leaves, np.column_stack([y, -y]), sample_weight=weights),
        "leaves_pooled": LeafIndex(leaves, y, n_leaves=[4, 5], pooled=True),
    }
    for name, index in indices.items():
        from_index(np.asarray, index).save(folder / name)


if __name__ == "__main__":
    main()
