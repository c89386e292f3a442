"""BatchScorer: a small object that scores batches of any engine by a model file."""

from __future__ import annotations

import copy
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hdiforest._tables.columns import require_columns
from hdiforest._tables.frames import BLOCK_CELLS, Results, batch_of
from hdiforest._tables.names import DIAGNOSIS, ENDS, interval_names, require_distinct
from hdiforest._tables.row_counts import RowCounts
from hdiforest._utils.checks import check_choice, check_flag, check_n_jobs, shares, thread_count
from hdiforest._utils.optional import pa
from hdiforest.exceptions import ModelReplacedError

# The code of models is loaded with the first one.
if TYPE_CHECKING:
    from hdiforest._model.fitted import FittedForest
    from hdiforest._model.table_steps import TableSteps
    from hdiforest._tables.encoder import TableEncoder
    from hdiforest.calibration._predict import AnyKind
    from hdiforest.serving._model_file import OpenModel


# Names of types in Spark by those in pyarrow.
_SPARK_TYPES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
    "bool": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "date32[day]": "DATE",
    "string": "STRING", "large_string": "STRING", "binary": "BINARY", "large_binary": "BINARY",
}  # fmt: skip


def _spark_type(field: Any) -> str:
    """Return the type of a column in Spark's DDL; ValueError if it has none."""
    types, kind = pa.types, field.type
    if types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if str(kind) in _SPARK_TYPES:
        return _SPARK_TYPES[str(kind)]
    raise ValueError(
        f"Spark has no type for the column '{field.name}' ({kind}); keep it as another"
    )


_OF_PROCESS = ("counts", "_copy", "_names")  # what a pickle leaves out


