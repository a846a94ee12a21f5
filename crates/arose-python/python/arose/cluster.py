"""The job as stages over messages, for any engine that can shuffle.

A stage is a step of the compiled part (`arose._arose.Worker`), applied to the messages of other
stages. An engine stores the tables of messages, moves messages to their parts and runs steps; the
plan here says what goes where. What a stage has stored is not done again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from . import _arose

#: Kinds of messages, as in the compiled part.
NOTE, DOCS, TOKENS, CLASS, ENTRY, CONTENT, LIVE, MEMBER, PAIR, WANT = range(-1, 9)
CARD, JUDGE, EDGE = range(9, 12)
LINK, SINGLE, LISTED, TAKEN, LABEL, VERDICT = range(12, 18)

#: What the messages of a partition are sorted by.
ORDER = ["part", "kind", "seq"]
#: Bytes that the messages of one part should have, about.
PART_BYTES = 24 << 20
#: Bytes of input in a part, about.
INPUT_BYTES = 32 << 20
#: More rounds than any graph of four billion nodes takes.
MAX_ROUNDS = 100


class Engine(Protocol):
    """What the plan needs of an engine. Tables are the engine's own; those with a name are stored.

    Every function that makes a table may be lazy.
    """

    #: Parts to spread work over, at least.
    n_partitions: int

    def chunks(self, kind: int, bytes: str, more: str | None = None) -> Any:
        """Columns of what was read, as messages."""

    def stored(self, name: str, *kinds: int) -> Any:
        """The messages of these kinds in a stored table."""

    def map(self, tables: list[Any], step: str, context: str) -> Any:
        """Applies a step to messages as they lie."""

    def reduce(self, tables: list[Any], step: str, context: str) -> Any:
        """Brings messages to their parts, in order, and applies a step."""

    def store(self, name: str, table: Any) -> None:
        """Stores a table of messages."""

    def store_rows(self, name: str, steps: list[tuple[str, list[Any], str, str]]) -> None:
        """Stores rows as a result: those of each (map or reduce, tables, step, context)."""

    def notes(self, name: str) -> list[str]:
        """The notes in a stored table."""

    def shards(self) -> list[tuple[int, int, int]]:
        """Shards of what was read: part, documents, tokens."""


class Stages(Protocol):
    """What is done, and what was noted about it."""

    def done(self, name: str) -> dict[str, Any] | None: ...

    def finish(self, name: str, note: dict[str, Any]) -> None: ...


def work(
    batches: Iterator[Any], step: str, options: str, context: str, rows: bool
) -> Iterator[Any]:
    """Runs a step over batches of messages; gives batches of messages, or of rows.

    The steps `read` and `read-bytes` take parts of the input instead, and give chunks.
    """
    if step.startswith("read"):
        yield from _read(batches, options, json.loads(context))
        return
    worker = _arose.Worker(step, options, context)
    for batch in batches:
        for table in worker.push(batch)[rows]:
            yield pa.record_batch(table)
    for table in worker.finish()[rows]:
        yield pa.record_batch(table)


def in_order(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches as they come; if messages are out of order, an error."""
    last = (-1 << 63, 0, 0)
    for batch in batches:
        for message in zip(*(batch.column(name).to_pylist() for name in ORDER)):
            if message < last:
                raise _arose.AroseError(
                    "the engine did not keep the order of a partition; with --gather workers sort"
                )
            last = message
        yield batch


