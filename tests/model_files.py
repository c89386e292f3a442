"""Files of models and of what watches them with other arrays, whose checksums fit."""

import json
import re
import struct

import numpy as np

from hdiforest.serving import _tensor_file as tensor_file
from hdiforest.serving._parts import as_text
from hdiforest.serving._serialization import Numbers

NUMBER_NAMES = Numbers._fields  # by their places


def arrays_of(path):
    """Arrays of a model file, without their checksums."""
    from safetensors.numpy import load_file

    arrays = dict(load_file(path))
    del arrays["digests"]
    return arrays


def facts_of(path, name):
    """An object of JSON, which is an array of a model file."""
    return json.loads(arrays_of(path)[name].tobytes())


def rewritten(path, *changes, to=None):
    """Change the arrays of a file, and give it checksums that fit, as who is hostile does."""
    from safetensors import safe_open

    tensors = arrays_of(path)
    for change in changes:
        change(tensors)
    with safe_open(path, "numpy") as file:
        (key,) = file.metadata()
    tensor_file.write(to or path, tensor_file.Format("", "", key, None), tensors)
    return to or path


def with_number(name, value):
    """Change a number of a model, of a part whose prefix may stand before the name."""
    prefix, _, own = name.rpartition(".")
    place = NUMBER_NAMES.index(own)
    return with_value(f"{prefix}.numbers" if prefix else "numbers", place, value)


def with_text(name, text):
    return lambda tensors: tensors.update({name: as_text(text)})


def with_facts(name, change):
    """Change an object of JSON, which is an array of a file."""

    def changed(tensors):
        facts = json.loads(tensors[name].tobytes())
        change(facts)
        tensors[name] = as_text(json.dumps(facts))

    return changed


def without(*names):
    return lambda tensors: [tensors.pop(name) for name in names]


def with_array(name, array):
    return lambda tensors: tensors.update({name: np.asarray(array)})


def with_value(name, place, value):
    def change(tensors):
        values = tensors[name].copy()
        values[place] = value
        tensors[name] = values

    return change


def with_change(name, change):
    return lambda tensors: tensors.update({name: np.array(change(tensors[name]), order="C")})


def headed(text):
    return struct.pack("<Q", len(text)) + text


def with_metadata(path, value):
    """Put another value behind the key of a file, as who wrote another version of it."""
    whole = path.read_bytes()
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    text = whole[8:start].decode()
    own = re.sub('"hdicore_model":"[^"]*"', lambda _: f'"hdicore_model":{json.dumps(value)}', text)
    path.write_bytes(headed(own.encode()) + whole[start:])
