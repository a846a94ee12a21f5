# pyright: strict
"""What type checkers see of the package; it is checked and never run."""

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


def told(stage: str, done: int, total: int | None) -> None:
    print(stage, done, total)


arose.dedup(files=["a.jsonl"], output="out", progress=told)
