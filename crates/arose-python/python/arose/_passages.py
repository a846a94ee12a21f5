"""Passages that occur more than once, or in a reference."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from . import _arose, _inputs, _progress, _settings
from ._arose import AroseError, InputError, Table
from ._inputs import Rows
from ._progress import Callback as ProgressCallback

Unit = Literal["token", "line", "paragraph", "sentence"]


class Passages:
    """The results of a search for passages.

    For rows (texts, tables, datasets), the tables refer to the rows of the input: columns are called
    `row`, and `documents` has one row for each, in order, even if the text is null. For files, they
    refer to documents, and columns are called `doc`.
    """

    #: One row per input row or document: how much is repeated, removed and left.
    documents: Table
    #: One row per passage, with its length and its number of occurrences; None with `against`.
    passages: Table | None
    #: One row per occurrence of a passage, in tokens, characters and bytes; None with `against`.
    places: Table | None
    #: One row per repeated span, with the place that it repeats; None with `against`.
    removed: Table | None
    #: With `against`, one row per item of the reference: how much of it was found, and where.
    items: Table | None
    #: With `against`, one row per match, with its places on both sides.
    matches: Table | None
    #: Settings, counts, times.
    summary: dict[str, Any]
    #: The directory with these, the kept documents and the report; None if it was temporary.
    output: Path | None

    def __init__(
        self,
        tables: dict[str, Table],
        summary: dict[str, Any],
        output: Path | None,
        work: Path | None = None,
        text_column: str | None = None,
    ) -> None:
        self.documents = tables["documents"]
        self.passages = tables.get("passages")
        self.places = tables.get("places")
        self.removed = tables.get("removed")
        self.items = tables.get("items")
        self.matches = tables.get("matches")
        self.summary = summary
        self.output = output
        self._work = work
        self._text_column = text_column
        if work is not None:
            weakref.finalize(self, _inputs.remove, work)

    def __getstate__(self) -> dict[str, Any]:
        # Temporary files do not exist for the process that unpickles it.
        return {**self.__dict__, "_work": None}

    @property
    def is_by_rows(self) -> bool:
        """Whether the input was rows, not files."""
        return "row" in self.documents.column_names

    @property
    def kept(self) -> Path | None:
        """The file or directory of the kept documents; None without `output` and `remove`."""
        name = self.summary["kept_in"]
        return self.output / name if self.output is not None and name is not None else None

    @property
    def incomplete_files(self) -> list[dict[str, Any]]:
        """Input files that could not be read completely: path, position, reason and detail."""
        files: list[dict[str, Any]] = self.summary["incomplete_files"]
        return files

    def texts(self) -> list[str | None]:
        """Return the text of every row without the removed passages, in input order.

        None if the text is null, or if the row is dropped because too little is left.

        >>> licence = "permission is hereby granted free of charge"
        >>> texts = [licence + " to you", None, "as ever " + licence + " to me"]
        >>> arose.passages(texts, min=5, remove="later").texts()
        ['permission is hereby granted free of charge to you', None, 'as ever me']
        """
        if not self.is_by_rows:
            raise AroseError("texts is for rows; of files, the kept documents are in `kept`")
        name = self.summary["kept_in"]
        if name is None or self._text_column is None:
            raise AroseError("nothing was removed; pass remove=...")
        return _arose.kept_texts(self._directory() / name, self._text_column, self.documents)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one HTML page, and write it to `path` if one is given."""
        page = (self._directory() / "report.html").read_text(encoding="utf-8")
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _directory(self) -> Path:
        directory = self.output or self._work and self._work / "out"
        if directory is None or not directory.exists():
            raise AroseError("the files of this run are gone; run it with an output directory")
        return directory

    def __repr__(self) -> str:
        counts = self.summary["counts"]
        n, what = len(self.documents), "row" if self.is_by_rows else "document"
        words = [f"{n:,} {what}{'' if n == 1 else 's'}"]
        if self.items is not None:
            words.append(f"{counts['items_found']:,} of {counts['items']:,} items found")
        else:
            n_passages = counts["passages"]
            words.append(f"{n_passages:,} repeated passage{'' if n_passages == 1 else 's'}")
            words.append(f"{counts['share']:.1%} of the text repeated")
        if self.summary["removal"]["written"]:
            words.append(f"{self.summary['removal']['share']:.1%} removed")
        return f"<arose.Passages: {', '.join(words)}>"


