"""What `arose.dedup` takes: which inputs are files, and how everything else becomes rows.

One rule tells files from texts. A single string or path, and an iterable of `pathlib.Path`, are
files; every other iterable of strings is texts. `texts=` and `files=` say it explicitly.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from . import _arose
from ._arose import InputError

#: Texts that are taken from an iterable at once.
BATCH = 8192
#: Strings of a list that are looked up as files before they are taken for texts.
LOOKED_UP = 100


def files_of(data: Any, texts: Any, files: Any) -> list[str] | None:
    """The files to read; None if the input is rows."""
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
        return paths("data", data)
    if isinstance(data, (list, tuple, set, frozenset)) and data:
        if all(isinstance(item, os.PathLike) for item in data):
            return paths("data", data)
        if any(isinstance(item, os.PathLike) for item in data):
            raise TypeError("data mixes paths and texts; pass files= or texts=")
        _refuse_file_names(data)
    return None


def paths(parameter: str, value: Any) -> list[str]:
    """One path or pattern, or several."""
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    try:
        return [os.fspath(path) for path in value]
    except TypeError:
        raise TypeError(
            f"{parameter}: expected a path or an iterable of paths, got {type(value).__name__}"
        ) from None


def _refuse_file_names(data: Iterable[Any]) -> None:
    """Strings that all name files are more likely files than texts."""
    items = list(itertools.islice(data, LOOKED_UP))
    if all(isinstance(item, str) and len(item) < 1000 and _is_file(item) for item in items):
        raise TypeError(
            f"every string is the name of a file, first {items[0]!r}; pass files=... to read them, "
            "or texts=... if these are the texts"
        )


def _is_file(text: str) -> bool:
    try:
        return "\0" not in text and os.path.exists(text)
    except (OSError, ValueError):
        return False


class Wanted(NamedTuple):
    """The columns that a run may look at. No others are taken, so that their types do not matter."""

    #: Names that the caller has passed.
    given: list[str]
    #: Whether the text is among them.
    has_text: bool
    #: Whether all columns are wanted.
    has_all: bool

    def of(self, names: Iterable[Any]) -> list[Any]:
        """The columns to take. All, if one that is needed is missing: the error lists them."""
        names, usual = list(names), _arose.usual_names()
        has_text = self.has_text or any(n in names for n in [*usual["text"], *usual["html"]])
        if self.has_all or not has_text or any(name not in names for name in self.given):
            return names
        known = {*self.given, *(name for found in usual.values() for name in found)}
        return [name for name in names if name in known]


#: For texts that come without a column.
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
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        if module == "pyarrow" and hasattr(data, "select") and hasattr(data, "column_names"):
            data = data.select(wanted.of(data.column_names))
        target.push(data)
    elif isinstance(data, (str, bytes, Mapping)):
        raise TypeError(f"expected texts or a table, got {type(data).__name__}")
    elif module == "numpy" and getattr(data, "ndim", 1) != 1:
        raise TypeError(f"expected an array of one dimension, got {data.ndim}")
    else:
        _spill_texts(target, data)


def _spill_pandas(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):
        data = data.to_frame("text")
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
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise InputError(f"pandas cannot convert a column to Arrow: {error}") from error
    target.push(table)


def _spill_polars(target: _arose.Spill, data: Any, wanted: Wanted) -> None:
    import polars

    if isinstance(data, polars.Series):
        data = data.to_frame("text")
        wanted = TEXT
    is_lazy = isinstance(data, polars.LazyFrame)
    schema = data.collect_schema()
    # Categories become the texts that they stand for.
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
    if data.column_names is not None:
        data = data.select_columns(wanted.of(data.column_names))
    has_rows = False
    for batch in data.with_format("arrow").iter(batch_size=1024):
        target.push(batch)
        has_rows = True
    if not has_rows and data.column_names is not None:
        import pyarrow

        kinds = [(name, pyarrow.string()) for name in data.column_names]
        target.push(pyarrow.schema(kinds).empty_table())


def _spill_texts(target: _arose.Spill, data: Any) -> None:
    try:
        items = iter(data)
    except TypeError:
        raise TypeError(
            f"expected texts, a table or paths, got {type(data).__name__}"
        ) from None
    n_before = 0
    while batch := list(itertools.islice(items, BATCH)):
        target.push_texts([_text(item, n_before + i) for i, item in enumerate(batch)])
        n_before += len(batch)


def _text(item: Any, number: int) -> str | None:
    if isinstance(item, str) or item is None:
        return item
    # What pandas and NumPy have where a text is missing.
    if item != item:
        return None
    raise TypeError(f"item {number} is {type(item).__name__}, expected str or None")


def kept_of(data: Any, mask: Any) -> Any:
    """The rows of `data` where the mask is true, as the same kind of object."""
    module = type(data).__module__.partition(".")[0]
    if module in ("pandas", "numpy"):
        return data[_numpy(mask)]
    if module == "polars":
        import polars

        kept = polars.Series(mask, dtype=polars.Boolean)
        return data.filter(polars.lit(kept) if isinstance(data, polars.LazyFrame) else kept)
    if module == "datasets":
        if hasattr(data, "select"):
            return data.select([row for row, is_kept in enumerate(mask) if is_kept])
        return data.filter(lambda _, row: bool(mask[row]), with_indices=True)
    if module == "pyarrow":
        import pyarrow

        return data.filter(pyarrow.array(list(map(bool, mask)), pyarrow.bool_()))
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        raise TypeError("for other Arrow data call filter_arrow")
    kept = itertools.compress(data, mask)
    if isinstance(data, (list, tuple)):
        return type(data)(kept)
    return kept


def length_of(data: Any) -> int | None:
    """The number of rows, where that can be told without reading them."""
    for name in ("height", "num_rows"):
        if hasattr(data, name):
            return int(getattr(data, name))
    return len(data) if hasattr(data, "__len__") else None


def _numpy(mask: Any) -> Any:
    import numpy

    return numpy.asarray(mask, dtype=bool)
