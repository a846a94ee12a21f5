"""Search in results and archives, and the state of crawls."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from . import _arose, _progress, _settings
from ._arose import InputError, Table
from ._progress import Callback as ProgressCallback


class SearchResults:
    """The results of a query, best first; iteration gives a dict for each."""

    #: One row per result: rank, doc, cluster, id, url, title, score, snippet and others.
    hits: Table
    #: Exact number of matching documents.
    n_documents: int
    #: Number of results; less than that of documents if duplicates are collapsed.
    n_results: int
    #: The offset of the next results; None if there are no more.
    next: int | None

    def __init__(self, hits: Table, n_documents: int, n_results: int, next: int | None) -> None:
        self.hits = hits
        self.n_documents = n_documents
        self.n_results = n_results
        self.next = next

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(_arose.first_rows(self.hits, len(self.hits)))

    def __repr__(self) -> str:
        return (
            f"<arose.SearchResults: {len(self)} of {self.n_results:,} results, "
            f"{self.n_documents:,} documents>"
        )


def search(
    directory: str | os.PathLike[str],
    query: str,
    *,
    limit: int = 10,
    offset: int = 0,
    sort: Literal["score", "newest"] = "score",
    collapse: bool | Literal["content", "same", "none"] = "content",
    kept: bool = False,
    versions: Literal["current", "all"] = "current",
    per_site: int | None = None,
    index: str | os.PathLike[str] | None = None,
    rebuild: bool = False,
    progress: bool | ProgressCallback | None = None,
) -> SearchResults:
    """Search the output of `dedup` over files, a crawl, or a directory of web archives.

    The query language is that of `arose search`: words, `"phrases"`, `OR`, `-word`, `site:`,
    `title:`, `lang:`, `year:`. The first search builds a search index in the directory, or in `index` if
    that is read-only. `collapse` says which documents form one result: duplicates and versions of
    the same content (`"content"`, also `True`), duplicates (`"same"`) or none (`"none"`, also
    `False`). If there are several captures of a URL, `versions` says whether to search only the last
    (`"current"`) or all of them. A site has at most `per_site` results (default: 2; 0 for any number).

    >>> import tempfile
    >>> out = tempfile.mkdtemp() + "/out"
    >>> found = arose.dedup("examples/pages.jsonl", out)
    >>> arose.search(out, "*", limit=3)
    <arose.SearchResults: 3 of 225 results, 300 documents>
    >>> [hit["id"] for hit in arose.search(out, "ferobe tuke", limit=1)]
    ['p0']
    """
    path = _settings.directory("directory", directory)
    if not os.path.isdir(path):
        raise InputError(f"no such directory: `{path}`")
    query = _settings.string("query", query)
    options = _settings.checked(
        {
            "limit": limit,
            "offset": offset,
            "sort": sort,
            "collapse": _level(collapse),
            "kept": kept,
            "versions": versions,
            "per_site": per_site,
            "index": _settings.path("index", index),
            "rebuild": rebuild,
        }
    )
    callback = _progress.callback_of(progress)
    try:
        n_documents, n_results, next, hits = _arose.search(
            path, query, json.dumps(options), callback
        )
    finally:
        _progress.close(callback)
    return SearchResults(hits, n_documents, n_results, next)


def _level(collapse: object) -> object:
    """Return the name of a level for a flag."""
    if isinstance(collapse, bool):
        return "content" if collapse else "none"
    return collapse


def crawl_status(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state and counters of a crawl: what `arose crawl status --json` prints.

    The state is `running`, `interrupted` or `stopped in good order`. The crawl may be running.
    """
    status: dict[str, Any] = json.loads(_arose.crawl_status(_settings.directory("directory", directory)))
    return status


def crawl_statistics(directory: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the history of a crawl: a dict for each line of its `statistics.jsonl`.

    `pandas.DataFrame(arose.crawl_statistics(directory))` turns it into a table.
    """
    path = Path(_settings.directory("directory", directory)) / "statistics.jsonl"
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        raise InputError(f"no statistics of a crawl in `{os.fspath(directory)}`") from None
    # A crawl may be writing the last line.
    return [json.loads(line) for line in lines if line.endswith(b"\n")]
