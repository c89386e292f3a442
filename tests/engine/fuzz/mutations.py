"""Damage model files on purpose: facts, shapes, types and numbers, with a valid checksum."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._model_file import LEAVES, MODEL

ODD_VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, -(2**63), 10**400),
    *(0.5, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", "a", "abcd", "all", "inbag", "oob", "1", "\x1b[31m", "a\nb", "\ud800", "\x00", "a" * 300),
    *([], ["a"], ["a", "a"], [1, 2], ["\x1b[2J", "\n"], [[]], {}, {"a": 1}),
]
FACTS = [
    *("format_version", "hdicore", "scikit_learn", "weights", "n_features", "feature_names"),
    *("scalar_output", "n_training_rows", "allow_nan", "counts_are_weighted", "calibration"),
    *("matches_forest", "training_digest", "encoder", "steps", "mean", "folds"),
]
DTYPES = ["<u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8"]
EXTREMES = [0, 1, -1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 3.5e38]

KEYS = (MODEL.key, LEAVES.key)

Tensors = dict[str, np.ndarray]
Facts = dict[str, Any]


def mutate(data: bytes, random: Random) -> bytes:
    """Change a model file in one place or a few.

    What is no model file any more gets other bytes. Most results have the checksum that fits, so
    that all that reads them is reached.
    """
    parts = _parts(data)
    if parts is None or random.random() < 0.05:
        return _damage_bytes(data, random)
    key, facts, tensors = parts
    while True:
        change = _change_facts if random.random() < 0.3 else _change_tensors
        change(facts, tensors, random)
        if random.random() < 0.5:
            break
    try:
        made = _written(key, facts, tensors)
    except (SafetensorError, UnicodeEncodeError):  # nothing that could stand in a file
        return _damage_bytes(data, random)
    return _damage_header(made, random) if random.random() < 0.1 else made


def _parts(data: bytes) -> tuple[str, Facts, Tensors] | None:
    try:
        tensors = {name: np.array(array) for name, array in load(data).items()}
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        metadata = header["__metadata__"]
        key = next(key for key in KEYS if key in metadata)
        return key, dict(json.loads(metadata[key])["facts"]), tensors
    except (SafetensorError, KeyError, StopIteration, TypeError, ValueError):
        return None


def _written(key: str, facts: Facts, tensors: Tensors) -> bytes:
    content = tensor_file._content(facts, tensors)
    return save(tensors, metadata={key: json.dumps(content)})


def _change_facts(facts: Facts, tensors: Tensors, random: Random) -> None:
    name = random.choice([*FACTS, *FACTS, "other"])
    value = facts.get(name)
    kind = random.randrange(5)
    if kind == 0:
        facts.pop(name, None)
    elif kind == 1 and isinstance(value, int):
        facts[name] = value + random.choice([-1, 1])
    elif kind == 2:
        facts[name] = facts.get(random.choice(FACTS))
    elif kind == 3:
        facts["feature_names"] = [
            random.choice(["a", "b", f"x{k}", "\x1b]0;", 5, None])
            if random.random() < 0.3
            else f"x{k}"
            for k in range(_whole(facts.get("n_features")))
        ]
    else:
        facts[name] = random.choice(ODD_VALUES)


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= 64 else 3


def _change_tensors(facts: Facts, tensors: Tensors, random: Random) -> None:
    if not tensors or random.random() < 0.05:
        _add_tensor(facts, tensors, random)
        return
    name = random.choice(sorted(tensors))
    change = random.choice([_poke, _poke, _poke, _poke, _lengthen, _reshape, _retype, _rename])
    change(name, tensors, random)


def _add_tensor(facts: Facts, tensors: Tensors, random: Random) -> None:
    n = _whole(facts.get("n_training_rows"))
    name = random.choice(
        [
            "training.sample_weight",
            "training.counts",
            "index.units",
            "index.seen",
            "index.copies",
            "a",
        ]
    )
    tensors[name] = np.ones(n, random.choice(DTYPES))


def _poke(name: str, tensors: Tensors, random: Random) -> None:
    flat = tensors[name].reshape(-1).copy()
    if flat.size == 0 or flat.dtype.kind == "b":  # the type that a damaged header gave it
        return
    at = random.randrange(flat.size)
    kind = random.randrange(5)
    with np.errstate(all="ignore"):
        if kind == 0:
            flat[at] = flat[random.randrange(flat.size)]
        elif kind == 1:
            flat[at : at + 1] += (
                flat.dtype.type(1) if random.random() < 0.5 else -flat.dtype.type(1)
            )
        elif kind == 2:
            values = FLOATS if flat.dtype.kind == "f" else EXTREMES
            flat[at] = np.array(random.choice(values)).astype(flat.dtype)
        elif kind == 3:
            other = random.randrange(flat.size)
            flat[[at, other]] = flat[[other, at]]
        else:
            flat.view(np.uint8)[random.randrange(flat.nbytes)] ^= 1 << random.randrange(8)
    tensors[name] = flat.reshape(tensors[name].shape)


def _lengthen(name: str, tensors: Tensors, random: Random) -> None:
    array = tensors[name]
    if array.ndim == 0 or array.shape[0] == 0:
        tensors[name] = np.zeros(random.randrange(4), array.dtype)
        return
    n = random.choice([-1, 1, -2, 2, -len(array), len(array)])
    rows = np.arange(max(0, min(len(array) + n, 4096)))
    tensors[name] = array[np.minimum(rows, len(array) - 1)]


def _reshape(name: str, tensors: Tensors, random: Random) -> None:
    array = tensors[name]
    shapes: list[Callable[[], np.ndarray]] = [
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.reshape(-1),
        lambda: np.ascontiguousarray(array.T),
        lambda: array.reshape(-1)[:1].reshape(()) if array.size else array,
        lambda: array[:0],
        lambda: np.stack([array, array]),
    ]
    if array.ndim > 0:
        tensors[name] = random.choice(shapes)()


def _retype(name: str, tensors: Tensors, random: Random) -> None:
    array, dtype = tensors[name], np.dtype(random.choice(DTYPES))
    if random.random() < 0.5:
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(dtype)
    else:
        flat = np.frombuffer(array.tobytes(), np.uint8)
        tensors[name] = flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype)


def _rename(name: str, tensors: Tensors, random: Random) -> None:
    kind = random.randrange(4)
    if kind == 0:
        del tensors[name]
        return
    other = random.choice(sorted(tensors))
    if kind == 1:
        tensors[name], tensors[other] = tensors[other], tensors[name]
    elif kind == 2:
        tensors[name] = tensors[other]
    else:
        group = random.choice(["forest.", "index.", "training.", "", "other."])
        tensors[group + name.partition(".")[2]] = tensors.pop(name)


def _damage_header(data: bytes, random: Random) -> bytes:
    """Change an entry of the header, without a new checksum."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    entry = header[random.choice(sorted(header))]
    key = random.choice(sorted(entry))
    odd: list[Any] = ["F16", "BF16", "BOOL", "U8", "I64", [], [0], [-1], [2**63], [1, 1], None, 1.5]
    entry[key] = random.choice(odd)
    if random.random() < 0.2:
        header["a" * random.randrange(3)] = entry
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + size :]


def _damage_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    kind = random.randrange(3)
    if kind == 0 or not changed:
        changed += random.randbytes(random.randrange(1, 9))
    elif kind == 1:
        del changed[random.randrange(len(changed)) :]
    else:
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)
