"""The inputs of `arose.dedup`: tells files from rows, and turns everything else into rows.

One rule tells files from texts. A single string or path, and an iterable of `pathlib.Path`, are
files; every other iterable of strings is texts. `texts=` and `files=` say it explicitly.
"""

from __future__ import annotations

import itertools
import json
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from . import _arose
from ._arose import InputError
from ._progress import Callback

#: Maximum number of texts in a batch from an iterable.
BATCH = 8192
#: Maximum number of characters in a batch, unless a single text has more.
BATCH_CHARACTERS = 8 << 20
#: Strings of a list to look up as files before treating them as texts.
LOOKED_UP = 100


def files_of(data: Any, texts: Any, files: Any, parameter: str = "data") -> list[str] | None:
    """Return the files to read; None if the input is rows."""
    given = [name for name, value in [("data", data), ("texts", texts), ("files", files)]
             if value is not None]
    if len(given) != 1:
        found = " and ".join(given) or "nothing"
        raise TypeError(f"pass one of data, texts= and files=; got {found}")
    if texts is not None:
        if isinstance(texts, (str, bytes)):
            raise TypeError("texts= is a single string; put it into a list")
        return None
    if files is not None:
        return paths("files", files)
    if isinstance(data, (str, os.PathLike)):
        _refuse_text(data)
        return paths(parameter, data)
    if isinstance(data, (list, tuple, set, frozenset)) and data:
        if all(isinstance(item, os.PathLike) for item in data):
            return paths(parameter, data)
        if any(isinstance(item, os.PathLike) for item in data):
            raise TypeError(f"{parameter} mixes paths and texts; pass only one kind")
        _refuse_file_names(data)
    return None


