"""Scoring of tables batch by batch, in one process or in many: hdicore, numpy and pyarrow alone."""

from hdiforest.batch.scorer import BatchScorer
from hdiforest.coding.row_counts import RowCounts

__all__ = ["BatchScorer", "RowCounts"]
