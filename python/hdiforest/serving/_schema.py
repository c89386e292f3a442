"""What stored models are made of: values as JSON and arrays, read back by their types."""

from __future__ import annotations

import math
import re
import reprlib
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from hdiforest._model.table_steps import TableFacts
from hdiforest._model.training_rows import Weighting
from hdiforest._utils.checks import alternatives

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Made = TypeVar("Made")


class Origin(NamedTuple):
    """Where facts and arrays come from, and when they are checked."""

    source: str | None = None  # what errors begin with
    lazy: bool = False  # whether what large arrays hold is checked at its first use

    def part(self, name: str) -> Origin:
        """Return the origin of a part."""
        return self if self.source is None else self._replace(source=f"{self.source}: {name}")


class Form(NamedTuple):
    """What a value of some type is in JSON."""

    words: str
    holds: Callable[[Any], bool]


def _text(words: str, pattern: str) -> Form:
    return Form(words, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)))


_Version = typing.Annotated[str, _text("a version", "(?s).{1,100}")]
_Digest = typing.Annotated[str, _text("32 hexadecimal digits", "[0-9a-f]{32}")]


class Versions(NamedTuple):
    """Facts of every file."""

    format_version: int
    hdicore: _Version
    scikit_learn: _Version


class BoostedFacts(NamedTuple):
    """Numbers of a mean that is a line and boosted trees."""

    baseline: float
    low: float
    high: float


class MeanFacts(NamedTuple):
    """Of another regressor's mean: an object, if it is not boosted."""

    share: float
    boosted: BoostedFacts | None


class ModelFacts(NamedTuple):
    """Facts of a model; those up to `training_digest` are fields of `FittedForest`."""

    weights: Weighting
    n_training_rows: int
    allow_nan: bool
    matches_forest: bool
    training_digest: _Digest
    n_features: int
    feature_names: list[str] | None
    target_names: list[str] | None
    scalar_output: bool
    counts_are_weighted: bool
    encoder: dict[str, Any] | None
    steps: TableFacts | None
    calibration: dict[str, Any] | None
    mean: MeanFacts | None
    boxes: dict[str, Any] | None
    reference: dict[str, Any] | None
    folds: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


class LeafFacts(NamedTuple):
    """Facts of a `LeafModel`."""

    scalar_output: bool
    n_training_rows: int | None
    target_names: list[str] | None
    calibration: dict[str, Any] | None


def pack(value: Any, arrays: Arrays, name: str = "") -> Any:
    """Return a value as JSON's types. Its arrays go into `arrays`, by where they are in it.

    In their place is their length; a tuple of arrays becomes one, behind a list of lengths.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return len(value)
    if isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
        arrays[name] = np.concatenate(value)
        return list(map(len, value))
    if own := _fields(value.__class__):
        return {each: pack(getattr(value, each), arrays, _inside(name, each)) for each in own}
    if isinstance(value, tuple | list):
        return [pack(each, arrays, f"{name}[{i}]") for i, each in enumerate(value)]
    return value


def unpack(kind: type[Made], value: Any, arrays: Mapping[str, NDArray[Any]] | None = None) -> Made:
    """Return the value of a type that `pack` took apart; nothing is trusted, arrays are copied.

    ValueError says that an entry is missing, not known, or of another type.
    """
    left = dict(arrays or {})
    made: Made = _unpack(kind, value, left, "")
    require_none(left, "tensor")
    return made


def require_none(left: Iterable[str], what: str) -> None:
    """Raise ValueError if something of a file was not read."""
    for name in left:
        raise ValueError(
            f"it has the {what} {reprlib.repr(name)}, which this version does not know, or not in "
            "such a model; upgrade hdicore"
        )


def _unpack(hint: Any, value: Any, left: Arrays, name: str) -> Any:
    choices = get_args(hint) if get_origin(hint) in (typing.Union, UnionType) else (hint,)
    fitting = [each for each in choices if _form(each).holds(value)]
    if not fitting:
        null_first = sorted(choices, key=lambda each: each is not NoneType)
        words = alternatives(_form(each).words for each in null_first)
        raise ValueError(f"{name or 'it'} must be {words}, got {reprlib.repr(value)}")
    hint = fitting[0]
    origin, args = get_origin(hint), get_args(hint)
    if origin is np.ndarray:
        return _unpack_array(hint, value, left, name)
    if origin is tuple and get_origin(args[0]) is np.ndarray:
        whole = _unpack_array(args[0], sum(value), left, name)
        return tuple(np.split(whole, np.cumsum(value)[:-1]))
    if hint is float:
        return float(value["float"] if isinstance(value, dict) else value)
    if origin in (list, tuple):
        kinds = args if origin is tuple and args[-1] is not Ellipsis else (args[0],) * len(value)
        if len(kinds) != len(value):
            raise ValueError(f"{name} must have {len(kinds)} elements, got {len(value)}")
        pairs = enumerate(zip(kinds, value, strict=True))
        return origin(_unpack(kind, each, left, f"{name}[{i}]") for i, (kind, each) in pairs)
    if origin is dict:
        names = {key: f"{name}[{reprlib.repr(key)}]" for key in value}
        return {key: _unpack(args[1], value[key], left, names[key]) for key in value}
    if own := _fields(hint):
        if missing := [entry for entry in own if entry not in value]:
            raise ValueError(f"the fact {_inside(name, missing[0])} is missing")
        require_none((_inside(name, entry) for entry in value if entry not in own), "fact")
        return hint(**{e: _unpack(own[e], value[e], left, _inside(name, e)) for e in own})
    return value


def _unpack_array(hint: Any, length: int, left: Arrays, name: str) -> NDArray[Any]:
    if name not in left:
        raise ValueError(f"the tensor {name} is missing")
    array, dtype = left.pop(name), np.dtype(get_args(get_args(hint)[1])[0])
    if array.dtype != dtype or array.shape[:1] != (length,):
        raise ValueError(
            f"{name} must be {dtype} of length {length}, got {array.dtype} of shape "
            f"{reprlib.repr(array.shape)}"
        )
    return np.array(array)


def _inside(name: str, entry: str) -> str:
    return f"{name}.{entry}" if name else entry


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass or a NamedTuple; none of other types."""
    names = getattr(kind, "__dataclass_fields__", getattr(kind, "_fields", ()))
    hints = typing.get_type_hints(kind, include_extras=True) if names else {}
    return {name: hints[name] for name in names}