def paths_or_none(data: Any) -> list[str] | None:
    """Return strings and paths, single or in a list, as paths; None if the input is rows."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple, set, frozenset)) and all(
        isinstance(item, (str, os.PathLike)) for item in data
    ):
        return [os.fspath(item) for item in data]
    module = type(data).__module__.partition(".")[0]
    if is_arrow(data) or module in ("pandas", "polars", "datasets", "numpy"):
        return None
    return paths("data", data)


def paths(parameter: str, value: Any) -> list[str]:
    """Return one path or pattern, or several, as a list."""
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    try:
        return [os.fspath(path) for path in value]
    except TypeError:
        raise TypeError(
            f"{parameter}: expected a path or an iterable of paths, got {type(value).__name__}"
        ) from None


def _refuse_text(data: Any) -> None:
    """Raise an error for a single string that looks like a text and is not a path."""
    if isinstance(data, str) and any(c.isspace() for c in data) and not _is_file(data):
        if not set(data) & set("*?["):
            raise InputError(
                f"no file or directory {data[:60]!r}; a single string is a path, put texts into a list"
            )


def _refuse_file_names(data: Iterable[Any]) -> None:
    """Raise an error if all strings are paths of files: they were hardly meant as texts."""
    items = list(itertools.islice(data, LOOKED_UP))
    if all(isinstance(item, str) and len(item) < 1000 and _is_file(item) for item in items):
        raise TypeError(
            f"every string is the name of a file, first {items[0]!r}; pass files=... to read them, "
            "or texts=... if these are the texts"
        )


def refuse_column(data: Any, output: str | None) -> None:
    """Raise an error if the second argument looks like a column name, not a directory."""
    if hasattr(data, "collect_schema"):
        columns: Any = data.collect_schema().names()
    else:
        columns = getattr(data, "column_names", getattr(data, "columns", None))
    if output is not None and columns is not None and output in list(columns):
        raise InputError(
            f"output={output!r} is a column; pass text_field={output!r} if it has the text, or "
            f"output={'./' + output!r} for a directory of this name"
        )


def _is_file(text: str) -> bool:
    try:
        return "\0" not in text and os.path.exists(text)
    except (OSError, ValueError):
        return False


class Rows(NamedTuple):
    """A table written to a file."""

    file: os.PathLike[str]
    name: str
    n_rows: int
    #: The columns that the run reads.
    columns: dict[str, str | None]
    #: Whether there is a column of IDs.
    has_ids: bool

    def native(self) -> _arose.Rows:
        """Return the table as the compiled part expects it."""
        return _arose.Rows(self.file, self.name, self.n_rows, self.has_ids)


def write(
    rows: Any,
    file: os.PathLike[str],
    name: str,
    fields: Mapping[str, Any],
    *,
    has_all: bool,
    called: dict[str, str] | None = None,
    progress: Callback | None = None,
) -> Rows:
    """Write rows of any kind to a file.

    `fields` has the column names passed by the caller, by parameter. With `called`, the
    columns of text and ID get these names, and named columns may be missing. `progress` is
    called with the stage `load`, the rows so far and the total number of rows.
    """
    texts, ids, urls = ([*fields.get(f"{kind}_field", ())] for kind in ("text", "id", "url"))
    singles = [fields.get("priority_field"), fields.get("time_field")]
    wanted = {
        "name": name,
        "text_field": texts,
        "id_field": ids,
        "url_field": urls,
        "priority_field": singles[0],
        "time_field": singles[1],
        "has_all": has_all,
        "called": called,
    }
    given = [*texts, *ids, *urls, *(field for field in singles if field)]
    n_expected = length_of(rows)
    target = _arose.Spill(file, json.dumps(wanted), progress, n_expected)
    spill(target, rows, Wanted(given, bool(texts), has_all))
    n_rows, columns, has_ids = target.finish()
    if progress is not None:
        progress("load", n_rows, n_rows)
    return Rows(file, name, n_rows, json.loads(columns), has_ids)


def remove(work: os.PathLike[str]) -> None:
    """Remove a temporary directory."""
    import shutil

    shutil.rmtree(work, ignore_errors=True)


def stream(data: Any, names: list[str]) -> Any:
    """Return a stream of texts as an Arrow object, or an iterator of lists or arrays."""
    module = type(data).__module__.partition(".")[0]
    if module == "datasets" and hasattr(data, "column_names"):
        if hasattr(data, "keys"):
            raise TypeError(f"a DatasetDict; pass one of its splits: {', '.join(data.keys())}")
        if data.column_names is None:
            found = data.iter(batch_size=1024)
            return (batch[_column(list(batch), names)] for batch in found)
        tables = data.with_format("arrow").iter(batch_size=1024)
        return (table[_column(table.column_names, names)] for table in tables)
    if module == "polars" and hasattr(data, "collect_batches"):
        column = _column(data.collect_schema().names(), names)
        found = data.select(column).collect_batches(maintain_order=True)
        return (frame[column] for frame in found)
    return data if is_arrow(data) else batches(data)


def _column(columns: list[str], names: list[str]) -> str:
    for name in names:
        if name in columns:
            return name
    found = ", ".join(columns)
    raise InputError(f"no text column: none of {', '.join(names)}; columns found: {found}")


def is_arrow(data: Any) -> bool:
    """Return whether an object has the Arrow interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def batches(data: Any) -> Iterator[Any]:
    """Yield the texts of an iterable in lists; an object with the Arrow interface is one batch."""
    if is_arrow(data):
        yield data
        return
    yield from _bounded(_items(data))


def columns(*columns: Any, text_at: int) -> Iterator[list[list[Any]]]:
    """Yield the items of several iterables in lists, which may differ in length in the last batch.

    `text_at` is the number of the column with the texts.
    """
    end = object()
    rows = itertools.zip_longest(*map(_items, columns), fillvalue=end)
    for batch in _bounded(rows, operator.itemgetter(text_at)):
        yield [[item for item in column if item is not end] for column in zip(*batch)]


def _items(data: Any) -> Iterator[Any]:
    if isinstance(data, (str, bytes)):
        raise TypeError("a single string; put it into a list")
    try:
        return iter(data)
    except TypeError:
        raise TypeError(f"expected strings, got {type(data).__name__}") from None


