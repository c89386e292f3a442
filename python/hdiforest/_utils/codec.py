"""Values as JSON and arrays, read back by their types; nothing is trusted."""

from __future__ import annotations

import math
import re
import reprlib
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.checks import alternatives

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Made = TypeVar("Made")


class Form(NamedTuple):
    """What a value of some type is in JSON."""

    words: str
    holds: Callable[[Any], bool]


def text_form(words: str, pattern: str) -> Form:
    """Return the form of texts of a pattern."""
    return Form(words, lambda value: isinstance(value, str) and bool(re.fullmatch(pattern, value)))


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


def unpack(
    kind: type[Made], value: Any, arrays: Mapping[str, NDArray[Any]] | None = None, name: str = ""
) -> Made:
    """Return the value of a type that `pack` took apart; nothing is trusted, arrays are copied.

    ValueError says that an entry, of what has a `name`, is missing, not known, or of another type.
    """
    left = dict(arrays or {})
    made: Made = _unpack(kind, value, left, name)
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
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ())
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