def _is_length(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**63


def _is_number(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == ["float"] and value["float"] in ("nan", "inf", "-inf")
    # A bool is an int, and some ints are no floats.
    return type(value) is float or (type(value) is int and abs(value) < 2**53)


_FORMS: dict[Any, Form] = {
    Any: Form("anything", lambda _: True),
    NoneType: Form("null", lambda value: value is None),
    bool: Form("true or false", lambda value: isinstance(value, bool)),
    int: Form("a whole number", lambda value: type(value) is int and 0 <= value < 2**63),
    float: Form("a number", _is_number),
    str: Form("a text", lambda value: isinstance(value, str)),
    np.ndarray: Form("the length of an array", _is_length),
    **dict.fromkeys((list, tuple), Form("a list", lambda value: isinstance(value, list))),
    dict: Form("an object", lambda value: isinstance(value, dict)),
}


@cache
def _form(hint: Any) -> Form:
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return cast("Form", args[1])
    if origin is typing.Literal:
        return Form(alternatives(map(repr, args)), lambda value: value in args)
    if origin is tuple and get_origin(args[0]) is np.ndarray:
        return Form(
            "lengths of arrays",
            lambda value: isinstance(value, list) and all(map(_is_length, value)),
        )
    return _FORMS.get(origin or hint, _FORMS[dict])


Expected = Mapping[str, tuple[str, tuple[int, ...]]]  # types and shape by name


def check_arrays(
    group: str,
    arrays: Mapping[str, NDArray[Any]],
    expected: Expected,
    optional: Collection[str] = (),
) -> None:
    """Raise ValueError unless a group has arrays of these types and shapes, and no others."""
    require_none((f"{group}.{name}" for name in arrays if name not in expected), "tensor")
    for name, (dtypes, shape) in expected.items():
        array = arrays.get(name)
        if array is None and name not in optional:
            raise ValueError(f"the tensor {group}.{name} is missing")
        if array is not None and (array.dtype.name not in dtypes.split() or array.shape != shape):
            raise ValueError(
                f"{group}.{name} must be {alternatives(dtypes.split())} of shape {shape}, got "
                f"{array.dtype} of shape {reprlib.repr(array.shape)}"
            )


def check_training_values(
    arrays: Arrays, atoms: list[NDArray[np.float64]], *, allow_nan: bool, moved: bool
) -> None:
    """Raise ValueError if the values of training rows do not fit the index.

    `arrays` have been through `check_arrays`; `atoms` are the distinct targets of each output,
    (n_atoms,), `moved` within the range of all if the index is monotonic.
    """
    if np.isinf(arrays["X"]).any() or not (allow_nan or np.isfinite(arrays["X"]).all()):
        raise ValueError("training.X must be finite, but for missing values where they are allowed")
    if not np.isfinite(arrays["y"]).all():
        raise ValueError("training.y must be finite")
    for own, target in zip(atoms, arrays["y"].reshape(len(arrays["y"]), -1).T, strict=True):
        inside = own[[0, -1]].clip(target.min(), target.max()) == own[[0, -1]]
        if not (inside.all() if moved else np.isin(own, target).all()):
            raise ValueError("training.y lacks targets that leaves hold")
    if "sample_weight" in arrays:
        weights = arrays["sample_weight"]
        if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
            raise ValueError("training.sample_weight must be finite, not negative, not all zero")
    if "counts" in arrays:
        counts = arrays["counts"]
        if counts.max() > 2**31 - 1 or not (counts > 0).any(axis=0).all():
            raise ValueError("training.counts must be below 2**31, with a row for every tree")
