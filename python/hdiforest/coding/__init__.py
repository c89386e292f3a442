"""How the columns of a table become the features of a forest: data, without code."""

from hdiforest.coding.columns import CodingError
from hdiforest.coding.learning import learn
from hdiforest.coding.table_coding import TableCoding

__all__ = ["CodingError", "TableCoding", "learn"]
