"""The engine's C table, called by ctypes as a program in C would call it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_int64, c_void_p

import numpy as np

from hdicore import LeafIndex, _core

NO_MEMORY = 2
# Where the function pointers stand behind `version` and `size`, as hdicore/c_api.h lists them.
WEIGHTED_HDI, INDEX_BUILD, INDEX_RELEASE, INDEX_MEAN = 0, 2, 4, 7


class TrainingRows(ctypes.Structure):
    _fields_ = [("n_rows", c_int64), ("n_trees", c_int64), ("n_outputs", c_int64)] + [
        (name, c_void_p) for name in ("leaves", "y", "counts", "sample_weight")
    ]


def pointer_in(capsule: object, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return get(capsule, name)


def function(place: int, *arguments: type) -> Callable[..., None]:
    """Return a function of the table that raises what its status says."""
    table = pointer_in(_core.c_api, b"hdicore._core.c_api")
    address = c_void_p.from_address(table + 8 * (1 + place)).value
    raw = ctypes.CFUNCTYPE(c_int, *arguments, c_void_p)(address)
    error = ctypes.create_string_buffer(256)

    def call(*given: object) -> None:
        status = raw(*given, error)
        if status == NO_MEMORY:
            raise MemoryError
        if status:
            raise RuntimeError(error.value.decode())

    return call


def weighted_hdi(values: np.ndarray) -> Callable[[], np.ndarray]:
    call = function(WEIGHTED_HDI, c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_void_p)
    level, ends = np.array([0.9]), np.empty(2)

    def work() -> np.ndarray:
        call(values.ctypes.data, None, len(values), level.ctypes.data, 1, ends.ctypes.data)
        return ends

    return work


def mean(index: LeafIndex, leaves: np.ndarray, n_threads: int) -> Callable[[], np.ndarray]:
    call = function(INDEX_MEAN, c_void_p, c_void_p, c_int64, c_int, c_void_p)
    capsule, means = index.__hdicore_index__(), np.empty(len(leaves))
    pointer = pointer_in(capsule, b"hdicore.index")

    def work() -> np.ndarray:
        assert capsule is not None  # it keeps the index alive
        call(pointer, leaves.ctypes.data, len(leaves), n_threads, means.ctypes.data)
        return means

    return work


def build(leaves: np.ndarray, y: np.ndarray, n_threads: int) -> Callable[[], bool]:
    call = function(INDEX_BUILD, c_void_p, c_int, c_void_p)
    table = pointer_in(_core.c_api, b"hdicore._core.c_api")
    address = c_void_p.from_address(table + 8 * (1 + INDEX_RELEASE)).value
    release = ctypes.CFUNCTYPE(None, c_void_p)(address)
    rows = TrainingRows(*leaves.shape, 1, leaves.ctypes.data, y.ctypes.data, None, None)

    def work() -> bool:
        index = c_void_p()
        call(ctypes.byref(rows), n_threads, ctypes.byref(index))
        release(index)
        return True

    return work
