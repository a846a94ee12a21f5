"""Names of the kept documents of a run on a cluster."""

from __future__ import annotations

import os
import posixpath

from ._store import Store, is_address

#: Extensions of compressed files.
PACKINGS = ("gz", "zst", "xz", "bz2")


def name_copies(store: Store, copies: list[tuple[int, str, str]]) -> str:
    """Rename copies, given as (part, source, name), as on one machine; return the common name.

    A single copy becomes `kept.jsonl`, `kept.warc.gz` and so on. Each of several becomes a file in
    `kept.files`, under the path of its source. A source with several parts becomes
    `NAME-00000.jsonl` and so on.
    """
    for there in ("../kept.files", *_old(store)):
        store.remove(there)
    sources = sorted({source for _, source, _ in copies})
    if not copies:
        store.write_text("../kept.jsonl", "")
        return "kept.jsonl"
    if len(copies) == 1:
        name = f"kept.{_suffix(sources[0])}"
        store.move(copies[0][2], f"../{name}")
        return name
    common = os.path.commonpath([posixpath.dirname(_plain(source)) for source in sources])
    parts: dict[str, list[tuple[int, str]]] = {}
    for part, source, name in copies:
        parts.setdefault(source, []).append((part, name))
    for source in sources:
        path = posixpath.relpath(_plain(source), common)
        for number, (_, name) in enumerate(sorted(parts[source])):
            numbered = path if len(parts[source]) == 1 else _numbered(path, number)
            store.move(name, f"../kept.files/{_safe(numbered)}")
    store.remove("kept.new")
    return "kept.files"


def _old(store: Store) -> list[str]:
    """Return the kept documents of an earlier run in one file."""
    if not store.is_local:
        return []
    folder = store.path("..")
    names = [name for name in os.listdir(folder) if name.startswith("kept.")]
    return [f"../{name}" for name in names if os.path.isfile(os.path.join(folder, name))]


def _plain(source: str) -> str:
    return "/" + source.split("://", 1)[1] if is_address(source) else os.path.normpath(source)


def _safe(path: str) -> str:
    return "/".join(name for name in path.split("/") if name not in ("", ".", ".."))


def _suffix(source: str) -> str:
    """Return the end of a file name that determines its format: `jsonl.gz`."""
    names = posixpath.basename(source).split(".")
    if len(names) == 1:
        return "data"
    return ".".join(names[-2:]) if len(names) > 2 and names[-1] in PACKINGS else names[-1]


def _numbered(path: str, number: int) -> str:
    """`a/b.jsonl.gz` becomes `a/b-00007.jsonl.gz`."""
    suffix = _suffix(path)
    stem = path.removesuffix(f".{suffix}")
    return f"{stem}-{number:05}" + ("" if stem == path else f".{suffix}")
