"""Models as files, and prediction for batches of rows: hdicore, numpy and pyarrow alone."""

from hdiforest._tables.row_counts import RowCounts
from hdiforest.serving._batch_scorer import BatchScorer

__all__ = ["BatchScorer", "RowCounts"]