class BatchScorer:
    """Score batches of rows by a model file, in any process that can read the file.

    A batch may be a pyarrow RecordBatch or Table, a DataFrame of pandas or polars, a dict of
    columns, a record (a dict of cells) or a list of records. The result is of the same type. It has
    the kept columns, ``prediction``, and the ends of the intervals. The index of pandas is kept.

    Columns are found by name. A model without names takes all columns that are not kept, in their
    order. Numbers are equal to the ones of `HDIForestRegressor.predict_interval`, bit for bit.

    A pickled scorer holds its arguments and the digest of the model, below 1 kB. Each process opens
    the model once, at the first batch, and maps the file. Processes of one machine share it.

    Parameters
    ----------
    path : path
        Model file that `HDIForestRegressor.save` or ``hdiforest fit`` wrote. Other processes look
        for it under the same absolute path.
    coverage : float or sequence of k floats, default=None
        The coverage of the intervals. See `HDIForestRegressor.predict_interval`. None means 0.9, or
        the lowest calibrated coverage if 0.9 was not calibrated.
    kind : str, optional
        The kind of interval. The default is "calibrated" if the model is calibrated, and "hdi"
        otherwise. See `HDIForestRegressor.predict_interval`.
    keep : sequence of str, or mapping from str to pyarrow.DataType, default=()
        Columns of a batch to repeat in front of the results. A mapping casts them to the given
        types, and gives them to `schema`, `ddl` and `meta`.
    prefix : str, default=""
        Text in front of the names of the results, if kept columns have the same names.
    n_jobs : int or None, default=1
        Threads for one batch. None means 1, or the number in ``joblib.parallel_config``. -1 means
        all processors of the process that scores.
    mapped : bool, default=True
        Whether to map the file. If not, each process reads a copy and checks it whole. Its last
        scorer frees the copy. Later changes of the file do not matter.
    diagnose : bool, default=False
        Whether the columns of `hdiforest.inspection.diagnose` at the first coverage follow the
        results. Needs scipy, and a file with training rows or saved with ``diagnostics=True``.
    trusted : sequence of str or type, default=()
        Types of steps to trust, besides the types that skops trusts. See `HDIForestRegressor.load`.

    Attributes
    ----------
    counts : hdiforest.serving.RowCounts
        Counts of the values so far that the training rows did not have. Each process counts by
        itself.

    Raises
    ------
    OSError
        If the file cannot be read. A batch raises `ModelReplacedError`, an OSError, if a mapped
        file was replaced or damaged, and another OSError if it is gone.
    ValueError
        If the file is not a model of one target, or an argument is out of range.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_diabetes
    >>> from hdiforest import HDIForestRegressor
    >>> from hdiforest.serving import BatchScorer
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> path = tempfile.mkdtemp() + "/model.hdi"
    >>> HDIForestRegressor(random_state=0).fit(X, y).save(path)
    >>> scorer = BatchScorer(path, 0.9)
    >>> list(scorer(X.head()).columns)
    ['prediction', 'lower_0.9', 'upper_0.9']
    """

    _copy: OpenModel | None = None  # of a model that is not mapped

    def __init__(
        self,
        path: str | os.PathLike[str],
        coverage: float | Sequence[float] | None = None,
        *,
        kind: AnyKind | None = None,
        keep: Sequence[str] | Mapping[str, Any] = (),
        prefix: str = "",
        n_jobs: int | None = 1,
        mapped: bool = True,
        diagnose: bool = False,
        trusted: Sequence[Any] = (),
    ) -> None:
        from hdiforest.calibration._predict import resolve_kind_and_levels

        if isinstance(keep, str):
            raise ValueError(f"keep must be a list of names of columns, got {keep!r}")
        if kind is not None:
            check_choice("kind", kind, (*ENDS, "raw"))
        if not isinstance(prefix, str):
            raise ValueError(f"prefix must be a text, got {prefix!r}")
        check_n_jobs(n_jobs)
        check_flag("mapped", mapped)
        check_flag("diagnose", diagnose)
        self.path = os.path.abspath(os.fspath(path))
        self.n_jobs, self.mapped, self.diagnose, self.trusted = n_jobs, mapped, diagnose, trusted
        model = self._open()
        try:
            if (n := model.fitted.n_outputs) != 1:
                raise ValueError(f"the model has {n} targets; tables are scored for one")
            given = None if coverage is None else shares("coverage", coverage, one=True)
            levels = None if given is None else given.reshape(-1).tolist()
            if levels == []:
                raise ValueError(
                    f"coverage must be one or more numbers in (0, 1], got {coverage!r}"
                )
            self.kind, self.coverage = resolve_kind_and_levels(model.fitted, kind, levels)
            if diagnose:
                model.fitted.require_reference()
        except ValueError as error:
            raise ValueError(f"{error} (model {self.path})") from None
        self.digest, self.prefix = model.digest, prefix
        self.keep = tuple(keep)
        self._types = dict(keep) if isinstance(keep, Mapping) else {}
        for name, kept in self._types.items():
            if not isinstance(kept, pa.DataType):
                raise ValueError(
                    f"keep must map '{name}' to a type such as pyarrow.int64(), got {kept!r}"
                )
        self.counts = RowCounts()
        self._copy = None if mapped else model
        require_distinct([*self.keep, *self.results])

    def _open(self, digest: str | None = None) -> OpenModel:
        from hdiforest.serving._model_file import open_model

        return open_model(self.path, mapped=self.mapped, digest=digest, trusted=self.trusted)

    def open(self) -> Self:
        """Open the model now and score a record without values, which loads what batches need.

        Returns
        -------
        BatchScorer
            The scorer itself.
        """
        names = self.features or map(str, range(self.model.fitted.n_features))
        record = dict.fromkeys([*names, *self.keep])
        for batch in (record, [record]):
            with suppress(TypeError, ValueError):  # some forests and steps take no missing cells
                copy.copy(self)(batch)  # with counts of its own
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments and the digest; the model is opened when the first batch comes."""
        return {k: v for k, v in self.__dict__.items() if k not in _OF_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.counts = RowCounts()

    def __repr__(self) -> str:
        keep = f", keep={list(self.keep)}" if self.keep else ""
        return f"BatchScorer({self.path!r}, {self.coverage}, kind={self.kind!r}{keep})"

    def __call__(self, batch: Any) -> Any:
        """Score the rows of a batch, of any number; the result has as many in the same order.

        OSError or ValueError as from `model`; or if the batch lacks a column, or holds what the
        model does not take.
        """
        if type(batch) is dict and (scored := self._score_record(batch)) is not None:
            return scored
        if isinstance(batch, list) and not batch:  # of no columns
            return []
        given, fitted = batch_of(batch), self.model.fitted
        needed = [*(self.features or ()), *self.keep]
        require_columns(needed, given.names, "the batch", ", which the model needs")
        try:
            encoder = fitted.encoder_for([name for name in given.names if name not in self.keep])
        except ValueError as error:
            raise ValueError(f"{error} that keep does not name") from None
        rows = given.without(fitted.missing_words).arrow(encoder.columns)
        results = self.score(rows, encoder)
        return given.with_results(results, self.keep, self._types)

    def _score_record(self, record: dict[Any, Any]) -> dict[str, Any] | None:
        """Return the result of a record; None if it is no plain one, and a table must be made."""
        if self._types or set(map(type, record)) != {str}:
            return None
        fitted, row = self.model.fitted, None
        with suppress(KeyError, ValueError):  # which the table raises with what was expected
            kept = {name: record[name] for name in self.keep}
            encoder = fitted.encoder_for([name for name in record if name not in kept])
            row = encoder.row(record)
        if row is None:
            return None
        results, counts = self._score(fitted, row, encoder, 0)
        self.counts.add(counts)
        cells = (column.tolist()[0] for column in results)
        return kept | dict(zip(self.results, cells, strict=True))

    def stream(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Score batches as they come.

        Parameters
        ----------
        batches : iterable
            Batches of rows, such as a pyarrow.RecordBatchReader.

        Yields
        ------
        batch
            The result of each batch, of the same type.
        """
        yield from map(self, batches)

    @property
    def features(self) -> list[str] | None:
        """Columns that the model takes, in its order. None if it was fitted without names."""
        columns = self.model.fitted.columns
        return None if columns is None else list(columns)

    @property
    def results(self) -> list[str]:
        """Names of the columns behind the kept ones, such as prediction, lower_0.9, upper_0.9."""
        return [f"{self.prefix}{name}" for name in self._names]

    @cached_property
    def _names(self) -> list[str]:
        """The names of results without the prefix."""
        names = interval_names(self.kind, self.coverage)
        return [*names, *(DIAGNOSIS if self.diagnose else ())]

    @property
    def types(self) -> dict[str, Any]:
        """The pyarrow types of `results`."""
        others = {"out_of_range": pa.int64(), "worst_feature": pa.string()}
        others |= {"n_missing": pa.int64(), "flag": pa.bool_()}
        return {f"{self.prefix}{name}": others.get(name, pa.float64()) for name in self._names}

    @property
    def schema(self) -> Any:
        """The columns of the result, as a pyarrow.Schema. Kept columns need types."""
        for name in self.keep:
            if name not in self._types:
                raise ValueError(
                    f"the type of the kept column '{name}' is not known before there is a batch; "
                    f"give it, as in keep={{{name!r}: pyarrow.int64()}}"
                )
        return pa.schema(list((self._types | self.types).items()))

    @property
    def ddl(self) -> str:
        """The columns of the result, in Spark's form ``prediction DOUBLE``. See `schema`."""
        return ", ".join(f"`{f.name.replace('`', '``')}` {_spark_type(f)}" for f in self.schema)

    @property
    def meta(self) -> Any:
        """The columns of the result, as a pandas.DataFrame without rows. See `schema`."""
        return self.schema.empty_table().to_pandas()

    @property
    def model(self) -> OpenModel:
        """The model in this process. The first access opens it.

        Raises ModelReplacedError if the file is damaged or holds another model than the scorer's,
        and another OSError if it cannot be read.
        """
        if self._copy is not None:
            return self._copy
        try:
            model = self._open(self.digest)
            if model.digest != self.digest:
                raise ValueError("it is another model")
        except (OSError, ValueError) as error:
            here = f"{self.path} on host {platform.node()}"
            if isinstance(error, OSError):
                error.add_note(here)
                raise
            # The message may go to callers of a service, its note into the log.
            what = "the model file was replaced or damaged after the scorer was made"
            replaced = ModelReplacedError(f"{what}; make a new scorer")
            replaced.add_note(f"{here}: {error}")
            raise replaced from None
        self._copy = None if self.mapped else model
        return model

    def score(self, table: Any, encoder: TableEncoder | TableSteps, first_row: int = 0) -> Results:
        """Return the results for the rows of a pyarrow Table, and count the rows.

        Parameters
        ----------
        table : pyarrow.Table
            The rows to score.
        encoder : TableEncoder or TableSteps
            The encoder of the model for the columns of the table, by `FittedForest.encoder_for`.
        first_row : int, default=0
            Number of rows before the table, for messages.

        Returns
        -------
        dict of (n,) arrays
            The columns, with the names `results` and the types `types`.
        """
        fitted = self.model.fitted
        n_rows = max(1, BLOCK_CELLS // fitted.n_features)
        begins = range(0, max(1, table.num_rows), n_rows)
        blocks = ((begin, table.slice(begin, n_rows)) for begin in begins)
        parts = [self._score(fitted, rows, encoder, first_row + n) for n, rows in blocks]
        for _, counts in parts:
            self.counts.add(counts)
        wholes = map(np.concatenate, zip(*(columns for columns, _ in parts), strict=True))
        return dict(zip(self.results, wholes, strict=True))

    def _score(
        self, fitted: FittedForest, rows: Any, encoder: TableEncoder | TableSteps, first_row: int
    ) -> tuple[list[NDArray[Any]], RowCounts]:
        """Return the results of a pyarrow Table, or of what `row` returned, and its counts."""
        from hdiforest.calibration._predict import predict_mean_and_intervals

        n_threads = 1 if self.n_jobs == 1 else thread_count(self.n_jobs)  # which loads joblib
        X, counts = fitted.encode(rows, encoder, first_row)
        of_folds = fitted.rows_of_folds(rows, first_row)
        mean, intervals = predict_mean_and_intervals(
            fitted, X, self.coverage, self.kind, n_threads, of_folds
        )
        levels, ends = range(len(self.coverage)), ENDS[self.kind]
        results = [mean, *(intervals[:, end, j] for j in levels for _, end in ends)]
        if self.diagnose:
            from hdiforest._model.diagnose import columns_of_diagnosis

            results += columns_of_diagnosis(
                fitted, X, self.coverage[0], n_threads, of_folds
            ).values()
        return results, counts