def _bounded(
    items: Iterator[Any], text_of: Callable[[Any], Any] | None = None
) -> Iterator[list[Any]]:
    """Yield lists of items with a limited number of texts and characters."""
    batch: list[Any] = []
    n_characters = 0
    for item in items:
        batch.append(item)
        text = item if text_of is None else text_of(item)
        if isinstance(text, str):
            n_characters += len(text)
        if len(batch) == BATCH or n_characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch


class Wanted(NamedTuple):
    """The columns that a run may read. Others are left out, so their types do not matter."""

    #: Names passed by the caller.
    given: list[str]
    #: Whether they include the text.
    has_text: bool
    #: Whether all columns are wanted.
    has_all: bool

    def of(self, names: Iterable[Any]) -> list[Any]:
        """Return the columns to read; all if a required one is missing, for the error message."""
        names, usual = list(names), _arose.usual_names()
        has_text = self.has_text or any(n in names for n in [*usual["text"], *usual["html"]])
        if self.has_all or not has_text or any(name not in names for name in self.given):
            return names
        known = {*self.given, *(name for found in usual.values() for name in found)}
        chosen = [name for name in names if name in known]
        for name in chosen:
            if chosen.count(name) > 1:
                raise InputError(f"column {name!r} occurs {chosen.count(name)} times; rename one")
        return chosen


#: For texts without a column name.
TEXT = Wanted(["text"], has_text=True, has_all=False)


