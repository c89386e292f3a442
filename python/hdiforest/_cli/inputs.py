"""What the command reads: tables in files, folders and pipes, their features, and model files."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

import numpy as np

from hdiforest._cli.arguments import UsageError, of_usage, written_form
from hdiforest._model.fitted import FittedForest
from hdiforest._tables.columns import EncodingError, plain, without_words
from hdiforest._tables.formats import ANY_ENDING, FORMATS, ending, open_table
from hdiforest._tables.names import listed, require_distinct
from hdiforest._tables.read import TableError, TableReader, TextForm, joined
from hdiforest._tables.row_counts import RowCounts
from hdiforest._tables.training_table import numbers_of, with_names
from hdiforest._utils import Array
from hdiforest._utils.optional import need, pa
from hdiforest.serving._batch_scorer import BatchScorer

if TYPE_CHECKING:
    from hdiforest._estimators.hdi_forest import HDIForestRegressor

_MISSING = "__HIVE_DEFAULT_PARTITION__"

# What is repeated in front of the results: columns by name, or all; None: those that name the rows,
# if the model knows them.
Keep = list[str] | Literal["all"] | None
Keys = dict[str, str | None]

# With zeros in front it is a code, such as that of a town.
_WHOLE = re.compile("0|-?[1-9][0-9]{0,16}")
# What a table from standard input is, by how it begins; else CSV.
_BEGINNINGS = {b"\xff" * 4: ".arrow", b"\x1f\x8b": ".csv.gz", b"\x28\xb5\x2f\xfd": ".csv.zst"}


def whole_keys(keys: Iterable[Keys]) -> frozenset[str]:
    """Return the names of keys of which all values in all tables are whole numbers."""
    pairs = [(name, value) for each in keys for name, value in each.items() if value is not None]
    others = {name for name, value in pairs if not _WHOLE.fullmatch(value)}
    return frozenset(name for name, _ in pairs) - others


def open_standard_input(form: TextForm) -> TableReader:
    """Open the table that comes through standard input; TableError if it cannot be read."""
    stream = open(os.dup(sys.stdin.fileno()), "rb")  # noqa: SIM115 (the reader closes it)
    try:
        begin = stream.peek(6)
        endings = (ending for start, ending in _BEGINNINGS.items() if begin.startswith(start))
        return FORMATS[next(endings, ".csv")].read(STANDARD_INPUT, stream=stream, form=form)
    except BaseException:
        stream.close()
        raise


STANDARD_INPUT = Path("standard input")  # its name in errors


@dataclass(frozen=True)
class Source:
    """One table to score."""

    path: Path  # its name in errors; of a remote file the path in its file system
    name: Path  # of the output, in a folder of outputs
    keys: Keys = field(default_factory=dict)  # columns from the names of its folders
    whole: frozenset[str] = frozenset()  # see `whole_keys`
    system: Any = None  # pyarrow.fs.FileSystem; None: a file of this machine, or standard input
    form: TextForm = field(default_factory=TextForm)

    def open(self) -> TableReader:
        """Open the table and read its header; OSError or TableError as `open_table`."""
        if self.path == STANDARD_INPUT:
            return open_standard_input(self.form)
        stream = None
        if self.system is not None:
            stream = self.system.open_input_file(self.path.as_posix())
        table = open_table(self.path, stream, self.form)
        table.add_columns(self.keys, self.whole)
        return table

    def size_and_time(self) -> tuple[int, int]:
        """Return the bytes of the file, and when it changed in nanoseconds."""
        if self.system is None:
            status = self.path.stat()
            return status.st_size, status.st_mtime_ns
        info = self.system.get_file_info(self.path.as_posix())
        return info.size, info.mtime_ns or 0


class Inputs:
    """What the arguments stand for, and how the text of a CSV is written.

    `sources` are sorted by name within each folder or pattern. `is_one_file` says whether there is
    one argument that names a file, no folder or pattern; `folders` are those of this machine that
    were named. TableError if a folder has no tables, a pattern matches nothing, or an ending is
    unknown; OSError or ValueError if an address cannot be listed or is not understood, or arguments
    do not go together.
    """

    def __init__(self, arguments: Sequence[str], form: TextForm) -> None:
        self._arguments = arguments
        if "-" in arguments and len(arguments) > 1:
            raise ValueError("- (standard input) must be the only input")
        self.folders: list[Path] = []
        self.is_one_file = len(arguments) == 1
        every = [source for each in arguments for source in self._sources_of(each)]
        # The same table may be given twice.
        distinct = list({(str(each.path), each.system is None): each for each in every}.values())
        for each in distinct if len(distinct) > 1 else ():  # they are read twice
            if each.system is None and each.path.exists() and not each.path.is_file():
                raise ValueError(f"{each.path} is a pipe or a device, and must be the only input")
        whole = whole_keys(each.keys for each in distinct)
        self.sources = [replace(each, whole=whole, form=form) for each in distinct]

    def __str__(self) -> str:
        if self.is_one_file:
            return str(self.sources[0].path)
        return listed(f"the folder {a}" if Path(a) in self.folders else a for a in self._arguments)

    def of_missing(self, words: Sequence[str]) -> list[Source]:
        """Return the sources, read with these words as missing cells."""
        return [replace(s, form=replace(s.form, missing=list(words))) for s in self.sources]

    @property
    def files(self) -> list[Path]:
        """The files of this machine."""
        return [s.path for s in self.sources if s.system is None and s.path != STANDARD_INPUT]

    def _sources_of(self, text: str) -> list[Source]:
        if text == "-":
            return [Source(STANDARD_INPUT, STANDARD_INPUT)]
        if "://" in text:
            return self._remote(text)
        path = Path(text)
        if path.is_dir():
            self.folders.append(path)
            walked = os.walk(path, onerror=_raise)
            files = (Path(root, f) for root, _, names in walked for f in names)
            # Reading a pipe would wait. A link to nothing may be a table that is lost.
            files = (f for f in files if f.is_file() or not f.exists())
            return self._in_folder(path, files, f"the folder {text} has no tables")
        if glob.has_magic(text) and not os.path.lexists(text):
            matches = filter(Path.is_file, map(Path, glob.glob(text, recursive=True)))
            return self._in_folder(Path(*_fixed(path.parts)), matches, f"no table matches {text}")
        return _one_file(path)

    def _remote(self, text: str) -> list[Source]:
        fs = need("pyarrow.fs")
        address, question, options = text.partition("?")
        base = "/".join(_fixed(address.split("/")))
        pattern = address.removeprefix(base).lstrip("/")
        try:
            system, root = fs.FileSystem.from_uri(f"{base}{question}{options}")
        except (pa.ArrowException, ValueError):
            raise ValueError(
                f"cannot read {text}: {text.partition('://')[0]}:// is not known or not complete; "
                "possible are file://, s3://, gs://, abfss:// and hdfs://"
            ) from None
        if isinstance(system, fs.LocalFileSystem):
            return self._sources_of(str(Path(root, pattern)))
        try:
            info = system.get_file_info(root)
            if info.is_file and not pattern:
                return _one_file(Path(PurePosixPath(root)), system)
            if info.type != fs.FileType.Directory:
                raise TableError(f"there is nothing at {text}")
            within = system.get_file_info(fs.FileSelector(root, recursive=True))
            files = [Path(each.path) for each in within if each.is_file]
        except OSError as error:
            raise OSError(
                f"cannot read {text}: {error}; credentials are read from the environment, such as "
                "AWS_ACCESS_KEY_ID or AWS_PROFILE"
            ) from None
        if pattern:
            files = [f for f in files if fnmatch(f.relative_to(root).as_posix(), pattern)]
        return self._in_folder(Path(root), files, f"{text} has no tables", system)

    def _in_folder(
        self, folder: Path, files: Iterable[Path], none: str, system: Any = None
    ) -> list[Source]:
        """Return the tables among files in a folder; TableError says `none` if there are none."""
        self.is_one_file, sources = False, []
        for path in sorted(files):
            name = path.relative_to(folder)
            is_table = path.name.lower().endswith(tuple(FORMATS))
            if is_table and not any(part.startswith((".", "_")) for part in name.parts):
                pairs = (part.split("=", 1) for part in name.parts[:-1] if "=" in part)
                keys: Keys = {unquote(k): None if v == _MISSING else unquote(v) for k, v in pairs}
                sources.append(Source(path, name, keys, system=system))
        if not sources:
            raise TableError(f"{none}; endings known are {ANY_ENDING}")
        return sources


def inputs_of(names: Sequence[str], options: Any) -> Inputs:
    """Return the tables that arguments name; UsageError if they do not go together."""
    if options.decimal is not None and options.sep == options.decimal:
        raise UsageError("--sep and --decimal must differ")
    point, has_quotes = written_form(options).point, options.quote == "double"
    form = TextForm(options.sep, point, options.encoding, has_quotes=has_quotes)
    with of_usage():
        return Inputs(names, form)


def _one_file(path: Path, system: Any = None) -> list[Source]:
    ending(path)
    return [Source(path, Path(path.name), system=system)]


def _raise(error: OSError) -> None:
    raise error


def _fixed(parts: Sequence[str]) -> list[str]:
    """Return the parts in front of the first one with a wildcard."""
    return list(takewhile(lambda part: not glob.has_magic(part), parts))


class Features:
    """The columns of a table on disk that a model takes, and others to read with them.

    These are `more`, further ones of numbers, the first of a batch, and those `kept`, which are
    passed on as they are. A model without names takes all columns but `not_features`, by default
    these two. TableError if columns are missing, known to be of other types, or not as many as it
    takes.
    """

    def __init__(
        self,
        fitted: FittedForest,
        table: TableReader,
        *,
        more: Sequence[str] = (),
        kept: Sequence[str] = (),
        not_features: Sequence[str] | None = None,
    ) -> None:
        others = [*more, *(kept if not_features is None else not_features)]
        try:
            self.encoder = fitted.encoder_for([name for name in table.names if name not in others])
        except ValueError as error:
            raise TableError(
                f"{table.path}: {error} that no other option names{table.hint()}"
            ) from None
        entries = getattr(self.encoder, "entries", ())
        self._categories = {entry.name: getattr(entry, "values", ()) for entry in entries}
        self.table, self._n_more, self.kept_names = table, len(more), list(kept)
        # The columns of a file with types are as they are, and the encoder checks them.
        numbers = self.encoder.number_columns
        self._numbers = [name for name in numbers if table.is_text or name in table.keys]
        numeric = set(self._numbers)
        self._others = [name for name in self.encoder.columns if name not in numeric]
        self._read = [*more, *self._numbers], [*self._others, *kept]
        table.require(*self._read)
        if not table.is_text:
            with self.naming_the_file():
                fields = [pa.field(name, pa.float64()) for name in self._numbers]
                fields += table.fields(self._others)
                # `empty_table` would import pandas.
                columns = [pa.nulls(0, field.type) for field in fields]
                self.encoder.encode(pa.Table.from_arrays(columns, schema=pa.schema(fields)))

    def batches(self, batch_rows: int | None = None) -> Iterator[Any]:
        """Yield Tables as `TableReader.batches`, for the methods below."""
        return self.table.batches(*self._read, batch_rows)

    def kept(self, batch: Any) -> list[Any]:
        """Return the columns of a batch to pass on."""
        return [*map(plain, batch.columns[batch.num_columns - len(self.kept_names) :])]

    def raw(self, batch: Any) -> Any:
        """Return the columns of the features as a pyarrow Table that `encoder` takes."""
        begin = self._n_more
        table = batch.select(range(begin, begin + len(self.encoder.columns)))
        for j, name in enumerate(self._others, len(self._numbers)):
            values = self._categories.get(name, ())
            table = table.set_column(j, name, self.table.without_missing(table.column(j), values))
        return table

    @contextmanager
    def naming_the_file(self) -> Iterator[None]:
        """Make a TableError of what encoding raises."""
        try:
            yield
        except EncodingError as error:
            raise TableError(f"{self.table.path}: {error}", error.columns) from None


class Settings(NamedTuple):
    """How tables are scored; no result depends on threads and rows of a batch."""

    keep: Keep
    n_threads: int = 1
    batch_rows: int | None = None  # in memory at once, about; see `rows_of` for None
    resume: bool = False  # whether outputs that are there stay


def features_of(scorer: BatchScorer, table: TableReader, keep: Keep) -> Features:
    """Return the columns to read from a table, or TableError; ValueError if two names are equal.

    UsageError if one of them is that of a result.
    """
    if keep is None:
        keep = [name for name in scorer.model.fitted.id_columns if name in table.names]
    kept, others = (list(table.names), []) if keep == "all" else (keep, keep)
    require_distinct(kept)
    if taken := [name for name in kept if name in scorer.results]:
        what = f"{table.path} has a column {taken[0]!r}, which is also the name of a result"
        raise UsageError(f"{what}; --prefix gives the results other names")
    return Features(scorer.model.fitted, table, kept=kept, not_features=others)


def read_model(options: Any) -> HDIForestRegressor:
    """Return the model that the arguments name; ValueError if it has several targets."""
    from hdiforest._estimators.hdi_forest import HDIForestRegressor

    model = HDIForestRegressor.load(
        options.model, n_jobs=options.jobs, mapped=False, trusted=options.trust
    )
    if model.n_outputs_ != 1:
        raise ValueError(f"{options.model} must have one target, but has {model.n_outputs_}")
    return model


def read_labelled_tables(
    model: HDIForestRegressor, options: Any, kept: Sequence[str] = ()
) -> tuple[Any, Array, RowCounts, Any]:
    """Read X, y (n,), counts of the rows, and a pyarrow Table of the columns `kept`, from tables.

    X has raw columns if the model has an encoder, and no names if it was fitted without. UsageError
    if the target is a feature; TableError if a column or the target cannot be read, or a table
    lacks one, or they have no rows.
    """
    fitted, target = model._fitted_forest(), options.target
    if target in (fitted.columns or ()):
        raise UsageError(f"--target must not be a feature of the model, and '{target}' is one")
    counts, parts = RowCounts(), list[tuple[Any, ...]]()
    words = fitted.missing_words
    for source in options.tables.of_missing(words):
        try:
            features, whole = _rows(fitted, source, [target], kept)
            column = whole.column(0)
        except TableError as error:
            if target not in error.columns or not source.path.is_file():
                raise
            features, whole = _rows(fitted, source, [], [*kept, target])
            column = features.table.without_missing(whole.column(whole.num_columns - 1))
        if whole.num_rows == 0:
            continue
        with features.naming_the_file():
            part, more = fitted.encode(features.raw(whole), features.encoder)
        what = f"{source.path}: target '{target}'"
        y = numbers_of(without_words(column, words), what, written_form(options))
        counts.add(more)
        columns = pa.table(features.kept(whole)[: len(kept)], list(kept))
        parts.append((part, y, (source.path, features.raw(whole)), (source.path, columns)))
    if not parts:
        raise TableError(f"{options.tables} has no rows")
    X_parts, y_parts, raw, others = zip(*parts, strict=True)
    X: Any = np.concatenate(X_parts)
    if fitted.encoder is not None:
        X = joined(raw)
    elif fitted.columns is not None:
        X = with_names(X, list(fitted.columns))
    return X, np.concatenate(y_parts), counts, joined(others)


def _rows(
    fitted: FittedForest, source: Source, more: Sequence[str], kept: Sequence[str]
) -> tuple[Features, Any]:
    """Return `Features` of a table, and its rows."""
    with source.open() as table:
        features = Features(fitted, table, more=more, kept=kept)
        batches = list(features.batches())
    names = [*more, *features.encoder.columns, *kept]
    return features, pa.concat_tables(batches) if batches else pa.table([[]] * len(names), names)
