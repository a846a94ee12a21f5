# pyright: strict
"""The package as type checkers see it. This file is checked and never run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import arose


def texts() -> Iterator[str]:
    yield "a rose"


found = arose.dedup(texts(), threshold=0.8, progress=False)
assert_type(found, arose.Deduplicated)
assert_type(found.documents, arose.Table)
assert_type(found.clusters, arose.Table)
assert_type(found.output, Path | None)
assert_type(found.summary, dict[str, Any])
assert_type(found.show_pair(0, 1), arose.Difference)
assert_type(found.report(), str)
assert_type(len(found.documents), int)
assert_type(arose.compare("a", "b").rule, str | None)
assert_type(arose.extract("<p>a").links, list[str])
assert_type(arose.promise(), list[tuple[float, float]])
assert_type(arose.Sketcher().sketch(["a"]), arose.Table)
with arose.Index.open("seen", read_only=True) as index:
    assert_type(index.query("a"), list[arose.Match])
    assert_type(index.query_many(["a"]), list[list[arose.Match]])
    assert_type(list(index), list[str])
for table in arose.read("a.jsonl"):
    assert_type(table, arose.Table)
for sketches in arose.Sketcher().stream(texts(), text_field="text"):
    assert_type(sketches, arose.Table)
repeated = arose.passages(texts(), min=20, remove="later", against=["a rose"])
assert_type(repeated, arose.Passages)
assert_type(repeated.items, arose.Table | None)
assert_type(repeated.texts(), list[str | None])
arose.dedup(texts(), policy="contained", threshold=0.9)
arose.dedup(texts(), policy="content", remove="content")
results = arose.search("out", "a rose", limit=3)
assert_type(results.hits, arose.Table)
for hit in results:
    assert_type(hit, dict[str, Any])
assert_type(arose.crawl_status("crawl"), dict[str, Any])
assert_type(arose.crawl_statistics("crawl"), list[dict[str, Any]])


def told(stage: str, done: int, total: int | None) -> None:
    print(stage, done, total)


arose.dedup(files=["a.jsonl"], output="out", progress=told)
