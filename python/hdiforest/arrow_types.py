"""Which of pyarrow's types hold numbers."""

from __future__ import annotations

from typing import Any


def is_number(kind: Any) -> bool:
    """Whether a pyarrow type is one of numbers: whole, floating or decimal ones, booleans, null."""
    from pyarrow import types

    tests = types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null
    return any(test(kind) for test in tests)
