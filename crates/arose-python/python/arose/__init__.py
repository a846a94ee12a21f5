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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _arose, _inputs, _progress
from ._progress import Callback as ProgressCallback
from ._result import Deduplicated, Difference
from ._settings import checked, names, table_name
from ._arose import (
    AroseError,
    Comparison,
    InputError,
    InputLost,
    Match,
    Page,
    Reader,
    SettingError,
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
    "Reader",
    "SettingError",
    "Sketcher",
    "Table",
    "__version__",
    "compare",
    "dedup",
    "extract",
    "promise",
    "read",
]

Policy = Literal["exact", "jaccard", "b", "c", "combined", "site", "site-union"]
Mode = Literal["henzinger", "content", "plain"]
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
    """Compares two texts by every measure.

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
    for name, text in [("a", a), ("b", b)]:
        if not isinstance(text, str):
            raise TypeError(f"{name} is {type(text).__name__}, expected str")
    options = checked({"w": w, "policy": policy, "threshold": threshold})
    if site not in (None, "same", "different"):
        raise SettingError(f"site={site!r}, expected 'same' or 'different'")
    return _arose.compare(a, b, json.dumps({**options, "site": site}))


def extract(html: str, mode: Mode = "content", *, url: str | None = None) -> Page:
    """Takes text, title and links out of a web page.

    The mode is `content` (the main content), `henzinger` (all text with the addresses of links,
    for duplicate detection) or `plain` (the source as it is). With `url`, where the page came
    from, links become absolute.

    >>> page = arose.extract("<title>T</title><p>ro<b>se</b> &amp; more", "henzinger")
    >>> page.title, page.text
    ('T', 'T\\nrose & more')
    """
    return _arose.extract(html, json.dumps({**checked({"mode": mode}), "url": url}))


def read(
    paths: Paths,
    *,
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
    """Reads documents out of files, folders and patterns, in input order.

    Takes WARC, ARC and WET, JSON lines, Parquet, CSV and TSV, and pages of HTML, text and Markdown,
    each plain, gzip or zstd. The result is an iterator of tables and an Arrow stream
    (`pyarrow.RecordBatchReader.from_stream(reader)`, `polars.DataFrame(reader)`). What cannot be
    read is counted in `skipped` and told in `warnings`; `incomplete_files` names the files that
    could not be read completely. With `strict` the first loss raises `InputLost`.

    In directories, hidden entries are skipped and files of unknown kinds are counted in
    `unknown_files`. `include` reads only files that match a pattern, `exclude` leaves files and
    directories out, and `all_text` reads every text file.

    >>> reader = arose.read("examples/pages.jsonl")
    >>> sum(len(batch) for batch in reader), reader.skipped
    (300, {})
    """
    reading = _reading(
        mode, text_field, id_field, url_field, success, threads, include, exclude, all_text, strict
    )
    return _arose.read(_inputs.paths("paths", paths), json.dumps(reading))


class Sketcher:
    """Makes the sketches that a policy compares.

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

    def sketch(self, texts: Any) -> Table:
        """Sketches texts: a list of strings, or a string array of pyarrow, polars, pandas or any
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

    def estimate(self, a: Sequence[int], b: Sequence[int]) -> float | None:
        """The resemblance that two lists of samples suggest; None if either is empty.

        >>> sketcher = arose.Sketcher(w=2)
        >>> texts = ["one two three four five", "one two three four six"]
        >>> a, b = sketcher.sketch(texts).to_pyarrow()["samples"].to_pylist()
        >>> 0.4 < sketcher.estimate(a, b) < 0.8  # the truth is 3 / 5
        True
        """
        return self._native.estimate(list(a), list(b))


class Index:
    """A folder of sketches that says whether a document, or one much like it, was seen before.

    What was inserted survives the end of the process, after `commit` also that of the machine. One
    process writes at a time. `host` is where a page came from, which the policy site looks at.

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

    def add(self, names: Iterable[str], texts: Iterable[str]) -> None:
        """Add many documents, sketched on all cores.

        >>> import tempfile
        >>> with arose.Index.create(tempfile.mkdtemp() + "/seen") as index:
        ...     index.add(["a", "b"], ["a rose is a rose", "a tulip is a tulip"])
        ...     [[found.name for found in matches] for matches in index.query_many(["a rose is a rose"])]
        [['a']]
        """
        names, texts = list(names), list(texts)
        if len(names) != len(texts):
            raise ValueError(f"{len(names)} names for {len(texts)} texts")
        self._native.add(names, texts)

    def query_many(self, texts: Iterable[str]) -> list[list[Match]]:
        """Return the duplicates of each text, looked up on all cores."""
        return self._native.query_many(list(texts))

    def insert(self, name: str, text: str, *, host: str | None = None) -> None:
        """Adds a document under a name."""
        self._native.insert(name, text, host)

    def query(self, text: str, *, host: str | None = None) -> list[Match]:
        """The documents that are duplicates, in the order in which they came."""
        return self._native.query(text, host)

    def query_or_insert(self, name: str, text: str, *, host: str | None = None) -> list[Match]:
        """The duplicates; if there are none, the document is inserted."""
        return self._native.query_or_insert(name, text, host)

    def remove(self, name: str) -> bool:
        """Removes a document; whether it was there."""
        return self._native.remove(name)

    def commit(self) -> None:
        """Waits until all that was done is on the disk."""
        self._native.commit()

    def close(self) -> None:
        """Commits and lets go of the folder."""
        self._native.close()

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of all documents, in the order in which they came."""
        return iter(self._native.names())

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dedup(
    data: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    texts: Any = None,
    files: Paths | None = None,
    name: str = "table",
    policy: Policy = "jaccard",
    threshold: float | None = None,
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
    import shutil
    import tempfile

    options = checked(
        {
            "policy": policy,
            "threshold": threshold,
            "w": w,
            "cjk_w": cjk_w,
            "recall": recall,
            "verify": verify,
            "keep": keep,
            "priority_field": priority_field,
            "time_field": time_field,
            "exact": exact,
            "drop_empty": drop_empty,
            "short": short,
            "site": site,
            "cap": cap,
            "pairs": pairs,
            "seed": seed,
            "memory": memory,
            "against": None if against is None else os.fspath(against),
            "update_index": update_index,
        }
    )
    options["reading"] = _reading(
        mode, text_field, id_field, url_field, success, threads, include, exclude, all_text, strict
    )
    force = checked({"force": force})["force"]
    paths = _inputs.files_of(data, texts, files)
    callback = _progress.callback_of(progress)
    work = Path(tempfile.mkdtemp(prefix="arose-"))
    folder = Path(output) if output is not None else work / "out"
    try:
        if paths is not None:
            found = _arose.dedup(paths, folder, json.dumps(options), force, callback)
        else:
            rows = data if texts is None else texts
            file = work / "rows.parquet"
            n_rows = _spill(rows, file, table_name(name), options, has_all=output is not None)
            found = _arose.dedup_table(
                file, name, n_rows, folder, json.dumps(options), force, callback
            )
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    finally:
        _progress.close(callback)
    if output is not None:
        shutil.rmtree(work, ignore_errors=True)
    summary = json.loads(found[0])
    if options["reading"]["text_field"]:
        _refuse_no_text(summary, text_field)
    return Deduplicated(
        documents=found[1],
        pairs=found[2],
        summary=summary,
        output=None if output is None else folder,
        work=work if output is None else None,
    )


def _spill(rows: Any, file: Path, name: str, options: dict[str, Any], *, has_all: bool) -> int:
    """Write rows to a file, tell the options their columns, and return how many there are."""
    reading = options["reading"]
    wanted = {
        "name": name,
        "text_field": reading["text_field"],
        "id_field": reading["id_field"],
        "url_field": reading["url_field"],
        "priority_field": options["priority_field"],
        "time_field": options["time_field"],
        "has_all": has_all,
    }
    given = [*reading["text_field"], *reading["id_field"], *reading["url_field"]]
    given += [field for field in (options["priority_field"], options["time_field"]) if field]
    target = _arose.Spill(file, json.dumps(wanted))
    _inputs.spill(target, rows, _inputs.Wanted(given, bool(reading["text_field"]), has_all))
    n_rows, columns = target.finish()
    reading["columns"] = json.loads(columns)
    return n_rows


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
    """The chance that a pair is found, by similarity, before anything is run.

    >>> dict(arose.promise(threshold=0.8))[0.9] > 0.999
    True
    """
    options = checked({"policy": policy, "threshold": threshold, "recall": recall})
    return _arose.promise(json.dumps(options))


def _reading(
    mode: str,
    text_field: str | Sequence[str],
    id_field: str | Sequence[str],
    url_field: str | Sequence[str],
    success: bool,
    threads: int | None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    all_text: bool = False,
    strict: bool = False,
) -> dict[str, Any]:
    options = {"mode": mode, "success": success, "all_text": all_text, "strict": strict}
    return {
        **checked({**options, "threads": threads}),
        "text_field": names("text_field", text_field),
        "id_field": names("id_field", id_field),
        "url_field": names("url_field", url_field),
        "include": names("include", include),
        "exclude": names("exclude", exclude),
    }
