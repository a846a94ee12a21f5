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
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import _arose
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
ProgressCallback = Callable[[str, int, int | None], Any]


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
    options = {"w": w, "policy": policy, "threshold": threshold, "site": site}
    return _arose.compare(a, b, json.dumps(options))


def extract(html: str, mode: Mode = "content", *, url: str | None = None) -> Page:
    """Takes text, title and links out of a web page.

    The mode is `content` (the main content), `henzinger` (all text with the addresses of links,
    for duplicate detection) or `plain` (the source as it is). With `url`, where the page came
    from, links become absolute.

    >>> page = arose.extract("<title>T</title><p>ro<b>se</b> &amp; more", "henzinger")
    >>> page.title, page.text
    ('T', 'T\\nrose & more')
    """
    return _arose.extract(html, json.dumps({"mode": mode, "url": url}))


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
    return _arose.read(_paths(paths), json.dumps(reading))


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
        self._native = _arose.Sketcher(json.dumps(options))

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
        return cls(_arose.Index.create(os.fspath(folder), json.dumps(options)))

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Index:
        """Opens an index."""
        return cls(_arose.Index.open(os.fspath(folder)))

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

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Deduplicated:
    """What a run found."""

    #: A row per document: kept or not, for which document it was dropped, by which rule.
    documents: Table
    #: A row per verified pair, with its scores.
    pairs: Table
    #: Settings, counts, promised and estimated recall, times.
    summary: dict[str, Any]
    #: The folder with these, the documents kept and the report; None if it was temporary.
    output: Path | None

    @property
    def incomplete_files(self) -> list[dict[str, Any]]:
        """Input files that could not be read completely: path, position, reason and detail."""
        return self.summary["incomplete_files"]

    @property
    def kept(self) -> Path | None:
        """The file or folder of the documents that stay, in the format they came in."""
        return self.output and self.output / self.summary["kept_in"]


def dedup(
    inputs: Any,
    output: str | os.PathLike[str] | None = None,
    *,
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
    progress: bool | ProgressCallback = False,
) -> Deduplicated:
    """Finds exact and near duplicates and keeps one document of each group.

    `inputs` are files, folders and patterns, or a table (pyarrow, polars, pandas, ...) with a
    column of text. The options are those of `arose dedup` on the command line, and so are the
    results, which go to the folder `output` if one is given; a run that was interrupted there goes
    on. `progress` is True for lines on standard error, or is called with stage, records done and
    records in all (None if not known).

    Files that could not be read completely are in `incomplete_files` of the result; with `strict`
    they and damaged records raise `InputLost` before any document is kept.

    >>> found = arose.dedup("examples/pages.jsonl")
    >>> found.summary["counts"]["kept"]
    247
    >>> rose = "a rose is a rose is a rose, whatever else it may be called today"
    >>> import pyarrow
    >>> table = pyarrow.table({"text": [rose, rose + " or tomorrow", "another text altogether"]})
    >>> found = arose.dedup(table, threshold=0.7, w=2)
    >>> found.documents.to_pyarrow()["kept"].to_pylist()
    [True, False, True]
    """
    options = {
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
        "reading": _reading(
            mode,
            text_field,
            id_field,
            url_field,
            success,
            threads,
            include,
            exclude,
            all_text,
            strict,
        ),
    }
    callback = _progress_lines() if progress is True else (progress or None)
    is_table = hasattr(inputs, "__arrow_c_stream__") or hasattr(inputs, "__arrow_c_array__")
    with tempfile.TemporaryDirectory(prefix="arose-") as scratch:
        base = None
        if is_table:
            base = scratch
            _arose.table_to_parquet(inputs, os.path.join(scratch, "table.parquet"))
            inputs = os.path.join(scratch, "table.parquet")
        folder = Path(output) if output is not None else Path(scratch, "out")
        summary, documents, pairs = _arose.dedup(
            _paths(inputs), folder, json.dumps(options), force or is_table, callback, base
        )
    return Deduplicated(
        documents=documents,
        pairs=pairs,
        summary=json.loads(summary),
        output=None if output is None else folder,
    )


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
    options = {"policy": policy, "threshold": threshold, "recall": recall}
    return _arose.promise(json.dumps(options))


def _paths(paths: Paths) -> list[str]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    return [os.fspath(path) for path in paths]


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
    def names(field: str | Sequence[str]) -> list[str]:
        return [field] if isinstance(field, str) else list(field)

    return {
        "mode": mode,
        "text_field": names(text_field),
        "id_field": names(id_field),
        "url_field": names(url_field),
        "success": success,
        "include": names(include),
        "exclude": names(exclude),
        "all_text": all_text,
        "strict": strict,
        "threads": threads,
    }


def _progress_lines() -> ProgressCallback:
    """Says where a run is whenever it is in another stage."""
    last = [""]

    def tell(stage: str, done: int, total: int | None) -> None:
        if stage != last[0]:
            last[0] = stage
            print(f"arose: {stage}", file=sys.stderr, flush=True)

    return tell
