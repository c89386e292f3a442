"""Answers by name as arrays, and how those of two versions are compared: bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
REFUSED = "refused: "


def flatten(name: str, value: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays that a value is made of, each with a name below `name`."""
    if value is None or isinstance(value, str):
        yield name, np.array(str(value))
    elif isinstance(value, bytes):
        yield name, np.frombuffer(value, dtype=np.uint8)
    elif hasattr(value, "indptr"):  # a sparse array
        for part in ("indptr", "indices", "data"):
            yield f"{name}/{part}", getattr(value, part)
    elif hasattr(value, "iloc"):
        yield f"{name}/index", np.asarray(value.index.astype(str).to_list())
        for column in value.columns:
            yield from flatten(f"{name}/{column}", value[column].to_numpy())
    elif hasattr(value, "schema"):
        yield f"{name}/columns", np.array(str(value.schema.remove_metadata()))
        for column in value.schema.names:
            yield from flatten(f"{name}/{column}", value[column].to_numpy())
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from flatten(f"{name}/{key}", part)
    elif isinstance(value, list | tuple) and any(not np.isscalar(part) for part in value):
        for position, part in enumerate(value):
            yield from flatten(f"{name}/{position}", part)
    else:
        array = np.asarray(value)
        yield name, array.astype(str) if array.dtype == object else array


class Answers:
    """What a version answers, by name; the first part of a name is the kind of question."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def get(self, name: str, question: Callable[[], Any]) -> Any:
        """Return the answer; or None, and keep the error, if the question is refused."""
        try:
            return question()
        except Exception as error:
            message = (str(error).splitlines() or [""])[0]
            self.arrays[name] = np.array(f"{REFUSED}{type(error).__name__}: {message}")
            return None

    def ask(self, name: str, question: Callable[[], Any]) -> None:
        """Keep the answer, or the error if the question is refused."""
        parts = self.get(name, lambda: dict(flatten(name, question())))
        if parts is not None and parts.keys() & self.arrays.keys():
            raise ValueError(f"there are two answers named {name}")
        self.arrays |= parts or {}

    def write(self, path: Path) -> None:
        """Write all answers into a file for `read`."""
        with path.open("wb") as file:
            np.savez(file, **self.arrays)


def read(path: Path) -> Arrays:
    with np.load(path) as file:
        return dict(file)


def difference(old: NDArray[Any], new: NDArray[Any] | None) -> str | None:
    """Say how two answers differ; None if every bit is the same."""
    if new is None:
        return "only the old version has it"
    if is_refusal(old) or is_refusal(new):
        return None if kind_of(old) == kind_of(new) else f"old: {brief(old)}, new: {brief(new)}"
    if old.dtype.kind == new.dtype.kind == "U" and old.shape == new.shape:
        wrong = np.atleast_1d(old != new)
    elif (old.dtype, old.shape) != (new.dtype, new.shape):
        return f"old: {old.dtype} {old.shape}, new: {new.dtype} {new.shape}"
    else:
        size = (old.size, old.dtype.itemsize)
        bits = [np.frombuffer(each.tobytes(), np.uint8).reshape(size) for each in (old, new)]
        wrong = (bits[0] != bits[1]).any(axis=1)
    if not wrong.any():
        return None
    first = int(wrong.argmax())
    values = f"{brief(old.reshape(-1)[first])} and {brief(new.reshape(-1)[first])}"
    return f"{int(wrong.sum())} of {wrong.size} values, the first at {first}: {values}"


def is_refusal(answer: NDArray[Any]) -> bool:
    return answer.dtype.kind == "U" and answer.ndim == 0 and str(answer).startswith(REFUSED)


def kind_of(answer: NDArray[Any]) -> str | None:
    """Return the type of the error of a refusal: messages may change."""
    return str(answer).split(": ")[1] if is_refusal(answer) else None


def brief(value: Any) -> str:
    text = repr(value.item()) if value.ndim == 0 else f"{value.dtype} {value.shape}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def differences(old: Arrays, new: Arrays) -> dict[str, str]:
    """Say by name how answers differ; further ones of the new version are none."""
    reasons = {name: difference(answer, new.get(name)) for name, answer in old.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}
