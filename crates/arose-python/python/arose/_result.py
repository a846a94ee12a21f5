"""The results of a run, for people and for programs."""

from __future__ import annotations

import operator
import os
import weakref
from pathlib import Path
from typing import Any

from . import _arose, _inputs
from ._arose import AroseError, Table

#: Clusters and pairs in the HTML view.
SHOWN = 5
#: Rows of a table in the HTML view.
PREVIEW = 10
#: Characters of a text in the HTML view.
OPENING = 120
#: Other reasons for dropping documents, by the name of the count.
OTHERS = {
    "dropped_empty": "empty and dropped",
    "dropped_filtered": "filtered out",
    "dropped_known": "already in the index",
    "dropped_superseded": "superseded by a later version",
}


class Deduplicated:
    """The results of a run.

    For rows (texts, tables, datasets) all numbers are row numbers of the input: `documents` has one
    row for each, in order, even where the text is null. For files they are document numbers.

    >>> rose = "a rose is a rose is a rose, whatever else it may be called today"
    >>> found = arose.dedup([rose, None, rose.upper(), "another text altogether"], threshold=0.7)
    >>> found
    <arose.Deduplicated: 4 rows, 3 kept, 0 exact and 1 near duplicate in 1 cluster>
    >>> list(map(bool, found.mask))
    [True, True, False, True]
    """

    #: One row per input row or document: kept or dropped, as a duplicate of which, by which rule.
    documents: Table
    #: One row per verified pair, with its scores.
    pairs: Table
    #: Settings, counts, expected and estimated recall, times.
    summary: dict[str, Any]
    #: The directory with these, the kept documents and the report; None if it was temporary.
    output: Path | None

    def __init__(
        self,
        documents: Table,
        pairs: Table,
        summary: dict[str, Any],
        output: Path | None,
        work: Path | None = None,
        options: str = "{}",
    ) -> None:
        self.documents = documents
        self.pairs = pairs
        self.summary = summary
        self.output = output
        self._work = work
        self._options = options
        if work is not None:
            weakref.finalize(self, _remove, work)

    def __getstate__(self) -> dict[str, Any]:
        # Temporary files do not exist where it is unpickled.
        return {**self.__dict__, "_work": None}

    @property
    def is_by_rows(self) -> bool:
        """Whether the input was rows, not files."""
        return "row" in self.documents.column_names

    @property
    def mask(self) -> Any:
        """True for each row that is kept: a NumPy array, or a list where NumPy is not installed."""
        kept = _arose.mask(self.documents)
        try:
            import numpy
        except ImportError:
            return [bool(is_kept) for is_kept in kept]
        # A copy, so that callers can modify it.
        return numpy.frombuffer(bytearray(kept), dtype=numpy.bool_)

    @property
    def clusters(self) -> Table:
        """One row per cluster, largest first: the kept row and its ID, the size and all members."""
        return _arose.clusters(self.documents)

    @property
    def incomplete_files(self) -> list[dict[str, Any]]:
        """Input files that could not be read completely: path, position, reason and detail."""
        files: list[dict[str, Any]] = self.summary["incomplete_files"]
        return files

    @property
    def kept(self) -> Path | None:
        """The file or directory of the kept documents; None without an output directory."""
        return self.output and self.output / self.summary["kept_in"]

    def filter(self, data: Any) -> Any:
        """Return the kept rows of the input, as the same type of object.

        Takes what `dedup` takes, except files: lists, NumPy arrays, pandas, polars, pyarrow and
        Hugging Face `datasets`. The index of pandas and all columns stay. An iterator gives an
        iterator.

        >>> texts = ["a rose is a rose", "a rose  is a rose", "a tulip"]
        >>> arose.dedup(texts).filter(texts)
        ['a rose is a rose', 'a tulip']
        """
        self._check_rows("filter")
        n = _inputs.length_of(data)
        if n is not None and n != len(self.documents):
            raise ValueError(
                f"data has {n} rows, expected {len(self.documents)}: pass what was deduplicated"
            )
        return _inputs.kept_of(data, self.mask, self.filter_arrow)

    def filter_arrow(self, data: Any) -> Table:
        """Return the kept rows of any Arrow table or stream.

        >>> import pyarrow
        >>> table = pyarrow.table({"text": ["a rose", "a rose"], "stars": [5, 4]})
        >>> arose.dedup(table).filter_arrow(table).to_pyarrow()["stars"].to_pylist()
        [5]
        """
        self._check_rows("filter_arrow")
        if not _inputs.is_arrow(data):
            kind = type(data).__name__
            raise TypeError(f"expected an Arrow table or stream, got {kind}; call filter")
        return _arose.filter(self.documents, data)

    def _check_rows(self, name: str) -> None:
        if not self.is_by_rows:
            raise AroseError(f"{name} is for rows; of files, the kept documents are in `kept`")

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to `path` if one is given."""
        directory = self._directory()
        if not (directory / "report.html").exists():
            _arose.write_report(directory, self._options)
        page = (directory / "report.html").read_text(encoding="utf-8")
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def show_pair(self, a: int, b: int) -> Difference:
        """Show where two rows or documents differ; `a` and `b` are their numbers.

        >>> found = arose.dedup(["a rose is a rose", "a rose  is a rose", "a rose is a tulip"])
        >>> print(found.show_pair(0, 2))
        a rose is a [-rose-] {+tulip+}
        """
        docs = self._documents_of([_number("a", a), _number("b", b)])
        first, second = _arose.texts(self._directory(), docs)
        return Difference(first, second, *_arose.differences(first, second))

    def _directory(self) -> Path:
        directory = self.output or self._work and self._work / "out"
        if directory is None or not directory.exists():
            raise AroseError("the files of this run are gone; run it with an output directory")
        return directory

    def _documents_of(self, rows: list[int]) -> list[int]:
        """Return the documents of rows; rows without text have none."""
        for row in rows:
            if not 0 <= row < len(self.documents):
                raise IndexError(f"no row {row}: there are {len(self.documents)}")
        if not self.is_by_rows:
            return rows
        return _arose.documents_of(self.documents, rows)

    def __repr__(self) -> str:
        counts = self.summary["counts"]
        n, what = len(self.documents), "row" if self.is_by_rows else "document"
        near, clusters = counts["dropped_near"], counts["clusters"]
        n_kept = counts["kept"] + (counts["null_text"] if self.is_by_rows else 0)
        words = (
            f"{_counted(n, what)}, {n_kept:,} kept, {counts['dropped_exact']:,} exact and "
            f"{_counted(near, 'near duplicate')} in {_counted(clusters, 'cluster')}"
        )
        for name, what in OTHERS.items():
            if counts[name]:
                words += f", {counts[name]:,} {what}"
        if files := counts["incomplete_files"]:
            words += f", {_counted(files, 'incomplete file')}"
        return f"<arose.Deduplicated: {words}>"

    def _repr_html_(self) -> str:
        import html

        words = html.escape(repr(self)[1:-1].removeprefix("arose.Deduplicated: "))
        parts = [f"<p><b>arose.Deduplicated</b>: {words}</p>"]
        if clusters := _rows(self.clusters, SHOWN):
            shown = [[c["cluster"], c["kept_id"], c["size"]] for c in clusters]
            opened = self._openings([c["cluster"] for c in clusters])
            rows = [[*row, opening] for row, opening in zip(shown, opened)]
            parts.append(_table("Largest clusters", ["kept", "ID", "size", "text"], rows))
        if pairs := _rows(self.pairs, SHOWN):
            shown = [[p["a"], p["b"], p["rule"], _rounded(p["jaccard"])] for p in pairs]
            opened = self._openings([n for p in pairs for n in (p["a"], p["b"])])
            rows = [[*row, *two] for row, two in zip(shown, zip(opened[::2], opened[1::2]))]
            names = ["a", "b", "rule", "similarity", "text of a", "text of b"]
            parts.append(_table("Sample pairs", names, rows))
        return "".join(parts)

    def _openings(self, numbers: list[int]) -> list[str]:
        """Return the openings of texts of rows or documents; empty where they cannot be read."""
        try:
            texts = _arose.texts(self._directory(), self._documents_of(numbers))
        except AroseError:
            return [""] * len(numbers)
        return [_opening(text) for text in texts]


class Difference:
    """Two texts with their differences marked: `[-only in a-]`, `{+only in b+}`."""

    def __init__(self, a: str, b: str, text: str, rows: str) -> None:
        self.a = a
        self.b = b
        self.text = text
        self._rows = rows

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<arose.Difference: {self.text}>"

    def _repr_html_(self) -> str:
        return f"<table>{self._rows}</table>"


def _number(parameter: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{parameter} is {kind}, expected the number of a row or document") from None


def _remove(work: Path) -> None:
    import shutil

    shutil.rmtree(work, ignore_errors=True)


def _counted(n: int, one: str) -> str:
    return f"{n:,} {one}" if n == 1 else f"{n:,} {one}s"


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _opening(text: str) -> str:
    return text if len(text) <= OPENING else f"{text[:OPENING]}…"


def table_html(table: Table, words: str) -> str:
    """Return the first rows of a table as HTML, for notebooks."""
    import html

    rows = [list(row.values()) for row in _rows(table, PREVIEW)]
    shown = [["" if cell is None else _opening(str(cell)) for cell in row] for row in rows]
    return f"<p>{html.escape(words)}</p>" + _table("", table.column_names, shown)


def _rows(table: Table, most: int) -> list[dict[str, Any]]:
    return _arose.first_rows(table, most)


def _table(title: str, names: list[str], rows: list[list[Any]]) -> str:
    import html

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    caption = title and f"<caption>{title}</caption>"
    return f"<table>{caption}<tr>{head}</tr>{body}</table>"
