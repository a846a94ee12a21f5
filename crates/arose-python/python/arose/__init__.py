"""Exact and near duplicates in texts: compare, read, sketch, deduplicate.

Texts are Python strings or any Arrow string array; results are Arrow tables, which pyarrow,
polars and pandas accept directly. The work is done in Rust on all cores, without the interpreter
lock, and stops at Ctrl-C.

>>> import arose
>>> arose.compare("a rose is a rose", "a rose  is a rose").rule
'exact'
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from . import _arose, _inputs, _progress, _settings
from ._index import Index
from ._passages import Passages, passages
from ._progress import Callback as ProgressCallback
from ._result import Deduplicated, Difference
from ._search import SearchResults, crawl_statistics, crawl_status, search
from ._settings import Keep, Mode, Policy, Verify, checked, names, table_name
from ._settings import reading as _reading
from ._sketch import Sketcher
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

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def compare(
    a: str,
    b: str,
    *,
    w: int | None = None,
    policy: Policy | None = None,
    threshold: float | None = None,
    site: Literal["same", "different"] | None = None,
) -> Comparison:
    """Compare two texts by every score.

    `w` is the number of tokens in a shingle (default: 5, or 8 if super-shingles decide). The rule is
    that of the policy: by default content without sites, or jaccard if a `threshold` is given.
    `threshold` (default: 0.8) is for the policy jaccard, `site` for the policies site and site-union.

    >>> draft = "Once upon a midnight dreary, while I pondered"
    >>> both = arose.compare(draft, "Once upon a time, while I pondered", w=3)
    >>> both.n_common, round(both.jaccard, 4)
    (2, 0.2222)
    >>> both.is_duplicate
    False
    """
    a, b = _settings.string("a", a), _settings.string("b", b)
    policy = _settings.chosen_policy({"policy": policy, "threshold": threshold})
    options = checked({"w": w, "policy": policy, "threshold": threshold})
    if site not in (None, "same", "different"):
        raise SettingError(f"site={site!r}, expected 'same' or 'different'")
    return _arose.compare(a, b, json.dumps({**options, "site": site}))


def extract(html: str, mode: Mode = "content", *, url: str | None = None) -> Page:
    """Extract text, title and links from a web page.

    The mode is `content` (the main content), `visible` (all text that readers see),
    `henzinger` (all text with the URLs of links and images) or `plain` (the unchanged source). With `url`, the URL
    of the page, links become absolute.

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
    mode: Mode = "visible",
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
    """Read documents from files, directories and patterns, or from rows, in input order.

    Takes WARC, ARC and WET, JSON Lines, Parquet, CSV and TSV, and files of HTML, PDF, text and
    Markdown, uncompressed or compressed with gzip or zstd. The result is an iterator of tables and
    an Arrow stream (`pyarrow.RecordBatchReader.from_stream(reader)`, `polars.DataFrame(reader)`).
    Skipped records are counted in `skipped` and described in `warnings`. `incomplete_files` lists
    the files that could not be read completely. With `strict`, the first loss raises `InputLost`.

    Strings are paths. Everything else that `dedup` takes is rows: Arrow tables and streams, frames,
    datasets. A column `html` becomes text, rows without text are skipped, and `source` is `name`.

    In directories, hidden entries are skipped and files of unknown formats are counted in
    `unknown_files`. `include` reads only files that match a pattern, `exclude` omits files and
    directories, and `all_text` reads every text file.

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


def dedup(
    data: Any = None,
    output: str | os.PathLike[str] | None = None,
    *,
    texts: Any = None,
    files: Paths | None = None,
    name: str | None = None,
    policy: Policy | None = None,
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
    versions: Literal["all", "current"] = "all",
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
    mode: Mode = "visible",
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
    ambiguous. A table needs a column with the text, `text` by default; `text_field` sets another
    one. Results of texts and tables are aligned with the rows of the input, and `found.filter(data)`
    returns the kept rows. Their IDs are those of the ID column, or `name` and the row: `table#5`.
    To add rows without an ID column to an index (`update_index`), pass a `name` for the table.

    The options and results are those of `arose dedup` on the command line. The default policy is
    content; without `policy`, options that only others have (`threshold`, `recall`, `w`, `cjk_w`,
    `verify`, `short`) mean jaccard. The results are written
    to the directory `output` if one is given, and an interrupted run over files resumes there. An
    existing run is replaced only with `force=True`. `progress` shows a bar: by default in
    terminals and notebooks, always with True, never with False. A function is called with the
    stage, the processed records and the total records (None if unknown).

    Files that could not be read completely are in `incomplete_files` of the result. With `strict`,
    they and damaged records raise `InputLost` before any document is kept.

    >>> found = arose.dedup(["a rose is a rose", "a rose  is a rose", "a tulip"])
    >>> list(map(bool, found.mask))
    [True, False, True]
    >>> found = arose.dedup("examples/pages.jsonl")
    >>> found.summary["counts"]["kept"]
    244
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
            "versions": versions,
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
    if policy == "url" and exact == "bytes":
        raise SettingError("exact='bytes' cannot be combined with policy='url'; remove it")
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
                progress=callback,
            )
            if update_index and name is None and not rows.has_ids:
                raise SettingError(
                    "update_index=True, but the table has no ID column; pass name=..., by which the "
                    "index will call its rows"
                )
            if policy == "url" and rows.columns["url"] is None:
                raise InputError("policy='url' needs a column with URLs, named url or by url_field")
            if versions == "current" and None in (rows.columns["url"], rows.columns["time"]):
                raise InputError(
                    "versions='current' needs columns with URLs and times, named by url_field and "
                    "time_field"
                )
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
    """Raise an error if a requested field is in no file."""
    files = summary["incomplete_files"]
    if summary["counts"]["read"] == 0 and files and files[0]["reason"] == "no text field":
        first = files[0]
        raise InputError(f"text_field={text_field!r}: `{first['path']}`: {first['detail']}")


def promise(
    *,
    policy: Policy | None = None,
    threshold: float | None = None,
    recall: float | None = None,
) -> list[tuple[float, float]]:
    """Return the probability of finding a pair, by similarity, without a run.

    >>> dict(arose.promise(threshold=0.8))[0.9] > 0.999
    True
    """
    options = checked({"policy": policy, "threshold": threshold, "recall": recall})
    return _arose.promise(json.dumps(options))
