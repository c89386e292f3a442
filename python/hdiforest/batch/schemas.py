"""What comes out of a scorer, in the words of Arrow, Spark and pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def kept_types(keep: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of kept columns, or raise ValueError if they are not pyarrow's."""
    import pyarrow as pa

    for name, kind in keep.items():
        if not isinstance(kind, pa.DataType):
            raise ValueError(
                f"keep must map '{name}' to a type such as pyarrow.int64(), got {kind!r}"
            )
    return dict(keep)


def results_schema(keep: Sequence[str], types: Mapping[str, Any], results: Sequence[str]) -> Any:
    """Return the pyarrow.Schema of kept columns and results.

    Raises
    ------
    ValueError
        If the type of a kept column is not known.
    """
    import pyarrow as pa

    for name in keep:
        if name not in types:
            raise ValueError(
                f"the type of the kept column '{name}' is not known before there is a batch; give "
                f"it, as in keep={{{name!r}: pyarrow.int64()}}"
            )
    kept = [pa.field(name, types[name]) for name in keep]
    return pa.schema([*kept, *(pa.field(name, pa.float64()) for name in results)])


def empty_frame(schema: Any) -> Any:
    """Return a pandas.DataFrame without rows."""
    return schema.empty_table().to_pandas()


def spark_ddl(schema: Any) -> str:
    """Return a pyarrow.Schema as Spark's DDL.

    Raises
    ------
    ValueError
        If Spark has no type for a column.
    """
    return ", ".join(f"`{field.name.replace('`', '``')}` {_spark_type(field)}" for field in schema)


def _spark_type(field: Any) -> str:
    from pyarrow import types

    kind = field.type
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    for test, name in (
        (types.is_boolean, "BOOLEAN"),
        (types.is_int8, "TINYINT"),
        (types.is_int16, "SMALLINT"),
        (types.is_int32, "INT"),
        (types.is_int64, "BIGINT"),
        (types.is_float32, "FLOAT"),
        (types.is_float64, "DOUBLE"),
        (types.is_string, "STRING"),
        (types.is_large_string, "STRING"),
        (types.is_binary, "BINARY"),
        (types.is_large_binary, "BINARY"),
        (types.is_date32, "DATE"),
    ):
        if test(kind):
            return name
    raise ValueError(
        f"Spark has no type for the column '{field.name}' ({kind}); keep it as another"
    )
