"""How the columns of a table become the features of a forest: data, without code."""

from hdiforest._tables.columns import CodingError
from hdiforest._tables.encoder import TableCoding, learn

__all__ = ["CodingError", "TableCoding", "learn"]
