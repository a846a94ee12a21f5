"""The index: a directory of sketches that finds the documents a new one duplicates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Literal

from . import _arose, _inputs, _settings
from ._arose import AroseError, Match
from ._settings import Policy


class Index:
    """A directory of sketches that finds the documents a new one duplicates.

    Inserted documents survive the end of the process, after `commit` also a power failure. One
    process writes at a time. `host` is where a page came from, for the policies content,
    site and site-union.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> page = "Once upon a midnight dreary, while I pondered, weak and weary, over many a quaint"
    >>> with arose.Index.create(directory + "/seen") as index:
    ...     index.insert("the raven", page)
    >>> with arose.Index.open(directory + "/seen") as index:
    ...     [found.name for found in index.query(page.replace(" ", "  "))]
    ['the raven']
    """

    def __init__(self, native: _arose.Index) -> None:
        if not isinstance(native, _arose.Index):
            raise TypeError("call arose.Index.create(directory) or arose.Index.open(directory)")
        self._native = native

    @classmethod
    def create(
        cls,
        directory: str | os.PathLike[str],
        *,
        policy: Policy | None = None,
        threshold: float | None = None,
        remove: Literal["same", "content"] | None = None,
        w: int | None = None,
        cjk_w: int | None = None,
        recall: float | None = None,
        short: Literal["exact", "any"] = "exact",
        site: Literal["registrable", "henzinger"] | None = None,
        seed: int = 1,
    ) -> Index:
        """Create an empty index in a directory that is empty or does not exist.

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
        options = _settings.checked(options)
        path = _settings.directory("directory", directory)
        return cls(_arose.Index.create(path, json.dumps(options)))

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, read_only: bool = False) -> Index:
        """Open an index; with `read_only` in its present state, while another process may write."""
        read_only = _settings.checked({"read_only": read_only})["read_only"]
        return cls(_arose.Index.open(_settings.directory("directory", directory), read_only))

    def add(
        self, names: Iterable[Any], texts: Iterable[Any], *, hosts: Iterable[Any] | None = None
    ) -> None:
        """Add many documents, sketched on all cores: lists, iterators or string arrays.

        Iterators are consumed in batches. If a name is already in the index, an error is raised and
        the documents before it stay. `hosts` has a host or None for each document.

        >>> import tempfile
        >>> with arose.Index.create(tempfile.mkdtemp() + "/seen") as index:
        ...     index.add(["a", "b"], ["a rose is a rose", "a tulip is a tulip"])
        ...     [[found.name for found in matches] for matches in index.query_many(["a rose is a rose"])]
        [['a']]
        """
        columns = {"names": names, "texts": texts, **({} if hosts is None else {"hosts": hosts})}
        _check_lengths(columns)
        if any(_inputs.is_arrow(column) for column in columns.values()):
            self._native.add(names, texts, hosts)
            return
        for some in _inputs.columns(*columns.values(), text_at=1):
            self._native.add(some[0], some[1], some[2] if len(some) > 2 else None)

    def query_many(
        self, texts: Iterable[Any], *, hosts: Iterable[Any] | None = None
    ) -> list[list[Match]]:
        """Return the duplicates of each text of a list, iterator or string array."""
        columns = {"texts": texts, **({} if hosts is None else {"hosts": hosts})}
        _check_lengths(columns)
        if any(_inputs.is_arrow(column) for column in columns.values()):
            return self._native.query_many(texts, hosts)
        found: list[list[Match]] = []
        for some in _inputs.columns(*columns.values(), text_at=0):
            found += self._native.query_many(some[0], some[1] if len(some) > 1 else None)
        return found

    def insert(self, name: str, text: str, *, host: str | None = None) -> None:
        """Add a document under a name."""
        self._native.insert(*_named(name, text), _settings.text("host", host))

    def query(self, text: str, *, host: str | None = None) -> list[Match]:
        """Return the documents that are duplicates, oldest first."""
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TypeError(f"text is {kind}, expected str; for many texts call query_many")
        return self._native.query(text, _settings.text("host", host))

    def query_or_insert(self, name: str, text: str, *, host: str | None = None) -> list[Match]:
        """Return the duplicates; if there are none, insert the document."""
        host = _settings.text("host", host)
        return self._native.query_or_insert(*_named(name, text), host)

    def remove(self, name: str) -> bool:
        """Remove a document and return whether it was there."""
        return self._native.remove(_settings.string("name", name))

    def commit(self) -> None:
        """Wait until all changes are on disk."""
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
        """Iterate over the names of all documents, oldest first."""
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


def _check_lengths(columns: dict[str, Any]) -> None:
    """Raise an error if columns of known length differ in length."""
    lengths = [(name, len(data)) for name, data in columns.items() if isinstance(data, Sized)]
    for name, n in lengths[1:]:
        first, n_first = lengths[0]
        if n != n_first:
            raise ValueError(f"{n_first} {first} for {n} {name}")