def put_in_order(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches sorted, which takes as much memory as they do."""
    batches = list(batches)
    if batches:
        table = pa.Table.from_batches(batches)
        yield from table.sort_by([(name, "ascending") for name in ORDER]).to_batches(8)


def _read(batches: Iterator[Any], options: str, context: dict[str, Any]) -> Iterator[Any]:
    version, numbers = context["version"], context.get("numbers")
    # Names of documents hold paths as they were given: relative ones start where the driver is.
    folder = context.get("folder")
    with contextlib.chdir(folder) if folder else contextlib.nullcontext():
        for batch in batches:
            for one, other in zip(*(column.to_pylist() for column in batch.columns)):
                if numbers is None:
                    chunks = _arose.read_part(one, other, options, version)
                else:
                    chunks = _arose.read_bytes(numbers[one], one, other, options, version)
                yield from (pa.record_batch(chunk) for chunk in chunks)


def merge_notes(notes: list[str]) -> dict[str, Any]:
    """Adds up counters, joins lists, and takes the greatest of what is called max."""
    total: dict[str, Any] = {}
    for note in notes:
        _merge(total, json.loads(note))
    return total


def _merge(total: dict[str, Any], note: dict[str, Any]) -> None:
    for name, value in note.items():
        if isinstance(value, dict):
            _merge(total.setdefault(name, {}), value)
        elif isinstance(value, list):
            total.setdefault(name, []).extend(value)
        elif name.startswith("max_"):
            total[name] = max(total.get(name, 0), value)
        else:
            total[name] = total.get(name, 0) + value


class Plan:
    """Runs the stages after reading on an engine."""

    def __init__(self, engine: Engine, stages: Stages, options: dict[str, Any]) -> None:
        self.engine = engine
        self.stages = stages
        self.options = options
        self.is_jaccard = options["policy"] == "jaccard"
        shards = sorted(engine.shards())
        self.n_docs = sum(n_docs for _, n_docs, _ in shards)
        self.n_tokens = sum(n_tokens for _, _, n_tokens in shards)
        starts, start = [], 0
        for part, n_docs, _ in shards:
            starts.append((part, start))
            start += n_docs
        self.starts = starts

    def run(self) -> dict[str, Any]:
        """All stages; what was found."""
        found = {"runs": self.runs()}
        found["candidates"] = self.candidates(found["runs"])
        found["groups"] = self.groups(found["candidates"])
        found["verify"] = self.verify()
        last_round = self.components()
        found["stars"] = self.stars(last_round)
        self.documents(last_round)
        found["pairs"] = self.pairs(found["runs"], found["verify"])
        return found

    def context(self, n_bytes: float = 0, **more: Any) -> str:
        """What steps are told; parts for so many bytes of messages."""
        n_parts = max(self.engine.n_partitions, int(n_bytes // PART_BYTES) + 1)
        return json.dumps(
            {
                "version": _arose.__version__,
                "shards": self.starts,
                "n_docs": self.n_docs,
                "n_parts": n_parts,
                **more,
            }
        )

    def stage(self, name: str, make: Any) -> dict[str, Any]:
        """Stores the table of a stage, unless it is done; what was noted."""
        note = self.stages.done(name)
        if note is None:
            self.engine.store(name, make())
            note = merge_notes(self.engine.notes(name))
            self.stages.finish(name, note)
        return note

    def runs(self) -> dict[str, Any]:
        n_tables = 18 if self.is_jaccard else 40
        context = self.context(self.n_docs * (24 * n_tables + 128))

        def make() -> Any:
            docs = self.engine.chunks(DOCS, "docs", "sketches")
            return self.engine.reduce([self.engine.map([docs], "keys", context)], "runs", context)

        return self.stage("runs", make)

    def candidates(self, runs: dict[str, Any]) -> dict[str, Any]:
        n_bytes = 272 if self.is_jaccard else 120
        context = self.context(runs.get("live", 0) * n_bytes, long=runs.get("long", []))
        engine = self.engine

        def make() -> Any:
            sketches = engine.chunks(DOCS, "sketches")
            live = engine.reduce([sketches, engine.stored("runs", LIVE)], "live", context)
            return engine.reduce([live], "candidates", context)

        return self.stage("candidates", make)

    def verify_context(self) -> str:
        tokens = max(1.0, self.n_tokens / max(1, self.n_docs))
        group_docs = int(max(64, PART_BYTES / (8 * tokens + 256)))
        return self.context(2 * (8 * self.n_tokens + 256 * self.n_docs), group_docs=group_docs)

    def groups(self, candidates: dict[str, Any]) -> dict[str, Any]:
        def make() -> Any:
            pairs = self.engine.stored("candidates", PAIR)
            return self.engine.reduce([pairs], "groups", self.verify_context())

        return self.stage("groups", make)

    def verify(self) -> dict[str, Any]:
        engine, context = self.engine, self.verify_context()

        def make() -> Any:
            vectors = "vectors" if self.is_jaccard else "sketches"
            tables = [
                engine.chunks(DOCS, "docs", vectors),
                engine.stored("runs", CLASS),
                engine.stored("groups", WANT),
            ]
            if self.options["verify"] == "text":
                tables.append(engine.chunks(TOKENS, "tokens"))
            elif self.options["verify"] == "sketch" and self.is_jaccard:
                # Samples take the place of tokens, of which there are none.
                tables.append(engine.chunks(TOKENS, "vectors", "sketches"))
            cards = engine.reduce(tables, "fetch", context)
            return engine.reduce([cards, engine.stored("groups", JUDGE)], "verify", context)

        return self.stage("verify", make)

    def components(self) -> str:
        """Rounds until no node has to move; the name of the last one."""
        # The same number of parts as in verification: links and edges meet by document.
        context = self.verify_context()
        engine = self.engine
        for number in range(MAX_ROUNDS):
            name = f"round-{number}"

            def make(number: int = number) -> Any:
                if number == 0:
                    pairs = [engine.stored("verify", LINK), engine.stored("runs", CLASS)]
                    edges = engine.map(pairs, "edges", context)
                else:
                    edges = engine.stored(f"round-{number - 1}", EDGE)
                return engine.reduce([engine.reduce([edges], "large", context)], "small", context)

            if self.stage(name, make).get("unsettled", 0) == 0:
                return name
        raise _arose.AroseError(f"components did not settle in {MAX_ROUNDS} rounds")

    def stars(self, last_round: str) -> dict[str, Any]:
        context = self.verify_context()
        engine = self.engine

        def make() -> Any:
            tables = [engine.stored(last_round, EDGE), engine.stored("verify", LINK)]
            return engine.reduce([engine.reduce(tables, "attach", context)], "stars", context)

        return self.stage("stars", make)

    def documents(self, last_round: str) -> None:
        if self.stages.done("documents") is not None:
            return
        engine, context = self.engine, self.context()
        taken = [engine.stored("runs", CLASS), engine.stored("stars", TAKEN)]
        tables = [
            engine.chunks(DOCS, "docs"),
            engine.map([engine.stored(last_round, EDGE)], "labels", context),
            engine.reduce(taken, "decide", context),
        ]
        engine.store_rows("documents", [("reduce", tables, "documents", context)])
        self.stages.finish("documents", {})

    def pairs(self, runs: dict[str, Any], verify: dict[str, Any]) -> dict[str, Any]:
        note = self.stages.done("pairs")
        if note is not None:
            return note
        products = [0] * 64
        rows = [0] * 64
        for found in (runs, verify):
            for magnitude, n in found.get("products", {}).items():
                products[int(magnitude)] += n
            for magnitude, n in found.get("firsts", {}).items():
                rows[int(magnitude)] += n
        limit = _arose.listing_limit(products, self.n_docs)
        context = self.context(limit=limit)
        engine = self.engine
        steps = [("map", [engine.stored("verify", SINGLE)], "list", context)]
        if runs.get("copies", 0):
            classes = engine.stored("runs", CLASS)
            listed = engine.reduce([classes, engine.stored("verify", LISTED)], "expand", context)
            steps.append(("map", [classes], "copies", context))
            steps.append(("reduce", [classes, listed], "list", context))
        engine.store_rows("pairs", steps)
        over = [m for m in range(64) if 1 << m > limit]
        note = {"not_listed": sum(products[m] - rows[m] for m in over)}
        self.stages.finish("pairs", note)
        return note
