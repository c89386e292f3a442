"""Files of models: what the codec makes of them, in files that `_tensor_file` writes and reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hdiforest._model.fitted import FittedForest
from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._objects import opened_objects, stored_objects
from hdiforest.serving._schema import OBJECTS, Arrays, Facts, Origin, check_arrays
from hdiforest.serving._serialization import (
    IndexedLeaves,
    Parts,
    from_arrays,
    leaves_from_arrays,
    leaves_to_arrays,
    to_arrays,
)
from hdiforest.serving._tensor_file import Format, Loaded


def save(fitted: FittedForest, path: Path, *, training_rows: bool) -> None:
    """Write a fitted forest, with or without its training rows; see `HDIForestRegressor.save`."""
    facts, arrays, objects = to_arrays(fitted, training_rows=training_rows)
    if objects:
        arrays["objects"] = stored_objects(objects)
    tensor_file.write(path, MODEL, facts, arrays)


def load(
    path: Path, *, verify: bool = False, mapped: bool = True, trusted: Sequence[Any] = ()
) -> Loaded[FittedForest]:
    """Return the fitted forest stored at `path`; see `HDIForestRegressor.load`."""
    form = replace(MODEL, read=partial(_read_model, trusted=trusted))
    loaded = tensor_file.load(path, form, verify=verify, mapped=mapped)
    return loaded._replace(content=replace(loaded.content, check_file=loaded.check_file))


def save_leaves(leaves: IndexedLeaves, path: Path) -> None:
    """Write leaves; see `LeafModel.save`."""
    facts, arrays, _ = leaves_to_arrays(leaves)
    tensor_file.write(path, LEAVES, facts, arrays)


def load_leaves(path: Path, *, verify: bool = False, mapped: bool = True) -> Loaded[IndexedLeaves]:
    """Return what `save_leaves` wrote; see `LeafModel.load`."""
    return tensor_file.load(path, LEAVES, verify=verify, mapped=mapped)


def _read_model(
    facts: Facts, arrays: Arrays, origin: Origin, trusted: Sequence[Any] = ()
) -> FittedForest:
    own = {name: array for name, array in arrays.items() if name not in OBJECTS}
    objects = {}
    if len(own) < len(arrays):
        stored = {name: arrays[name] for name in OBJECTS}
        check_arrays(stored, OBJECTS, {})
        objects = opened_objects(stored["objects"], trusted)
    return from_arrays(Parts(facts, own, objects), origin, copy=False)


def _read_leaves(facts: Facts, arrays: Arrays, origin: Origin) -> IndexedLeaves:
    return leaves_from_arrays(Parts(facts, arrays, {}), origin, copy=False)


MODEL = Format("model file", "model", "hdicore_model", _read_model)


LEAVES = Format("file of LeafModel.save", "index", "hdicore_leaf_index", _read_leaves)