def passages(
    data: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    texts: Any = None,
    files: Any = None,
    name: str | None = None,
    min: int | None = None,
    unit: Unit = "token",
    span: int | None = None,
    scope: Literal["any", "across", "within"] | None = None,
    times: int | None = None,
    tokens: Literal["words", "all"] | None = None,
    list: int = 10_000,
    remove: Literal["later", "all", "spans", "documents"] | None = None,
    whole_first: bool = False,
    cut: Literal["sentence", "line", "paragraph"] | None = None,
    seam: str | None = None,
    min_left: int | None = None,
    min_unit: int | None = None,
    digits: Literal["keep", "zero"] | None = None,
    against: Any = None,
    common: int | None = None,
    memory: int | None = None,
    mode: Literal["henzinger", "visible", "content", "plain"] = "visible",
    text_field: str | Sequence[str] = (),
    id_field: str | Sequence[str] = (),
    url_field: str | Sequence[str] = (),
    success: bool = False,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    all_text: bool = False,
    strict: bool = False,
    threads: int | None = None,
    force: bool = False,
    progress: bool | ProgressCallback | None = None,
) -> Passages:
    """Find passages that occur more than once, or that occur in a reference, and remove them.

    `data`, `texts` and `files` are those of `dedup`. The options are those of `arose passages`: a
    passage has at least `min` tokens (default: 50, or 13 with `against`) or, with `unit`, `span`
    lines, paragraphs or sentences. `remove` cuts passages from later places, from all places, or
    from the documents that contain a reference. `found.texts()` then returns the remaining texts.

    `against` is a reference: files, texts or a table, distinguished as for `data`. Its documents, the
    items, are searched for in `data`. A table has its own text column, or one named as `text_field`.

    >>> licence = "permission is hereby granted free of charge to any person"
    >>> found = arose.passages([f"one {licence}", f"two {licence}", "three"], min=8)
    >>> found
    <arose.Passages: 3 rows, 1 repeated passage, 87.0% of the text repeated>
    >>> found.places.to_pyarrow()["row"].to_pylist()
    [0, 1]
    >>> found = arose.passages(["so " + licence, "three"], against=[licence], min=8)
    >>> found.items.to_pyarrow()["share"].to_pylist()
    [1.0]
    """
    options = _settings.checked(
        {
            "unit": unit,
            "min": min,
            "span": span,
            "min_unit": min_unit,
            "digits": digits,
            "tokens": tokens,
            "times": times,
            "scope": scope,
            "list": list,
            "remove": remove,
            "whole_first": whole_first,
            "cut": cut,
            "seam": _settings.text("seam", seam),
            "min_left": min_left,
            "common": common,
            "memory": memory,
        },
        _settings.PASSAGES,
    )
    options["reading"] = _settings.reading(
        mode, text_field, id_field, url_field, success, threads, include, exclude, all_text, strict
    )
    force = _settings.checked({"force": force})["force"]
    output = _settings.path("output", output)
    called = _settings.table_name(name)
    paths = _inputs.files_of(data, texts, files)
    _inputs.refuse_column(data if texts is None else texts, output)
    reference = None if against is None else _inputs.files_of(against, None, None, "against")
    options["against"] = reference or []
    callback = _progress.callback_of(progress)
    return _run(
        options,
        paths,
        data if texts is None else texts,
        None if reference is not None else against,
        called,
        output,
        force,
        callback,
    )


def _run(
    options: dict[str, Any],
    paths: list[str] | None,
    data: Any,
    against: Any,
    name: str,
    output: str | None,
    force: bool,
    callback: ProgressCallback | None,
) -> Passages:
    import tempfile

    work = Path(tempfile.mkdtemp(prefix="arose-"))
    folder = Path(output) if output is not None else work / "out"
    reading = options["reading"]
    rows: Rows | None = None
    reference: Rows | None = None
    try:
        if paths is None:
            file = work / "rows.parquet"
            rows = _inputs.write(
                data, file, name, reading, has_all=output is not None, progress=callback
            )
            _refuse_pages(rows, options["remove"])
            reading["columns"] = rows.columns
        if against is not None:
            reference = _reference(against, work / "reference.parquet", reading, rows)
        summary, tables = _arose.passages(
            paths or [], _native(rows), _native(reference), folder, json.dumps(options), force, callback
        )
    except BaseException:
        _inputs.remove(work)
        raise
    finally:
        _progress.close(callback)
    if output is not None:
        _inputs.remove(work)
    return Passages(
        tables,
        json.loads(summary),
        None if output is None else folder,
        work if output is None else None,
        rows and rows.columns["text"],
    )


def _reference(
    against: Any, file: Path, reading: dict[str, Any], rows: Rows | None
) -> Rows:
    """Write a reference, with the column names that the run uses."""
    usual = _arose.usual_names()
    if rows is not None:
        text, id = rows.columns["text"] or usual["text"][0], rows.columns["id"] or usual["id"][0]
    else:
        text = (reading["text_field"] or usual["text"])[0]
        id = (reading["id_field"] or usual["id"])[0]
    called = {"text": text, "id": id}
    return _inputs.write(against, file, "against", reading, has_all=False, called=called)


def _refuse_pages(rows: Rows, remove: str | None) -> None:
    if rows.columns["html"] is not None and remove is not None:
        raise InputError(
            f"column {rows.columns['html']!r} contains web pages, which cannot be cut; extract the "
            "text first with arose.extract, or leave out remove"
        )


def _native(rows: Rows | None) -> _arose.Rows | None:
    return None if rows is None else rows.native()
