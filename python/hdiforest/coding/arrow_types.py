"""Groups of pyarrow types that the columns of a table are told apart by."""

from __future__ import annotations

from typing import Any


def is_number(kind: Any) -> bool:
    """Whether a pyarrow type is one of numbers: whole, floating or decimal ones, booleans, null."""
    from pyarrow import types

    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    return any(test(kind) for test in tests)


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is one of text."""
    from pyarrow import types

    tests = types.is_string, types.is_large_string, types.is_string_view
    return any(test(kind) for test in tests)


def is_date(kind: Any) -> bool:
    """Whether a pyarrow type is one of dates or timestamps."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))


def is_duration(kind: Any) -> bool:
    """Whether a pyarrow type is one of durations or of times of a day."""
    from pyarrow import types

    return bool(types.is_duration(kind) or types.is_time(kind))


def decoded(array: Any) -> Any:
    """Return the values of a pyarrow Array whose type is a dictionary, and others as they are."""
    from pyarrow import types

    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def present_text(text: Any) -> Any:
    """Return an Array of text with null in place of empty cells."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(text.type):
        text = text.cast(pa.large_string())
    return pc.if_else(pc.equal(text, ""), None, text)


def dictionary_of(array: Any) -> Any:
    """Return an Array of categories as pyarrow's DictionaryArray."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        return array
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.dictionary_encode()
