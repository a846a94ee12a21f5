"""Exact and near duplicates in texts: compare, read, sketch, deduplicate.

Texts are Python strings or any Arrow string array; results are Arrow tables, which pyarrow,
polars and pandas take as they are. The work is done in Rust on all cores, without the interpreter
lock, and stops at Ctrl-C.

>>> import arose
>>> arose.compare("a rose is a rose", "a rose  is a rose").rule
'exact'
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence, Sized
from pathlib import Path
from typing import Any, Literal

from . import _arose, _inputs, _progress, _settings
from ._passages import Passages, passages
from ._progress import Callback as ProgressCallback
from ._result import Deduplicated, Difference
from ._search import SearchResults, crawl_statistics, crawl_status, search
from ._settings import checked, names, table_name
from ._settings import reading as _reading
from ._arose import (
    AroseError,
    Comparison,
    InputError,
    InputLost,
    Match,
    Page,
    Reader,
    SettingError,
    SketchReader,
    Table,
    __version__,
)

__all__ = [
    "AroseError",
    "Comparison",
    "Deduplicated",
    "Difference",
    "Index",
    "InputError",
    "InputLost",
    "Match",
    "Page",
    "Passages",
    "Reader",
    "SearchResults",
    "SettingError",
    "SketchReader",
    "Sketcher",
    "Table",
    "__version__",
    "compare",
    "crawl_statistics",
    "crawl_status",
    "dedup",
    "extract",
    "passages",
    "promise",
    "read",
    "search",
]

Policy = Literal[
    "exact",
    "jaccard",
    "content",
    "b",
    "c",
    "combined",
    "site",
    "site-union",
    "contained",
    "url",
]
Mode = Literal["henzinger", "visible", "content", "plain"]
Verify = Literal["text", "sketch", "none"]
Keep = Literal["first", "longest", "newest", "copies", "priority"]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def compare(
    a: str,
    b: str,
    *,
    w: int | None = None,
    policy: Policy = "jaccard",
    threshold: float | None = None,
    site: Literal["same", "different"] | None = None,
) -> Comparison:
    """Compare two texts by every measure.

    `w` is the number of tokens in a shingle (default: 5, and 8 where features decide). The rule is
    that of the policy; `threshold` (default: 0.8) is for the policy jaccard, `site` for the policies
    site and site-union.

    >>> draft = "Once upon a midnight dreary, while I pondered"
    >>> both = arose.compare(draft, "Once upon a time, while I pondered", w=3)
    >>> both.n_common, round(both.resemblance, 4)
    (2, 0.2222)
    >>> both.is_duplicate
    False
    """
    a, b = _settings.string("a", a), _settings.string("b", b)
    options = checked({"w": w, "policy": policy, "threshold": threshold})
    if site not in (None, "same", "different"):
        raise SettingError(f"site={site!r}, expected 'same' or 'different'")
    return _arose.compare(a, b, json.dumps({**options, "site": site}))


def extract(html: str, mode: Mode = "content", *, url: str | None = None) -> Page:
    """Take text, title and links out of a web page.

    The mode is `content` (the main content), `henzinger` (all text with the addresses of links,
    for duplicate detection), `visible` (all text) or `plain` (the source as it is). With `url`, where the page came
    from, links become absolute.

    >>> page = arose.extract("<title>T</title><p>ro<b>se</b> &amp; more", "henzinger")
    >>> page.title, page.text
    ('T', 'T\\nrose & more')
    """
    html = _settings.string("html", html)
    options = {**checked({"mode": mode}), "url": _settings.text("url", url)}
    return _arose.extract(html, json.dumps(options))


def read(
    data: Any,
    *,
    name: str | None = None,
    mode: Mode = "henzinger",
    text_field: str | Sequence[str] = (),
    id_field: str | Sequence[str] = (),
    url_field: str | Sequence[str] = (),
    success: bool = False,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    all_text: bool = False,
    strict: bool = False,
    threads: int | None = None,
) -> Reader:
    """Read documents out of files, directories and patterns, or out of rows, in input order.

    Takes WARC, ARC and WET, JSON Lines, Parquet, CSV and TSV, and files of HTML, PDF, text and
    Markdown, each plain, gzip or zstd. The result is an iterator of tables and an Arrow stream
    (`pyarrow.RecordBatchReader.from_stream(reader)`, `polars.DataFrame(reader)`). What cannot be
    read is counted in `skipped` and told in `warnings`; `incomplete_files` names the files that
    could not be read completely. With `strict` the first loss raises `InputLost`.

    Strings are paths. Everything else that `dedup` takes is rows: Arrow tables and streams, frames,
    datasets. A column `html` becomes text, rows without text are skipped, and `source` is `name`.

    In directories, hidden entries are skipped and files of unknown kinds are counted in
    `unknown_files`. `include` reads only files that match a pattern, `exclude` leaves files and
    directories out, and `all_text` reads every text file.

    >>> reader = arose.read("examples/pages.jsonl")
    >>> sum(len(batch) for batch in reader), reader.skipped
    (300, {})
    >>> import pyarrow
    >>> table = pyarrow.table({"html": ["<p>a <b>rose</b>"]})
    >>> arose.read(table, name="flowers").read_all().to_pyarrow()["text"].to_pylist()
    ['a rose']
    """
    reading = _reading(
        mode, text_field, id_field, url_field, success, threads, include, exclude, all_text, strict
    )
    paths = _inputs.paths_or_none(data)
    if paths is not None:
        return _arose.read(paths, json.dumps(reading))
    import tempfile

    name = table_name(name)
    work = Path(tempfile.mkdtemp(prefix="arose-"))
    try:
        rows = _inputs.write(data, work / "rows.parquet", name, reading, has_all=False)
        reading["columns"] = rows.columns
        return _arose.read_table(rows.file, name, json.dumps(reading))
    except BaseException:
        _inputs.remove(work)
        raise


class Sketcher:
    """Sketches that a policy compares.

    For jaccard a sketch is a list of `samples` minima (128 if not given) of shingles of `w` tokens;
    for b it is six super-shingles, for c a simhash of 384 bits, for combined and site both. Only
    sketches with the same settings can be compared.

    >>> sketcher = arose.Sketcher("jaccard", samples=128)
    >>> table = sketcher.sketch(["a rose is a rose is a rose", ""])
    >>> table.column_names
    ['n_tokens', 'digest', 'samples']
    """

    def __init__(
        self,
        policy: Policy = "jaccard",
        *,
        w: int | None = None,
        cjk_w: int | None = None,
        samples: int | None = None,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        options = {
            "policy": policy,
            "w": w,
            "cjk_w": cjk_w,
            "samples": samples,
            "seed": seed,
            "threads": threads,
        }
        self._native = _arose.Sketcher(json.dumps(checked(options)))
        self._n_samples = 128 if samples is None else int(samples)

    def sketch(self, texts: Any) -> Table:
        """Sketch texts: a list of strings, or a string array of pyarrow, polars, pandas or any
        other library that speaks Arrow.

        The result has a row per text: n_tokens, digest (equal for exact duplicates), and
        samples, features or simhash, which are null for texts without tokens.

        >>> import pyarrow
        >>> texts = pyarrow.array(["one two three four five six", None])
        >>> table = arose.Sketcher("combined", w=3).sketch(texts).to_pyarrow()
        >>> table["n_tokens"].to_pylist(), table["simhash"].null_count
        ([6, 0], 1)
        """
        return self._native.sketch(texts)

    def stream(self, texts: Any, *, text_field: str | Sequence[str] = ()) -> SketchReader:
        """Sketch texts while they come, in batches: the input need not fit into memory.

        Takes an Arrow stream, of strings or of tables with a column of text (`text_field`, `text`
        by default), or any iterable of strings. The result has the columns of `sketch`; it is an
        iterator of tables and an Arrow stream itself.

        >>> documents = arose.read("examples/pages.jsonl")
        >>> sum(len(table) for table in arose.Sketcher().stream(documents))
        300
        """
        if isinstance(texts, (str, bytes)):
            raise TypeError("texts is a single string; put it into a list")
        fields = names("text_field", text_field) or _arose.usual_names()["text"]
        return self._native.stream(_inputs.stream(texts, fields), fields)

    def estimate(self, a: Sequence[int], b: Sequence[int]) -> float | None:
        """Estimate the similarity of two texts from their samples; None if either has none.

        >>> sketcher = arose.Sketcher(w=2)
        >>> texts = ["one two three four five", "one two three four six"]
        >>> a, b = sketcher.sketch(texts).to_pyarrow()["samples"].to_pylist()
        >>> 0.4 < sketcher.estimate(a, b) < 0.8  # the truth is 3 / 5
        True
        """
        return self._native.estimate(
            _settings.samples("a", a, self._n_samples), _settings.samples("b", b, self._n_samples)
        )


class Index:
    """A folder of sketches that says whether a document, or one much like it, was seen before.

    What was inserted survives the end of the process, after `commit` also that of the machine. One
    process writes at a time. `host` is where a page came from, which the policies content and site
    look at.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> page = "Once upon a midnight dreary, while I pondered, weak and weary, over many a quaint"
    >>> with arose.Index.create(folder + "/seen") as index:
    ...     index.insert("the raven", page)
    >>> with arose.Index.open(folder + "/seen") as index:
    ...     [found.name for found in index.query(page.replace(" ", "  "))]
    ['the raven']
    """

    def __init__(self, native: _arose.Index) -> None:
        self._native = native

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        policy: Policy = "jaccard",
        threshold: float | None = None,
        remove: Literal["same", "content"] | None = None,
        w: int | None = None,
        cjk_w: int | None = None,
        recall: float | None = None,
        short: Literal["exact", "any"] = "exact",
        site: Literal["registrable", "henzinger"] | None = None,
        seed: int = 1,
    ) -> Index:
        """Create an empty index in a folder that is empty or not yet there.

        Options and defaults are those of `dedup`.
        """
        options = {
            "policy": policy,
            "threshold": threshold,
            "remove": remove,
            "w": w,
            "cjk_w": cjk_w,
            "recall": recall,
            "short": short,
            "site": site,
            "seed": seed,
        }
        return cls(_arose.Index.create(os.fspath(folder), json.dumps(checked(options))))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, read_only: bool = False) -> Index:
        """Open an index; with `read_only` beside whoever writes, as it is now."""
        return cls(_arose.Index.open(os.fspath(folder), read_only))

    def add(self, names: Iterable[Any], texts: Iterable[Any]) -> None:
        """Add many documents, sketched on all cores: lists, iterators or string arrays.

        Iterators are consumed in batches. If a name is in the index already, the batches before it
        stay and an error is raised.

        >>> import tempfile
        >>> with arose.Index.create(tempfile.mkdtemp() + "/seen") as index:
        ...     index.add(["a", "b"], ["a rose is a rose", "a tulip is a tulip"])
        ...     [[found.name for found in matches] for matches in index.query_many(["a rose is a rose"])]
        [['a']]
        """
        lengths = [len(data) for data in (names, texts) if isinstance(data, Sized)]
        if len(set(lengths)) > 1:
            raise ValueError(f"{lengths[0]} names for {lengths[1]} texts")
        if _inputs.is_arrow(names) or _inputs.is_arrow(texts):
            self._native.add(names, texts)
            return
        for some_names, some_texts in _inputs.pairs(names, texts):
            self._native.add(some_names, some_texts)

    def query_many(self, texts: Iterable[Any]) -> list[list[Match]]:
        """Return the duplicates of each text of a list, iterator or string array."""
        found: list[list[Match]] = []
        for batch in _inputs.batches(texts):
            found += self._native.query_many(batch)
        return found

    def insert(self, name: str, text: str, *, host: str | None = None) -> None:
        """Add a document under a name."""
        self._native.insert(*_named(name, text), _settings.text("host", host))

    def query(self, text: str, *, host: str | None = None) -> list[Match]:
        """Return the documents that are duplicates, in the order in which they came."""
        text = _settings.string("text", text)
        return self._native.query(text, _settings.text("host", host))

    def query_or_insert(self, name: str, text: str, *, host: str | None = None) -> list[Match]:
        """Return the duplicates; if there are none, insert the document."""
        host = _settings.text("host", host)
        return self._native.query_or_insert(*_named(name, text), host)

    def remove(self, name: str) -> bool:
        """Remove a document and return whether it was there."""
        return self._native.remove(_settings.string("name", name))

    def commit(self) -> None:
        """Wait until all that was done is on disk."""
        self._native.commit()

    def close(self) -> None:
        """Commit and close the index."""
        self._native.close()

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        try:
            n = len(self)
        except AroseError:
            return "<arose.Index: closed>"
        return f"<arose.Index: {n:,} document{'' if n == 1 else 's'}>"

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all documents, in the order in which they came."""
        row: int | None = 0
        while row is not None:
            found, row = self._native.names(row)
            yield from found

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _named(name: Any, text: Any) -> tuple[str, str]:
    return _settings.string("name", name), _settings.string("text", text)