def spill(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    """Write rows of any kind to disk."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        _spill_pandas(target, data, wanted)
    elif module == "polars":
        _spill_polars(target, data, wanted)
    elif module == "datasets":
        _spill_datasets(target, data, wanted)
    elif is_arrow(data):
        if module == "pyarrow" and hasattr(data, "select") and hasattr(data, "column_names"):
            chosen = set(wanted.of(data.column_names))
            data = data.select([i for i, name in enumerate(data.column_names) if name in chosen])
        target.push(data)
    elif isinstance(data, Mapping):
        kind = type(data).__name__
        raise TypeError(f"expected texts or a table, got {kind}; pass one value, or make a DataFrame")
    elif isinstance(data, (str, bytes)):
        raise TypeError(f"expected texts or a table, got {type(data).__name__}")
    elif module == "numpy" and getattr(data, "ndim", 1) != 1:
        raise TypeError(f"expected an array of one dimension, got {data.ndim}")
    else:
        _spill_texts(target, data)


def _spill_pandas(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    if not hasattr(data, "columns"):
        import pandas

        texts = (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
        if not isinstance(data, texts):
            raise _unexpected(data)
        data = pandas.Series(data).to_frame("text")
        wanted = TEXT
    data = data[wanted.of(data.columns)]
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "pandas tables need pyarrow, which is not installed; run `pip install arose[pandas]`"
        ) from error
    try:
        table = pyarrow.Table.from_pandas(data, preserve_index=False)
    except (ValueError, pyarrow.ArrowTypeError) as error:
        raise InputError(_mixed(data) or f"pandas cannot convert a column: {error}") from error
    target.push(_without_missing(table, wanted))


def _without_missing(table: Any, wanted: Wanted) -> Any:
    """Convert like `pyarrow`, but let columns without values, numbers to pandas, be texts."""
    import pyarrow

    texts = {*wanted.given, *_arose.usual_names()["text"]}
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        is_missing = column.null_count == len(column) and pyarrow.types.is_floating(column.type)
        if name in texts and is_missing:
            table = table.set_column(number, name, pyarrow.nulls(len(column)))
    return table


def _mixed(data: Any) -> str | None:
    """Describe the first column with objects of different types."""
    for name in data.columns:
        values = data[name].reset_index(drop=True).dropna()
        kinds = values.map(type)
        others = kinds[kinds != kinds.iloc[0]] if len(kinds) else kinds
        if values.dtype == object and len(others):
            one, other = kinds.iloc[0].__name__, others.iloc[0].__name__
            return (
                f"column {name!r} has values of different types, {one} and, in row "
                f"{others.index[0]}, {other}; convert them, for instance with .astype(str)"
            )
    return None


def _spill_polars(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    import polars

    if not isinstance(data, (polars.Series, polars.DataFrame, polars.LazyFrame)):
        raise _unexpected(data)
    if isinstance(data, polars.Series):
        data = data.to_frame("text")
        wanted = TEXT
    is_lazy = isinstance(data, polars.LazyFrame)
    schema = data.collect_schema()
    # Categories become their texts.
    columns = [
        polars.col(name).cast(polars.String)
        if schema[name] in (polars.Categorical, polars.Enum)
        else polars.col(name)
        for name in wanted.of(schema.names())
    ]
    chosen = data.select(columns)
    if not is_lazy:
        target.push(chosen)
    elif hasattr(chosen, "collect_batches"):
        for batch in chosen.collect_batches(maintain_order=True):
            target.push(batch)
    else:
        target.push(chosen.collect())


def _spill_datasets(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    if hasattr(data, "keys"):
        raise TypeError(f"a DatasetDict; pass one of its splits: {', '.join(data.keys())}")
    if not hasattr(data, "column_names"):
        return _spill_texts(target, data)
    if data.column_names is None:
        return _spill_examples(target, data, wanted)
    data = data.select_columns(wanted.of(data.column_names))
    has_rows = False
    for batch in data.with_format("arrow").iter(batch_size=1024):
        target.push(batch)
        has_rows = True
    if not has_rows:
        import pyarrow

        kinds = [(name, pyarrow.string()) for name in data.column_names]
        target.push(pyarrow.schema(kinds).empty_table())


def _spill_examples(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    """Write a stream whose columns are known only from its rows."""
    import pyarrow

    for batch in data.iter(batch_size=1024):
        target.push(pyarrow.table({name: batch[name] for name in wanted.of(batch)}))


def _spill_texts(target: _arose.Spill, data: Any) -> None:
    try:
        items = iter(data)
    except TypeError:
        raise _unexpected(data) from None
    target.push_texts(items)


def _unexpected(data: Any) -> TypeError:
    return TypeError(f"expected texts, a table or paths, got {type(data).__name__}")


def kept_of(data: Any, mask: Any, filter_arrow: Callable[[Any], Any]) -> Any:
    """Return the rows of `data` where the mask is true, as the same type of object.

    `filter_arrow` does the same with an Arrow table of any types.
    """
    module = type(data).__module__.partition(".")[0]
    if module in ("pandas", "numpy"):
        return data[_numpy(mask)]
    if module == "polars":
        import polars

        series = polars.Series(mask, dtype=polars.Boolean)
        return data.filter(polars.lit(series) if isinstance(data, polars.LazyFrame) else series)
    if module == "datasets" and hasattr(data, "column_names"):
        if hasattr(data, "select"):
            return data.select([row for row, is_kept in enumerate(mask) if is_kept])
        return data.filter(lambda _, row: bool(mask[row]), with_indices=True)
    if module == "pyarrow" and hasattr(data, "filter"):
        return _kept_of_pyarrow(data, mask, filter_arrow)
    if is_arrow(data):
        raise TypeError("for other Arrow data call filter_arrow")
    kept = itertools.compress(data, mask)
    if isinstance(data, tuple):
        return tuple(kept)
    return list(kept) if hasattr(data, "__len__") else kept


def _kept_of_pyarrow(data: Any, mask: Any, filter_arrow: Callable[[Any], Any]) -> Any:
    import pyarrow

    try:
        return data.filter(pyarrow.array(mask, pyarrow.bool_()))
    except pyarrow.ArrowNotImplementedError:
        # pyarrow itself cannot filter views and runs.
        pass
    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.record_batch(filter_arrow(data))
    if isinstance(data, pyarrow.Table):
        return pyarrow.table(filter_arrow(data))
    column = pyarrow.table(filter_arrow(pyarrow.table({"": data}))).column(0)
    return column.combine_chunks() if isinstance(data, pyarrow.Array) else column


def length_of(data: Any) -> int | None:
    """Return the number of rows, if it is known without reading them."""
    for name in ("height", "num_rows"):
        number = getattr(data, name, None)
        if isinstance(number, int):
            return number
    try:
        return len(data)
    except TypeError:
        return None


def _numpy(mask: Any) -> Any:
    import numpy

    return numpy.asarray(mask, dtype=bool)
