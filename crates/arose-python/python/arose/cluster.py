"""The job as stages over messages, for any engine that can shuffle.

A stage is a step of the compiled part (`arose._arose.Worker`), applied to the messages of other
stages. An engine stores the tables of messages, moves messages to their parts and runs steps. The
plan here connects them. Completed stages are not repeated.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from . import _arose, _schemas
from ._store import Store, is_object

#: Kinds of messages.
KINDS: dict[str, int] = _arose.KINDS
NOTE, DOCS, TOKENS, CLASS, LIVE = (KINDS[k] for k in ("NOTE", "DOCS", "TOKENS", "CLASS", "LIVE"))
PAIR, WANT, JUDGE, EDGE, LINK = (KINDS[k] for k in ("PAIR", "WANT", "JUDGE", "EDGE", "LINK"))
LISTED, TAKEN, PLACES, COPIES = (KINDS[k] for k in ("LISTED", "TAKEN", "PLACES", "COPIES"))
#: Kinds of messages of the policy `content`.
PAGE, REPEATED, COPY, FRAMED = (KINDS[k] for k in ("PAGE", "REPEATED", "COPY", "FRAMED"))
MARKS, OTHERS, VERSION = (KINDS[k] for k in ("MARKS", "OTHERS", "VERSION"))

MESSAGES = _schemas.arrow("messages")
#: The sort order of the messages of a partition.
ORDER = ["part", "kind", "seq"]
#: Approximate bytes of the messages of one part.
PART_BYTES = 16 << 20
#: Maximum number of parts, by stage. Steps that sort in files take parts of any size, and fewer
#: parts give larger messages.
MAX_PARTS = {"runs": 1 << 12, "candidates": 1 << 14, "verify": 1 << 15}
#: Bytes of a word pair of a page in a message.
POSTING_BYTES = 16
#: Approximate bytes of input in a part.
INPUT_BYTES = 32 << 20
#: Minimum number of rows in a row group of a Parquet file.
ROW_GROUP = 1 << 16
#: Maximum number of documents whose sketches, 388 bytes each, are read from their files.
MAX_READ = 1 << 23
#: Maximum number of edges whose components are found in one part; otherwise in rounds.
MAX_EDGES = PART_BYTES // 8
#: More rounds than any graph of four billion nodes needs.
MAX_ROUNDS = 100


class Engine(Protocol):
    """The engine that the plan needs. It has its own type of tables; named tables are stored.

    Every function that returns a table may be lazy.
    """

    #: The directory of the data read, if all workers share one; otherwise it is in messages.
    chunk_folder: str | None

    def chunks(self, kind: int, bytes: str, more: str | None = None) -> Any:
        """Return columns of the data read, as messages."""

    def stored(self, name: str, *kinds: int) -> Any:
        """Return the messages of these kinds in a stored table."""

    def map(self, tables: list[Any], step: str, context: str) -> Any:
        """Apply a step to messages without moving them."""

    def reduce(self, tables: list[Any], step: str, context: str) -> Any:
        """Move messages to their parts, in order, and apply a step."""

    def store(self, name: str, table: Any) -> None:
        """Store a table of messages."""

    def store_rows(self, name: str, steps: list[tuple[str, list[Any], str, str]]) -> None:
        """Store rows as a result: those of each (map or reduce, tables, step, context)."""

    def notes(self, name: str) -> list[str]:
        """Return the notes in a stored table."""

    def store_kept(self, tables: list[Any], step: str, context: str) -> dict[str, Any]:
        """Copy the kept records, as listed by a step. Return `kept_in`, the name of the output if
        there is any, and `lost`, files that could not be copied completely."""

    def shards(self) -> list[tuple[int, int, int]]:
        """Return the shards of the data read: part, documents, tokens."""

    def places(self) -> list[tuple[int, int, int]]:
        """Return the chunks in files: part, its first document, and the start of its sketch."""


class Stages(Protocol):
    """The completed stages and their notes."""

    def done(self, name: str) -> dict[str, Any] | None: ...

    def finish(self, name: str, note: dict[str, Any]) -> None: ...


def work(
    batches: Iterator[Any], step: str, options: str, context: str, rows: bool
) -> Iterator[Any]:
    """Run a step over batches of messages; yield batches of messages, or of rows.

    The steps `read` and `read-bytes` take parts of the input instead, and yield chunks.
    """
    if step.startswith("read"):
        yield from _read(batches, options, json.loads(context))
        return
    _use_local_dirs()
    worker = _arose.Worker(step, options, context)
    for batch in batches:
        worker.push(batch)
        yield from _given(worker, rows)
    worker.finish()
    yield from _given(worker, rows)


def _given(worker: Any, rows: bool) -> Iterator[Any]:
    """Yield the output of a step until it waits for messages."""
    while (given := worker.next()) is not None:
        table, is_rows = given
        if is_rows == rows:
            yield pa.record_batch(table)


def _use_local_dirs() -> None:
    """Let steps sort in the local directory of Spark."""
    if "TMPDIR" not in os.environ and (folders := os.environ.get("SPARK_LOCAL_DIRS")):
        os.environ["TMPDIR"] = folders.split(",")[0]


def write_rows(
    batches: Iterator[Any], store: Store, folder: str, is_consecutive: bool
) -> Iterator[Any]:
    """Write rows to files of this task. Yield their names, which sort like their rows.

    If rows are consecutive, a row whose first column does not follow that of the previous row starts
    a new file: a file then has the rows of a shard.
    """
    import pyarrow.parquet as pq

    names = []
    for first, run in _runs(batches, is_consecutive):
        name = f"{folder}/{first:020}-{uuid.uuid4()}.parquet"
        batch = next(run)
        with store.writing(name) as file:
            with pq.ParquetWriter(file, batch.schema, compression="zstd") as writer:
                for group in _row_groups(itertools.chain([batch], run)):
                    writer.write_table(group)
        names.append(name)
    if names:
        yield pa.record_batch([pa.array(names)], ["path"])


def _runs(batches: Iterator[Any], is_consecutive: bool) -> Iterator[tuple[int, Iterator[Any]]]:
    """Yield batches of consecutive rows, and the number of the first row."""
    batches = (batch for batch in batches if len(batch))
    waiting = next(batches, None)

    def run() -> Iterator[Any]:
        nonlocal waiting
        while waiting is not None:
            batch, waiting = waiting, next(batches, None)
            yield batch
            after = batch.column(0)[-1].as_py() + 1
            if is_consecutive and waiting is not None and waiting.column(0)[0].as_py() != after:
                return

    while waiting is not None:
        yield waiting.column(0)[0].as_py(), run()


def _row_groups(batches: Iterator[Any]) -> Iterator[Any]:
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= ROW_GROUP:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def keep(batches: Iterator[Any], store: Store, folder: str) -> Iterator[Any]:
    """Write messages to files of this task, one for each kind, or chunks. Yield their names.

    Next to chunks there is a file with the sizes of shards, so that not all chunks are read.
    """
    stem = f"{folder}/{uuid.uuid4()}"
    shards: dict[int, list[Any]] = {}
    with contextlib.ExitStack() as open_files:
        writers: dict[str, Any] = {}

        def write(name: str, batch: Any) -> None:
            if name not in writers:
                file = open_files.enter_context(store.writing(name))
                writers[name] = open_files.enter_context(pa.ipc.new_file(file, batch.schema))
            writers[name].write_batch(batch)

        for batch in batches:
            for suffix, own in _by_kind(batch):
                write(f"{stem}.{suffix}", own)
                if suffix == "chunks":
                    _add_shards(shards, own)
        if shards:
            columns = [list(shards), *zip(*shards.values())]
            names = ["part", "n_docs", "n_tokens", "note"]
            kinds = [pa.int64(), pa.int64(), pa.int64(), pa.string()]
            columns = [pa.array(column, kind) for column, kind in zip(columns, kinds)]
            write(f"{stem}.shards", pa.record_batch(columns, names))
    if writers:
        yield pa.record_batch([pa.array(list(writers))], ["path"])


def _add_shards(shards: dict[int, list[Any]], chunks: Any) -> None:
    columns = (chunks.column(name) for name in ("part", "n_docs", "n_tokens", "note"))
    for part, n_docs, n_tokens, note in zip(*(column.to_pylist() for column in columns)):
        shard = shards.setdefault(part, [0, 0, None])
        shard[0] += n_docs
        shard[1] += n_tokens
        shard[2] = note or shard[2]


def copy_kept(
    batches: Iterator[Any], store: Store, folder: str, options: str, start: str | None
) -> Iterator[Any]:
    """Copy the kept records, a file for each row. Yield part, source and name of each, and the
    source as JSON if some of it could not be copied.

    Relative sources start at a directory.
    """
    for batch in batches:
        columns = ("part", "source", "kept", "dropped")
        for part, source, *places in zip(*(batch.column(name).to_pylist() for name in columns)):
            name = f"{folder}/{uuid.uuid4()}"
            lost = _copy_kept(source, places, store, name, options, start)
            found = [pa.array([part])]
            found += [pa.array([text], pa.string()) for text in (source, name, lost)]
            yield pa.record_batch(found, ["part", "source", "path", "lost"])


def _copy_kept(
    source: str, places: list[bytes], store: Store, name: str, options: str, start: str | None
) -> str | None:
    import tempfile

    kept, dropped = places
    with contextlib.ExitStack() as stack:
        if is_object(source):
            inputs = Store(source)
            source = stack.enter_context(inputs.copy_here(inputs.path("")))
        elif start is not None:
            source = os.path.join(start, source)
        if store.is_local:
            os.makedirs(os.path.dirname(store.path(name)), exist_ok=True)
            return _arose.copy_kept(source, kept, dropped, options, store.path(name))
        here = os.path.join(stack.enter_context(tempfile.TemporaryDirectory()), "kept")
        lost = _arose.copy_kept(source, kept, dropped, options, here)
        with open(here, "rb") as copy, store.writing(name) as file:
            while block := copy.read(1 << 22):
                file.write(block)
        return lost


def _by_kind(batch: Any) -> list[tuple[Any, Any]]:
    if "kind" not in batch.schema.names:
        return [("chunks", batch)]
    kinds = batch.column("kind")
    found = kinds.unique().to_pylist()
    if len(found) == 1:
        return [(found[0], batch)]
    return [(kind, batch.filter(pc.equal(kinds, kind))) for kind in found]


def kept(store: Store, names: Iterable[str]) -> Iterator[Any]:
    """Yield the batches in files written by `keep`."""
    for name in names:
        with store.reading(name) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)


def as_messages(batches: Iterator[Any], kind: int, bytes: str, more: str | None) -> Iterator[Any]:
    """Yield columns of chunks as messages."""
    for batch in batches:
        columns = [
            batch.column("part"),
            pa.array([kind] * len(batch), pa.int32()),
            batch.column("seq"),
            batch.column(bytes),
            batch.column(more) if more else pa.nulls(len(batch), pa.binary()),
        ]
        yield pa.record_batch(columns, schema=MESSAGES)


def messages(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches of messages, all with the same schema."""
    return (pa.record_batch(batch.columns, schema=MESSAGES) for batch in batches)