def dedup(
    data: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    texts: Any = None,
    files: Paths | None = None,
    name: str | None = None,
    policy: Policy = "jaccard",
    threshold: float | None = None,
    remove: Literal["same", "content"] | None = None,
    site_counts: Literal["exact", "sampled"] | None = None,
    w: int | None = None,
    cjk_w: int | None = None,
    recall: float | None = None,
    verify: Verify = "text",
    keep: Keep = "first",
    priority_field: str | None = None,
    time_field: str | None = None,
    exact: Literal["text", "bytes"] = "text",
    drop_empty: bool = False,
    short: Literal["exact", "any"] = "exact",
    site: Literal["registrable", "henzinger"] | None = None,
    cap: int = 1024,
    pairs: Literal["verified", "all"] = "verified",
    seed: int = 1,
    memory: int | None = None,
    against: str | os.PathLike[str] | None = None,
    update_index: bool = False,
    dropped: Literal["remove", "revisit"] = "remove",
    max_file_size: int | None = None,
    ids_only: bool = False,
    quality: bool = False,
    filter: str | Sequence[str] = (),
    mode: Mode = "henzinger",
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
) -> Deduplicated:
    """Find exact and near duplicates and keep one document of each cluster.

    `data` is one of

    - texts: any iterable of strings (list, tuple, generator), a NumPy array or a string array of
      Arrow, a pandas or polars Series; None stands for a missing text;
    - a table: a pandas or polars DataFrame, a polars LazyFrame, a Hugging Face `Dataset` or
      `IterableDataset`, or anything with the Arrow C stream interface;
    - files: a string or path, which may be a directory or a pattern, or an iterable of
      `pathlib.Path`.

    A single string is a file and a list of strings is texts; `texts=` and `files=` are never
    ambiguous. A table needs a column with the text, `text` by default; `text_field` names another
    one. Results of texts and tables are aligned with the rows of the input, and `found.filter(data)`
    returns the kept rows. Their IDs are those of the ID column, else `name` and the row: `table#5`.
    To add rows without an ID column to an index (`update_index`), give the table a name.

    The options are those of `arose dedup` on the command line, and so are the results, which go to
    the directory `output` if one is given; an interrupted run over files is resumed there. A run
    that is already there is replaced only with `force=True`. `progress` shows a bar: by default in
    terminals and notebooks, always with True, never with False; a function is called with the
    stage, the records done and the records in all (None if unknown).

    Files that could not be read completely are in `incomplete_files` of the result; with `strict`
    they and damaged records raise `InputLost` before any document is kept.

    >>> found = arose.dedup(["a rose is a rose", "a rose  is a rose", "a tulip"])
    >>> list(map(bool, found.mask))
    [True, False, True]
    >>> found = arose.dedup("examples/pages.jsonl")
    >>> found.summary["counts"]["kept"]
    247
    >>> import pyarrow
    >>> rose = "a rose is a rose is a rose, whatever else it may be called today"
    >>> table = pyarrow.table({"text": [rose, rose + " or tomorrow", "another text altogether"]})
    >>> arose.dedup(table, threshold=0.7, w=2).documents.to_pyarrow()["kept"].to_pylist()
    [True, False, True]
    """
    import tempfile

    options = checked(
        {
            "policy": policy,
            "threshold": threshold,
            "remove": remove,
            "site_counts": site_counts,
            "w": w,
            "cjk_w": cjk_w,
            "recall": recall,
            "verify": verify,
            "keep": keep,
            "priority_field": _settings.text("priority_field", priority_field),
            "time_field": _settings.text("time_field", time_field),
            "exact": exact,
            "drop_empty": drop_empty,
            "short": short,
            "site": site,
            "cap": cap,
            "pairs": pairs,
            "seed": seed,
            "memory": memory,
            "against": _settings.path("against", against),
            "update_index": update_index,
            "dropped": dropped,
            "max_file_size": max_file_size,
            "ids_only": ids_only,
            "quality": quality,
            "filter": names("filter", filter),
        }
    )
    options["reading"] = _reading(
        mode, text_field, id_field, url_field, success, threads, include, exclude, all_text, strict
    )
    force = checked({"force": force})["force"]
    output = _settings.path("output", output)
    paths = _inputs.files_of(data, texts, files)
    _inputs.refuse_column(data if texts is None else texts, output)
    called = table_name(name)
    options["tables_only"] = output is None
    _arose.check(json.dumps(options))
    callback = _progress.callback_of(progress)
    work = Path(tempfile.mkdtemp(prefix="arose-"))
    folder = Path(output) if output is not None else work / "out"
    try:
        if paths is not None:
            found = _arose.dedup(paths, folder, json.dumps(options), force, callback)
        else:
            rows = _inputs.write(
                data if texts is None else texts,
                work / "rows.parquet",
                called,
                {**options, **options["reading"]},
                has_all=output is not None,
            )
            if update_index and name is None and not rows.has_ids:
                raise SettingError(
                    "update_index=True, but the table has no ID column; pass name=..., by which the "
                    "index will call its rows"
                )
            if policy == "url" and rows.columns["url"] is None:
                raise InputError("policy='url' needs a column with URLs, named url or by url_field")
            options["reading"]["columns"] = rows.columns
            found = _arose.dedup_table(rows.native(), folder, json.dumps(options), force, callback)
    except BaseException:
        _inputs.remove(work)
        raise
    finally:
        _progress.close(callback)
    if output is not None:
        _inputs.remove(work)
    summary = json.loads(found[0])
    if options["reading"]["text_field"]:
        _refuse_no_text(summary, text_field)
    return Deduplicated(
        documents=found[1],
        pairs=found[2],
        summary=summary,
        output=None if output is None else folder,
        work=work if output is None else None,
        options=json.dumps(options),
    )


def _refuse_no_text(summary: dict[str, Any], text_field: Any) -> None:
    """An error if a field that was asked for is in no file."""
    files = summary["incomplete_files"]
    if summary["counts"]["read"] == 0 and files and files[0]["reason"] == "no text field":
        first = files[0]
        raise InputError(f"text_field={text_field!r}: `{first['path']}`: {first['detail']}")


def promise(
    *,
    policy: Policy = "jaccard",
    threshold: float | None = None,
    recall: float | None = None,
) -> list[tuple[float, float]]:
    """Return the probability that a pair is found, by similarity, before anything is run.

    >>> dict(arose.promise(threshold=0.8))[0.9] > 0.999
    True
    """
    options = checked({"policy": policy, "threshold": threshold, "recall": recall})
    return _arose.promise(json.dumps(options))
