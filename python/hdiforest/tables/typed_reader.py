"""The base of the readers of formats whose columns have types."""

from __future__ import annotations

from typing import Any

from hdiforest.coding.arrow_types import is_number
from hdiforest.tables.table_reader import TableReader


class TypedReader(TableReader):
    """A table whose columns have types, as `_schema` says, a pyarrow.Schema."""

    n_rows = None
    _schema: Any

    def fields(self, kept: list[str]) -> list[Any]:
        """See `TableReader`."""
        return [self._schema.field(name) for name in kept]

    def _other_types(self, columns: list[str]) -> dict[str, Any]:
        types = {name: self._schema.field(name).type for name in columns}
        return {name: kind for name, kind in types.items() if not is_number(kind)}
