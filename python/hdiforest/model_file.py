"""Models as files: safetensors layout, no code in them, memory-mapped, checked before use."""

from __future__ import annotations

import hashlib
import json
import reprlib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer, __version__
from hdiforest.atomic import replacing
from hdiforest.importing import TrainingRows
from hdiforest.model_schema import check_facts, check_tensors, check_training_rows
from hdiforest.report import printable

if TYPE_CHECKING:
    from hdiforest.estimator import HDIForestRegressor

FORMAT_VERSION = 1
METADATA_KEY = "hdicore_model"
_HASHED_AT_ONCE = 1 << 24  # signals wait for so many bytes
_DTYPES = {
    "U8": "<u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "I32": "<i4",
    "I64": "<i8",
    "F32": "<f4",
    "F64": "<f8",
}


def save(model: HDIForestRegressor, path: Path, *, training_rows: bool) -> None:
    """Write a fitted model; see `HDIForestRegressor.save`."""
    _require_safetensors()
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    forest, index = model.scorer_.forest, model.scorer_.index
    rows = model._require_training_rows() if training_rows else None
    groups: dict[str, Any] = {"forest": forest.arrays(), "index": index.arrays()}
    if rows is not None:
        groups["training"] = {"X": rows.X, "y": rows.y}
        if rows.sample_weight is not None:
            groups["training"]["sample_weight"] = rows.sample_weight
        if rows.counts is not None:
            groups["training"]["counts"] = np.ascontiguousarray(rows.counts)
    tensors = {
        f"{group}.{name}": array
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    names = getattr(model, "feature_names_in_", None)
    facts = {
        "format_version": FORMAT_VERSION,
        "hdicore": __version__,
        "scikit_learn": version("scikit-learn"),
        "weights": model.weights_,
        "n_features": forest.n_features,
        "feature_names": None if names is None else [str(name) for name in names],
        "scalar_output": index.scalar_output,
        "n_training_rows": model.n_training_rows_,
        "allow_nan": model._allow_nan,
        "counts_are_weighted": rows is not None and rows.counts_are_weighted,
    }
    metadata = {METADATA_KEY: json.dumps({"facts": facts, "sha256": _digest(facts, tensors)})}
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"cannot write {path}: {error}") from None


def load_into(model: HDIForestRegressor, path: Path) -> None:
    """Make `model` the one stored at `path`; see `HDIForestRegressor.load`."""
    _require_safetensors()
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        # Proves that the header is well-formed and its ranges tile the file.
        with safe_open(path, framework="np"):
            pass
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a model file, or is damaged: {printable(str(error))}"
        ) from None
    metadata, tensors = _map_tensors(path)
    facts, sha256 = _facts(path, metadata)
    if sha256 != _digest(facts, tensors):
        raise ValueError(f"{path} is damaged: its checksum does not match its contents")
    try:
        check_facts(facts)
        check_tensors(tensors)
        _assemble(model, facts, tensors)
    except ValueError as error:
        raise ValueError(f"{path} is not a valid model: {printable(str(error))}") from None


def read_facts(path: Path) -> dict[str, Any]:
    """Facts about a model file that `load_into` has accepted: versions, weights, names, sizes."""
    metadata, _ = _map_tensors(path)
    return _facts(path, metadata)[0]


def _assemble(
    model: HDIForestRegressor, facts: dict[str, Any], tensors: dict[str, NDArray[Any]]
) -> None:
    groups: dict[str, Any] = {"forest": {}, "index": {}, "training": {}}
    for name, array in tensors.items():
        group, _, key = name.partition(".")
        groups[group][key] = array
    forest = Forest.from_arrays(groups["forest"], facts["n_features"], copy=False)
    index = LeafIndex.from_arrays(groups["index"], facts["scalar_output"], copy=False)
    scorer = Scorer(forest, index)
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    if max(map(len, atoms)) > facts["n_training_rows"]:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    training = groups["training"]
    if training:
        check_training_rows(training, facts, forest.n_trees, atoms)

    model.weights = model.weights_ = facts["weights"]
    model.scorer_ = scorer
    model.n_features_in_ = facts["n_features"]
    model.n_outputs_ = index.n_outputs
    model.n_training_rows_ = facts["n_training_rows"]
    if facts["feature_names"] is not None:
        model.feature_names_in_ = np.array(facts["feature_names"], dtype=object)
    model._allow_nan = facts["allow_nan"]
    model._training_rows = None
    if training:
        model._training_rows = TrainingRows(
            training["X"],
            training["y"],
            training.get("sample_weight"),
            training.get("counts"),
            facts["counts_are_weighted"],
        )


def _map_tensors(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Metadata and views of the tensors in a file whose structure has been proved."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"{path} is damaged: its header names something twice")
        return found

    content = np.memmap(path, dtype=np.uint8, mode="r")
    start = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:start].tobytes(), object_pairs_hook=unique)
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise ValueError(
                f"{path} is not a model file: {printable(name)} has type {entry['dtype']}"
            )
        begin, end = entry["data_offsets"]
        data = content[start + begin : start + end]
        tensors[name] = data.view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return metadata, tensors


def _facts(path: Path, metadata: dict[str, str]) -> tuple[dict[str, Any], str]:
    try:
        found = json.loads(metadata[METADATA_KEY])
        facts, sha256 = dict(found["facts"]), str(found["sha256"])
        format_version = facts["format_version"]
    except (KeyError, RecursionError, TypeError, ValueError):
        raise ValueError(f"{path} is not an hdicore model: it holds other tensors") from None
    if format_version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has model format {reprlib.repr(format_version)}, written by hdicore "
            f"{printable(str(facts.get('hdicore'))[:100])}; this version reads format "
            f"{FORMAT_VERSION}: upgrade hdicore"
        )
    return facts, sha256


def _digest(facts: dict[str, Any], tensors: dict[str, NDArray[Any]]) -> str:
    """SHA-256 over everything a model is made of."""
    state = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        contents = array.reshape(-1).view(np.uint8).data
        for begin in range(0, len(contents), _HASHED_AT_ONCE):
            state.update(contents[begin : begin + _HASHED_AT_ONCE])
    return state.hexdigest()


def _require_safetensors() -> None:
    try:
        import safetensors  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError(
            "model files need the package safetensors: pip install 'hdicore[io]'"
        ) from None
