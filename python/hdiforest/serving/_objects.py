"""Fitted objects of scikit-learn in a model file: as skops stores them, opened if it is trusted."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.optional import need

# Besides those that skops trusts.
_HARMLESS = ("numpy.dtype",)


_WHO = "a model file with steps of scikit-learn, or another regressor as mean,"


def stored_objects(objects: dict[str, Any]) -> NDArray[np.uint8]:
    """Return fitted objects as bytes.

    Raises
    ------
    ImportError
        If skops is not installed.
    ValueError
        If skops cannot store them.
    """
    io = need("skops.io", _WHO, "io")
    try:
        data: bytes = io.dumps(objects)
        io.loads(data, trusted=io.get_untrusted_types(data=data))  # functions without a name fail
    except Exception as error:  # whatever the objects raise
        raise ValueError(
            f"skops cannot store {_listed(objects)}, fitted with the model ({_line(error)}); store "
            "the whole model by joblib, or encode the table first and fit the forest alone"
        ) from error
    return np.frombuffer(data, dtype=np.uint8)


def opened_objects(stored: NDArray[np.uint8], trusted: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the objects of a file.

    Parameters
    ----------
    stored : (n_bytes,) array
    trusted : sequence of str or type, default=()
        Types that may be in it besides those that skops trusts.

    Raises
    ------
    ImportError
        If skops is not installed.
    ValueError
        If there are other types, or no objects that skops stored.
    """
    io = need("skops.io", _WHO, "io")
    data, known = stored.tobytes(), [*_HARMLESS, *trusted]
    names = {each if isinstance(each, str) else _name_of(each) for each in known}
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            # What is packed might fill the memory.
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ValueError("it is compressed")
        untrusted = [name for name in io.get_untrusted_types(data=data) if name not in names]
    except Exception as error:  # of the bytes of anybody
        raise ValueError(f"its objects are not what skops stores: {_line(error)}") from None
    if untrusted:
        raise ValueError(
            f"it holds objects of types that are not trusted: {', '.join(untrusted)}; if you know "
            f"them, open it by HDIForestRegressor.load(path, trusted={untrusted})"
        )
    try:
        objects = io.loads(data, trusted=known)
    except Exception as error:
        raise ValueError(f"its objects cannot be made again: {_line(error)}") from None
    if not isinstance(objects, dict) or not all(isinstance(name, str) for name in objects):
        raise ValueError("its objects are not those of a model")
    return objects


def _listed(objects: dict[str, Any]) -> str:
    return ", ".join(sorted({name.rpartition(".")[2] for name in objects}))


def _name_of(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