def in_order(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches unchanged; raise an error if messages are out of order."""
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
    """Yield the batches sorted, which takes as much memory as they do."""
    if all_of_them := list(batches):
        table = pa.Table.from_batches(all_of_them)
        yield from table.sort_by([(name, "ascending") for name in ORDER]).to_batches(8)


def _read(batches: Iterator[Any], options: str, context: dict[str, Any]) -> Iterator[Any]:
    version, numbers, chunk_folder = context["version"], context.get("numbers"), context["chunks"]
    # Names of documents contain paths as passed. Relative ones start at the driver's directory.
    folder = context.get("folder")
    with contextlib.chdir(folder) if folder else contextlib.nullcontext():
        for batch in batches:
            for one, other in zip(*(column.to_pylist() for column in batch.columns)):
                if numbers is not None:
                    chunks = _arose.read_bytes(
                        numbers[one], one, other, options, version, chunk_folder
                    )
                elif is_object(other):
                    store = Store(other)
                    with store.fs.open_input_file(store.path("")) as file:
                        content = file.read()
                    chunks = _arose.read_bytes(one, other, content, options, version, chunk_folder)
                else:
                    chunks = _arose.read_part(one, other, options, version, chunk_folder)
                yield from (pa.record_batch(chunk) for chunk in chunks)


def start_of(place: bytes) -> int:
    """Return the start of a column of a chunk in its file."""
    return int.from_bytes(place[:8], "little")


def merge_notes(notes: list[str]) -> dict[str, Any]:
    """Add up counters, join lists, and take the maximum of names with `max_`."""
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
    """Runs the stages after reading on an engine.

    `n_parts` is the minimum number of parts. Stored messages are addressed to parts, so it must be
    the same whenever a run is resumed. The number of partitions of the engine does not matter.
    `sizes` are the sizes of messages from the compiled part.
    """

    def __init__(
        self,
        engine: Engine,
        stages: Stages,
        options: dict[str, Any],
        n_parts: int,
        sizes: dict[str, Any],
    ) -> None:
        self.engine = engine
        self.stages = stages
        self.options = options
        self.n_parts = n_parts
        self.sizes = sizes
        shards = sorted(engine.shards())
        self.n_docs: int = sum(n_docs for _, n_docs, _ in shards)
        self.n_tokens: int = sum(n_tokens for _, _, n_tokens in shards)
        self.n_pairs: int = 0
        self.starts: list[tuple[int, int]] = []
        start = 0
        for part, n_docs, _ in shards:
            self.starts.append((part, start))
            start += n_docs

    def run(self) -> dict[str, Any]:
        """Run all stages; return their results."""
        if self.sizes["is_gathered"]:
            return self.gathered()
        found = self.sites() if self.sizes["has_marks"] else {}
        found["runs"] = self.runs()
        found["candidates"] = self.candidates(found["runs"])
        self.n_pairs = found["candidates"].get("pairs", 0)
        found["groups"] = self.groups("groups", "candidates")
        found["verify"] = self.verify("verify", "groups")
        stars, last_round, links = self.decide(found["verify"].get("accepted", 0))
        if self.sizes["has_versions"]:
            found["versions"] = self.versions(last_round, links)
        self.documents(stars)
        if self.sizes["has_marks"]:
            self.repeats()
        found["pairs"] = self.pairs(stars, links)
        found["kept"] = self.kept(stars)
        return found

    def gathered(self) -> dict[str, Any]:
        """Run all stages of a policy by which one task decides on all documents."""
        engine, context = self.engine, self.context("runs", self.n_docs * self.sizes["content"])

        def contents() -> Any:
            documents = engine.map([engine.chunks(DOCS, "docs")], "contents", context)
            return engine.reduce([documents], "runs", context)

        def decisions() -> Any:
            # Tokens in files are read from there.
            kind = TOKENS if engine.chunk_folder is None else PLACES
            tables = [
                engine.chunks(DOCS, "docs"),
                engine.chunks(kind, "tokens"),
                engine.stored("runs", COPIES),
            ]
            return engine.reduce([engine.map(tables, "gather", context)], "contained", context)

        found = {"runs": self.stage("runs", contents)}
        found["verify"] = self.stage("decisions", decisions)
        self.documents("decisions")
        found["pairs"] = self.pairs("decisions", ["decisions"])
        found["kept"] = self.kept("decisions")
        return found

    def decide(self, n_links: int) -> tuple[str, str, list[str]]:
        """Form clusters, with rounds in which kept documents are compared again. Return the last
        stage, that of its components, and the stages with accepted pairs."""
        links = ["verify"]
        for number in range(_arose.MAX_REPAIRS + 1):
            last_round = self.components(f"round-{number}", links, n_links)
            stars = f"stars-{number}"
            note = self.stars(stars, last_round, links)
            if number == _arose.MAX_REPAIRS or note.get("repairs", 0) == 0:
                break
            self.groups(f"groups-{number}", stars)
            verified = self.verify(f"verify-{number}", f"groups-{number}")
            if verified.get("accepted", 0) == 0:
                break
            links.append(f"verify-{number}")
            n_links += verified["accepted"]
            # Pairs that drop nothing do not change the clusters.
            if verified["removing"] == 0:
                break
        return stars, last_round, links

    def versions(self, last_round: str, links: list[str]) -> dict[str, Any]:
        """Group the kept documents by their versions; add the stage of the pairs verified for it to
        `links`."""
        engine, context = self.engine, self.verify_context()
        edges = engine.stored(last_round, EDGE)

        def attached() -> Any:
            tables = [edges, *(engine.stored(name, LINK) for name in links)]
            return engine.reduce(tables, "attach", context)

        self.stage("version-pairs", lambda: engine.reduce([attached()], "version-pairs", context))
        self.groups("groups-versions", "version-pairs")
        self.verify("verify-versions", "groups-versions")

        def make() -> Any:
            tables = [edges, engine.stored("verify-versions", LINK)]
            later = engine.reduce(tables, "attach-later", context)
            return engine.reduce([attached(), later], "versions", context)

        note = self.stage("versions", make)
        links.append("verify-versions")
        return note

    def sites(self) -> dict[str, Any]:
        """Count the text that sites repeat, and sketch documents by it."""
        engine = self.engine
        context = self.context("runs", self.n_docs * self.sizes["content"])
        by_word_pair = self.context("runs", POSTING_BYTES * self.n_tokens)

        def texts(*stored: Any) -> list[Any]:
            return [
                engine.chunks(DOCS, "docs", "sketches"),
                engine.chunks(TOKENS, "tokens"),
                *stored,
            ]

        def classes() -> Any:
            contents = engine.map([engine.chunks(DOCS, "docs")], "contents", context)
            return engine.reduce([contents], "runs", context)

        def pages() -> Any:
            sites = engine.map([engine.chunks(DOCS, "docs", "sketches")], "pages", context)
            return engine.reduce([sites], "sites", context)

        def counts() -> Any:
            tables = texts(engine.stored("pages", PAGE))
            postings = engine.reduce(tables, "postings", by_word_pair)
            return engine.reduce([postings], "counts", by_word_pair)

        def weights() -> Any:
            tables = texts(engine.stored("counts", REPEATED), engine.stored("classes", COPY))
            return engine.reduce(tables, "weights", context)

        makers = {"classes": classes, "pages": pages, "counts": counts, "weights": weights}
        return {name: self.stage(name, make) for name, make in makers.items()}

    def repeats(self) -> None:
        """Store the word pairs that sites repeat, with which repeated text is shown."""
        if self.stages.done("repeats") is None:
            framed = self.engine.stored("counts", FRAMED)
            self.engine.store_rows("repeats", [("map", [framed], "repeats", self.context())])
            self.stages.finish("repeats", {})

    @property
    def classes(self) -> str:
        """The name of the stage that finds exact duplicates."""
        return "classes" if self.sizes["has_marks"] else "runs"

    def context(self, stage: str = "runs", n_bytes: float = 0, **more: Any) -> str:
        """Return the context of steps, with parts for this many bytes of messages."""
        n_parts = max(self.n_parts, min(MAX_PARTS[stage], int(n_bytes // PART_BYTES) + 1))
        return json.dumps(
            {
                "version": _arose.__version__,
                "shards": self.starts,
                "chunks": self.engine.chunk_folder,
                "n_docs": self.n_docs,
                "n_parts": n_parts,
                **more,
            }
        )

    def stage(self, name: str, make: Any) -> dict[str, Any]:
        """Store the table of a stage, unless it is complete; return its note."""
        note = self.stages.done(name)
        if note is None:
            self.engine.store(name, make())
            note = merge_notes(self.engine.notes(name))
            self.stages.finish(name, note)
        return note

    def runs(self) -> dict[str, Any]:
        sizes = self.sizes
        n_bytes = sizes["tables"] * sizes["entry"] + sizes["content"]
        context = self.context("runs", self.n_docs * n_bytes)

        def make() -> Any:
            engine = self.engine
            if self.sizes["has_marks"]:
                docs, copies = engine.chunks(DOCS, "docs"), engine.stored("classes", COPY)
                tables = [docs, copies, engine.stored("weights", MARKS)]
                keys = engine.reduce(tables, "mark-keys", context)
            else:
                keys = engine.map([engine.chunks(DOCS, "docs", "sketches")], "keys", context)
            return engine.reduce([keys], "runs", context)

        return self.stage("runs", make)

    def candidates(self, runs: dict[str, Any]) -> dict[str, Any]:
        engine = self.engine
        # Sketches are read one by one if a machine can cache the file; otherwise they are sent.
        is_read = engine.chunk_folder is not None and self.n_docs <= MAX_READ
        has_marks = self.sizes["has_marks"]
        is_read = is_read and not has_marks
        places = engine.places() if is_read else []
        starts = dict(self.starts)
        sketches = sorted((starts[part] + seq, part, at) for part, seq, at in places)
        n_bytes = 32 if sketches else 16 + self.sizes["sketch"]
        n_bytes *= runs.get("live", 0)
        long = runs.get("long", [])
        context = self.context("candidates", n_bytes, sketches=sketches, long=long)

        def make() -> Any:
            tables = [engine.stored("runs", LIVE)]
            if has_marks:
                tables.append(engine.stored("weights", MARKS))
            elif not sketches:
                tables.append(engine.chunks(DOCS, "sketches"))
            live = engine.reduce(tables, "live", context)
            return engine.reduce([live], "candidates", context)

        return self.stage("candidates", make)

    def verify_context(self, **more: Any) -> str:
        tokens = max(1.0, self.n_tokens / max(1, self.n_docs))
        group_docs = int(max(64, PART_BYTES / (8 * tokens + 256)))
        card = 256.0 if self.engine.chunk_folder else 8 * tokens + 256
        n_bytes = 2 * card * self.n_docs + 32 * self.n_pairs
        return self.context("verify", n_bytes, group_docs=group_docs, **more)

    def groups(self, name: str, pairs: str) -> dict[str, Any]:
        def make() -> Any:
            tables = [self.engine.stored(pairs, PAIR)]
            return self.engine.reduce(tables, "groups", self.verify_context())

        return self.stage(name, make)

    def verify(self, name: str, groups: str) -> dict[str, Any]:
        engine, context = self.engine, self.verify_context()

        def make() -> Any:
            vectors = "vectors" if self.sizes["has_samples"] else "sketches"
            tables = [
                engine.chunks(DOCS, "docs", vectors),
                engine.stored(self.classes, CLASS),
                engine.stored(groups, WANT),
            ]
            if self.sizes["has_marks"]:
                tables.append(engine.stored("weights", OTHERS))
            if self.options["verify"] == "text":
                # Tokens in files are read from there.
                kind = TOKENS if engine.chunk_folder is None else PLACES
                tables.append(engine.chunks(kind, "tokens"))
            elif self.options["verify"] == "sketch" and self.sizes["has_samples"]:
                # MinHash values replace the tokens, of which there are none.
                tables.append(engine.chunks(TOKENS, "vectors", "sketches"))
            cards = engine.reduce(tables, "fetch", context)
            return engine.reduce([cards, engine.stored(groups, JUDGE)], "verify", context)

        return self.stage(name, make)

    def components(self, stage: str, links: list[str], n_edges: int) -> str:
        """Run rounds until no node moves, a single one for few edges; return the last name."""
        # The same number of parts as in verification: links and edges are joined by document.
        context = self.verify_context()
        engine = self.engine
        is_whole = n_edges <= MAX_EDGES
        for number in range(MAX_ROUNDS):
            name = f"{stage}-{number}"

            def make(number: int = number) -> Any:
                if number == 0:
                    pairs = [engine.stored(name, LINK) for name in links]
                    to = self.verify_context(n_parts=1) if is_whole else context
                    edges = engine.map(pairs, "edges", to)
                    if is_whole:
                        return engine.reduce([edges], "whole", context)
                else:
                    edges = engine.stored(f"{stage}-{number - 1}", EDGE)
                return engine.reduce([engine.reduce([edges], "large", context)], "small", context)

            if self.stage(name, make).get("unsettled", 0) == 0:
                return name
        raise _arose.AroseError(f"components did not settle in {MAX_ROUNDS} rounds")

    def stars(self, name: str, last_round: str, links: list[str]) -> dict[str, Any]:
        context = self.verify_context()
        engine = self.engine

        def make() -> Any:
            tables = [engine.stored(last_round, EDGE)]
            tables += [engine.stored(name, LINK) for name in links]
            return engine.reduce([engine.reduce(tables, "attach", context)], "stars", context)

        return self.stage(name, make)

    def decided(self, stars: str) -> Any:
        """Return the decisions on the dropped documents."""
        engine = self.engine
        taken = [engine.stored(self.classes, CLASS, COPIES), engine.stored(stars, TAKEN)]
        if self.sizes["has_versions"]:
            taken.append(engine.stored("versions", VERSION))
        return self.engine.reduce(taken, "decide", self.context())

    def documents(self, stars: str) -> None:
        if self.stages.done("documents") is not None:
            return
        engine, context = self.engine, self.context()
        tables = [engine.chunks(DOCS, "docs"), self.decided(stars)]
        engine.store_rows("documents", [("reduce", tables, "documents", context)])
        self.stages.finish("documents", {})

    def pairs(self, stars: str, links: list[str]) -> dict[str, Any]:
        engine, context = self.engine, self.context()

        def make() -> Any:
            pairs = [engine.stored(name, LINK) for name in links]
            linked = engine.map(pairs, "linked", context)
            tables = [engine.chunks(DOCS, "docs"), self.decided(stars), linked]
            return engine.reduce([engine.reduce(tables, "name", context)], "tally", context)

        note = self.stage("named", make)
        if self.stages.done("pairs") is None:
            tables = [engine.chunks(DOCS, "docs"), engine.stored("named", LISTED)]
            engine.store_rows("pairs", [("reduce", tables, "list", context)])
            self.stages.finish("pairs", {})
        return note

    def kept(self, stars: str) -> dict[str, Any]:
        """Copy the kept records."""
        note = self.stages.done("kept")
        if note is None:
            tables = [self.engine.chunks(DOCS, "docs"), self.decided(stars)]
            spans = self.engine.reduce(tables, "spans", self.context())
            note = self.engine.store_kept([spans], "kept", self.context())
            self.stages.finish("kept", note)
        return note
