"""Damage model files on purpose: texts, shapes, types and numbers, with a valid checksum."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._model_file import LEAVES, MODEL
from hdiforest.serving._parts import as_text
from hdiforest.serving._tensor_file import Format

TEXTS = [
    *("", "a", "a\0b\0", "0" * 32, "3", "[]", "{}", "null", "\x1b[31m", "\ud800", "[" * 300),
    *('{"levels": []}', '{"columns": [], "ids": []}', '{"n": 1e999}'),
]
TEXTUAL = [
    *("feature_names", "target_names", "training_digest", "encoder", "steps", "not_in_c"),
    "calibration.facts",
]
DTYPES = ["<u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8"]
EXTREMES = [0, 1, -1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324, 3.5e38]

FORMS = {form.key: form for form in (MODEL, LEAVES)}

Tensors = dict[str, np.ndarray]


def mutate(data: bytes, random: Random) -> bytes:
    """Change a model file in one place or a few.

    What is no model file any more gets other bytes. Most results have the checksum that fits, so
    that all that reads them is reached.
    """
    parts = _parts(data)
    if parts is None or random.random() < 0.05:
        return _damage_bytes(data, random)
    form, tensors = parts
    while True:
        change = _change_text if random.random() < 0.2 else _change_tensors
        change(tensors, random)
        if random.random() < 0.5:
            break
    try:
        made = _written(form, tensors)
    except (OSError, SafetensorError, UnicodeEncodeError):  # nothing that could stand in a file
        return _damage_bytes(data, random)
    return _damage_header(made, random) if random.random() < 0.1 else made


def _parts(data: bytes) -> tuple[Format[Any], Tensors] | None:
    try:
        tensors = {name: np.array(array) for name, array in sorted(load(data).items())}
        (size,) = struct.unpack("<Q", data[:8])
        metadata = json.loads(data[8 : 8 + size])["__metadata__"]
        del tensors["digests"]
        return next(form for key, form in FORMS.items() if key in metadata), tensors
    except (SafetensorError, KeyError, StopIteration, TypeError, ValueError):
        return None


def _written(form: Format[Any], tensors: Tensors) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        tensor_file.write(path, form, tensors)
        return path.read_bytes()


def _change_text(tensors: Tensors, random: Random) -> None:
    name = random.choice([*TEXTUAL, *tensors])
    text = random.choice(TEXTS)
    if name in tensors and random.random() < 0.5:
        own = tensors[name].tobytes().decode("latin-1")
        at = random.randrange(len(own) + 1)
        text = own[:at] + text + own[at + random.randrange(3) :]
    tensors[name] = as_text(text)


def _change_tensors(tensors: Tensors, random: Random) -> None:
    if not tensors or random.random() < 0.05:
        _add_tensor(tensors, random)
        return
    name = random.choice(sorted(tensors))
    change = random.choice([_poke, _poke, _poke, _poke, _lengthen, _reshape, _retype, _rename])
    change(name, tensors, random)


def _add_tensor(tensors: Tensors, random: Random) -> None:
    n = random.choice([3, len(tensors.get("training.y", ()))])
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
