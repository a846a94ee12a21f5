"""Run `arose dedup` on Apache Spark: the same tables, row for row, on any number of executors.

    python -m arose.spark INPUT... -o OUT
    spark-submit --py-files ... -m arose.spark INPUT... -o OUT

Inputs are files, directories and patterns that every executor can read, objects in a store
(`s3://bucket/crawl/*.warc.gz`), or URLs that Spark reads (`s3a://...`, `hdfs://...`). The job
writes documents.parquet, pairs.parquet, the kept documents and summary.json to the directory OUT.
A restarted driver skips completed stages. See docs/cluster.md.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, overload

from . import _arose, _schemas, _settings, _store
from . import dedup as _local_dedup
from ._kept import name_copies
from ._stages import StoreFiles, Stages, files_of
from .cluster import (
    INPUT_BYTES,
    NOTE,
    ORDER,
    Plan,
    as_messages,
    copy_kept,
    in_order,
    keep,
    kept,
    merge_notes,
    messages,
    put_in_order,
    start_of,
    work,
    write_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGES = _schemas.spark("messages")
CHUNKS = _schemas.spark("chunks")
#: Minimum and maximum number of input bytes of a task.
TASK_BYTES = (1 << 20, 64 << 20)
#: Messages are large and few, so batches and pages have few rows, and compiling code for a plan
#: would take longer than processing its rows.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.sql.parquet.columnarReaderBatchSize": "16",
    "spark.sql.parquet.compression.codec": "uncompressed",
}
#: For JVMs on this machine. They move bytes for a few minutes, too short a time for optimizing or
#: verifying bytecode to pay off, and need little heap.
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
HERE = {
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
    "spark.executor.memory": "512m",
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
    "spark.log.level": "ERROR",
    "spark.python.daemon.module": "arose._daemon",
    "spark.shuffle.checksum.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
}
Runner = Callable[[Iterator[Any], str, str, str, bool], Iterator[Any]]
#: A function that a worker applies to its batches.
Change = Callable[[Iterator[Any]], Iterator[Any]]
#: A Spark table, a function that makes one, or files.
Table = Any


class SparkEngine:
    """Runs steps in `mapInArrow` and stores messages as Parquet, with a directory for each kind.

    `map` and `reduce` return a function that makes a table. Called with a function that writes the
    output of a task, it makes a table of the paths written.
    """

    #: No directory is known that all workers can read.
    chunk_folder: str | None = None

    def __init__(
        self,
        spark: SparkSession,
        files: Any,
        options: dict[str, Any],
        n_partitions: int,
        folder: str | None = None,
        runner: Runner = work,
        order: Change = in_order,
    ) -> None:
        self.spark = spark
        self.files = files
        self.options: str = json.dumps(options)
        self.n_partitions = n_partitions
        #: The directory that relative input paths start at.
        self.folder = folder
        self.runner = runner
        self.order = order

    def read(self, parts: list[str]) -> None:
        """Read parts of the input that executors can read, or objects in a store."""
        import pyarrow as pa

        def name_parts(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                named = [parts[number] for number in batch.column(0).to_pylist()]
                yield pa.record_batch([batch.column(0), pa.array(named)], ["number", "part"])

        n_tasks = max(1, min(len(parts), 4 * self.n_partitions))
        numbers = self.spark.range(0, len(parts), 1, n_tasks)
        context = self._read_context(folder=self.folder)
        self.store("read", self._made([numbers], "read", context, CHUNKS, prepare=name_parts))

    def read_remote(self, addresses: list[str], paths: list[str]) -> None:
        """Read files through Spark, in the order of their paths."""
        files = self.spark.read.format("binaryFile").load(addresses).select("path", "content")
        numbers = {path: number for number, path in enumerate(paths)}
        context = self._read_context(numbers=numbers)
        self.store("read", self._made([files], "read-bytes", context, CHUNKS))

    def _read_context(self, **more: Any) -> str:
        return json.dumps({"version": _arose.__version__, "chunks": self.chunk_folder, **more})

    def chunks(self, kind: int, bytes: str, more: str | None = None) -> DataFrame:
        from pyspark.sql import functions as f

        extra = f.col(more) if more else f.lit(None).cast("binary")
        return self._load("read", CHUNKS).select(
            "part",
            f.lit(kind).cast("int").alias("kind"),
            "seq",
            f.col(bytes).alias("bytes"),
            extra.alias("more"),
        )

    def stored(self, name: str, *kinds: int) -> DataFrame:
        table = self._load(name, MESSAGES)
        table = table.where(table.kind.isin(*kinds))
        return table.select("part", "kind", "seq", "bytes", "more")

    def map(self, tables: list[Table], step: str, context: str) -> Table:
        return self._made(tables, step, context, MESSAGES)

    def reduce(self, tables: list[Table], step: str, context: str) -> Table:
        return self._made(tables, step, context, MESSAGES, is_shuffled=True)

    def store(self, name: str, table: Table) -> None:
        # A dictionary is useless for messages: hardly any bytes occur twice.
        options = {
            "parquet.enable.dictionary": "false",
            "parquet.block.size": str(16 << 20),
            "parquet.page.size.row.check.min": "1",
            "parquet.page.size.row.check.max": "16",
        }
        split_by = [] if name == "read" else ["kind"]
        writer = _table(table).write.mode("overwrite").options(**options).partitionBy(*split_by)
        writer.parquet(self.files.path(name))

    def store_rows(self, name: str, steps: list[tuple[str, list[Table], str, str]]) -> None:
        rows = _union(self._rows(name, steps, in_ranges=True))
        path = self.files.path(f"../{name}.parquet")
        rows.write.mode("overwrite").option("compression", "zstd").parquet(path)

    def store_kept(self, tables: list[Table], step: str, context: str) -> dict[str, Any]:
        # Spark cannot write files of arbitrary formats.
        return {"kept_in": None, "lost": []}

    def _rows(
        self,
        name: str,
        steps: list[tuple[str, list[Table], str, str]],
        in_ranges: bool = False,
    ) -> list[Table]:
        schema = _schemas.spark(name)
        return [
            self._made(
                tables,
                step,
                context,
                schema,
                is_shuffled=how == "reduce",
                has_rows=True,
                in_ranges=in_ranges,
            )
            for how, tables, step, context in steps
        ]

    def notes(self, name: str) -> list[str]:
        if name == "read":
            chunks = self._load(name, CHUNKS)
            noted = chunks.where(chunks.note.isNotNull()).select("note")
            return [row.note for row in noted.collect()]
        notes = self.stored(name, NOTE).select("bytes")
        return [bytes(row.bytes).decode() for row in notes.collect()]

    def places(self) -> list[tuple[int, int, int]]:
        return []

    def shards(self) -> list[tuple[int, int, int]]:
        from pyspark.sql import functions as f

        chunks = self._load("read", CHUNKS).groupBy("part")
        return [tuple(row) for row in chunks.agg(f.sum("n_docs"), f.sum("n_tokens")).collect()]

    def _made(
        self,
        tables: list[Table],
        step: str,
        context: str,
        schema: str,
        *,
        is_shuffled: bool = False,
        has_rows: bool = False,
        in_ranges: bool = False,
        prepare: Change = iter,
    ) -> Table:
        """Return a function that applies a step to tables; with `in_ranges` the shards of a
        partition are consecutive."""
        runner, options = self.runner, self.options
        if is_shuffled:
            prepare = self.order

        def made(write: Change | None = None, written: str = "path string") -> DataFrame:
            table, load = self._source(tables, is_shuffled)

            def run_step(batches: Iterator[Any]) -> Iterator[Any]:
                found = runner(prepare(load(batches)), step, options, context, has_rows)
                return found if write is None else write(found)

            if is_shuffled and in_ranges:
                table = table.repartitionByRange(self.n_partitions, "part")
            elif is_shuffled:
                table = table.repartition(self.n_partitions, "part")
            if is_shuffled:
                table = table.sortWithinPartitions(*ORDER)
            return table.mapInArrow(run_step, schema if write is None else written)

        return made

    def _source(self, tables: list[Table], is_shuffled: bool) -> tuple[DataFrame, Change]:
        """Return the union of tables, and the function that workers apply to its batches first."""
        return _union(tables), iter

    def _load(self, name: str, schema: str) -> DataFrame:
        return self.spark.read.schema(schema).parquet(self.files.path(name))


class SharedEngine(SparkEngine):
    """Stores tables in files that all workers can read; only shuffled data goes through Spark.

    A stored table is a list of files, each with a function that turns its batches into messages.
    """

    def __init__(self, spark: SparkSession, files: StoreFiles, *rest: Any, **more: Any) -> None:
        super().__init__(spark, files, *rest, **more)
        self.store_of_files: _store.Store = files.store
        # Any range of a file on disk can be read; an object is read whole.
        self.chunk_folder: str | None = files.path("chunks") if files.store.is_local else None

    def chunks(self, kind: int, bytes: str, more: str | None = None) -> Table:
        change = functools.partial(as_messages, kind=kind, bytes=bytes, more=more)
        return [(name, change) for name in self.files.kept("read", "chunks")]

    def stored(self, name: str, *kinds: int) -> Table:
        return [(file, messages) for kind in kinds for file in self.files.kept(name, kind)]

    def notes(self, name: str) -> list[str]:
        if name == "read":
            return [note for (note,) in self.files.rows(name, "shards", ["note"]) if note]
        return [bytes(note).decode() for (note,) in self.files.rows(name, NOTE, ["bytes"])]

    def shards(self) -> list[tuple[int, int, int]]:
        shards: dict[int, tuple[int, int]] = {}
        columns = ["part", "n_docs", "n_tokens"]
        for part, n_docs, n_tokens in self.files.rows("read", "shards", columns):
            docs_before, tokens_before = shards.get(part, (0, 0))
            shards[part] = docs_before + n_docs, tokens_before + n_tokens
        return [(part, n_docs, n_tokens) for part, (n_docs, n_tokens) in shards.items()]

    def places(self) -> list[tuple[int, int, int]]:
        chunks = self.files.rows("read", "chunks", ["part", "seq", "sketches"])
        return [(part, seq, start_of(sketches)) for part, seq, sketches in chunks]

    def store(self, name: str, table: Table) -> None:
        write = functools.partial(keep, store=self.store_of_files, folder=name)
        self.files.keep(name, [row.path for row in _table(table, write).collect()])

    def store_rows(self, name: str, steps: list[tuple[str, list[Table], str, str]]) -> None:
        write = functools.partial(
            write_rows,
            store=self.store_of_files,
            folder=f"{name}.new",
            is_consecutive=name == "documents",
        )
        rows = _union(self._rows(name, steps), write)
        self.files.publish(name, [row.path for row in rows.collect()])

    def store_kept(self, tables: list[Table], step: str, context: str) -> dict[str, Any]:
        write = functools.partial(
            copy_kept,
            store=self.store_of_files,
            folder="kept.new",
            options=self.options,
            start=self.folder,
        )
        schema = "part long, source string, path string, lost string"
        made = self._made(
            tables, step, context, _schemas.spark("kept"), is_shuffled=True, has_rows=True
        )
        copies = made(write, schema).collect()
        lost = [json.loads(copy.lost) for copy in copies if copy.lost]
        copies = [(copy.part, copy.source, copy.path) for copy in copies]
        return {"kept_in": name_copies(self.store_of_files, copies), "lost": lost}

    def _source(self, tables: list[Table], is_shuffled: bool) -> tuple[DataFrame, Change]:
        files = [file for table in tables if isinstance(table, list) for file in table]
        others = [table for table in tables if not isinstance(table, list)]
        if not files and others:
            return _union(others), iter
        store = self.store_of_files

        def load(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    name, change = files[number]
                    yield from change(kept(store, [name]))

        n_tasks = max(1, min(len(files), math.ceil(self.n_partitions / 2)))
        numbers = self.spark.range(0, len(files), 1, n_tasks)
        if not others and not is_shuffled:
            return numbers, load
        return _union([numbers.mapInArrow(load, MESSAGES), *others]), iter


def _table(table: Table, write: Change | None = None) -> DataFrame:
    made: DataFrame = table(write) if callable(table) else table
    return made


def _union(tables: list[Table], write: Change | None = None) -> DataFrame:
    first, *others = (_table(table, write) for table in tables)
    for other in others:
        first = first.unionAll(other)
    return first


@overload
def dedup(
    spark: DataFrame,
    *,
    text: str = "text",
    id: str | None = None,
    directory: str | None = None,
    partitions: int | None = None,
    **options: Any,
) -> DataFrame: ...
@overload
def dedup(
    spark: SparkSession,
    inputs: list[str],
    output: str,
    *,
    partitions: int | None = None,
    force: bool = False,
    gather: bool = False,
    **options: Any,
) -> dict[str, Any]: ...
def dedup(
    spark: Any,
    inputs: list[str] | None = None,
    output: str | None = None,
    *,
    partitions: int | None = None,
    force: bool = False,
    gather: bool = False,
    input_bytes: int = INPUT_BYTES,
    runner: Runner = work,
    **options: Any,
) -> Any:
    """Run the job on a session and return the summary that is also in OUT/summary.json.

    For a DataFrame (`dedup(df, text="review")`) the result is a DataFrame: every row of `df` with
    `kept`, `rule` and further columns; see `arose._frames.dedup_frame`.

    The options are those of `arose.dedup`, except for those that need a single machine, which raise
    an error; with `tables_only` no kept documents are written. `partitions` is the number of
    shuffle partitions, which by default depends on the cores of the cluster and the size of the
    input; the rows do not depend on it, and it may change when a run is resumed. Files that could
    not be read completely are in `incomplete_files` of the summary; with `strict` they and damaged
    records raise `InputLost` after reading. With `gather` workers sort the messages of a partition,
    for engines that do not keep a requested order; Spark does.
    """
    if hasattr(spark, "sparkSession"):
        from ._frames import dedup_frame

        for name, value in [("inputs", inputs), ("output", output), ("force", force or None)]:
            if value is not None:
                raise _arose.SettingError(f"{name} is for files; a DataFrame takes directory")
        options.update(gather=gather, input_bytes=input_bytes, runner=runner)
        return dedup_frame(spark, partitions=partitions, **options)
    if inputs is None or output is None:
        raise TypeError("pass inputs and output, or a Spark DataFrame in place of the session")
    order = put_in_order if gather else in_order
    output = os.fspath(output)
    is_shared = not _store.is_address(output) or _store.is_object(output)
    engine = SharedEngine if is_shared else SparkEngine
    settings = _options(options)
    with own_session(spark) as own, _steps_speak():
        engine_of = functools.partial(engine, own, runner=runner, order=order)
        return _dedup(own, inputs, output, partitions, force, input_bytes, engine_of, settings)


def passages(*_: Any, **__: Any) -> NoReturn:
    """Refuse by name: repeated passages are found on a single machine, with `arose.passages`."""
    raise _arose.SettingError("passages needs a single machine; call arose.passages")


#: What errors of Spark mean: a pattern, and the sentence to show.
MEANINGS = (
    (r"^arose\.\w+(?:Error|Lost): (.*)$", "{0}"),
    (
        r"Class org\.apache\.hadoop\.fs\.s3a\.S3AFileSystem not found",
        "Spark has no client for s3a:// here; pass s3:// URLs, which need none, or add "
        "`--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION`, with the version of "
        "Spark's hadoop-client jars",
    ),
    (
        r'No FileSystem for scheme "?(\w+)"?',
        "Spark has no client for {0}:// here; add the jar of its file system",
    ),
    (r"\[PATH_NOT_FOUND\] Path does not exist: (\S+?)\.(?: |$)", "`{0}` does not exist"),
    (
        r"ModuleNotFoundError: No module named '(arose|pyarrow|pandas)\b",
        "workers cannot import {0}: install it where they run, or set PYSPARK_PYTHON to an "
        "interpreter that has it before the session is made",
    ),
    (r"(No space left on device)", "a worker has no space left on its disk; free some and resume"),
)


@contextlib.contextmanager
def _steps_speak() -> Iterator[None]:
    """Raise errors of steps without the stack traces that Spark adds."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # the client of Spark Connect has no JVM
        Py4JJavaError = PySparkException
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        for pattern, meaning in MEANINGS:
            if said := re.search(pattern, str(error), re.MULTILINE):
                raise _arose.AroseError(meaning.format(*said.groups())) from error
        raise


@contextlib.contextmanager
def own_session(spark: SparkSession) -> Iterator[SparkSession]:
    """Provide a session with our settings that shares everything else with the caller's."""
    from pyspark.errors import PySparkException

    try:
        own = spark.newSession()
    except (PySparkException, NotImplementedError, AttributeError):
        # Some servers have a single session. Its settings are restored below.
        own = spark
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            own.conf.set(name, value)
        yield own
    finally:
        for name, old in before.items() if own is spark else ():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def _dedup(
    spark: SparkSession,
    inputs: list[str],
    output: str,
    partitions: int | None,
    force: bool,
    input_bytes: int,
    engine_of: Callable[..., SparkEngine],
    settings: dict[str, Any],
) -> dict[str, Any]:
    tables_only = settings.pop("tables_only")
    found = _find(spark, inputs, output, input_bytes, settings)
    shape, sizes = map(json.loads, _arose.settings(json.dumps(settings)))
    run_settings = {
        "version": _arose.__version__,
        "inputs": inputs,
        "settings": shape,
        "kept": not tables_only,
        "sources": found.sources,
    }
    files = files_of(spark, output)
    stages = Stages(files, run_settings, force)
    n_partitions = partitions or _default_partitions(spark, found.n_bytes)
    is_relative = not found.is_remote and not all(map(os.path.isabs, inputs))
    folder = os.getcwd() if is_relative else None
    engine = engine_of(files, settings, n_partitions, folder)
    if tables_only:
        engine.store_kept = SparkEngine.store_kept.__get__(engine)  # type: ignore[method-assign]
    read = stages.done("read")
    if read is None:
        found.read(engine)
        read = merge_notes(engine.notes("read"))
        _add_passed(read, found.passed)
        # Stored messages are addressed to parts, so a resumed run must have the same number.
        read["parts"] = n_partitions
        stages.finish("read", read)
    if settings["reading"]["strict"]:
        _refuse_losses(read)
    plan = Plan(engine, stages, settings, read["parts"], sizes)
    done = plan.run()
    if _find(spark, inputs, output, input_bytes, settings).sources != found.sources:
        raise _arose.InputError("an input has changed while it was read; start over with force")
    _add_lost(read, done["kept"]["lost"])
    summary = _summary(run_settings, read, done, plan, stages, _counts(files))
    if done["kept"]["kept_in"] is None and not tables_only:
        print(
            "arose: Spark writes tables only at this address, so there are no kept documents; see "
            "docs/cluster.md",
            file=sys.stderr,
        )
    if not _store.is_address(output):
        # The directory that relative inputs start at, relative to OUT.
        summary["directory"] = os.path.relpath(os.path.realpath("."), os.path.realpath(output))
    files.write("../summary.json", json.dumps(summary, indent=2))
    return summary


class _Found:
    """The input: how to read it, and how to notice changes."""

    def __init__(
        self,
        sources: list[Any],
        read: Callable[[SparkEngine], None],
        passed: list[Any],
        is_remote: bool,
    ) -> None:
        #: Files with their sizes and modification times.
        self.sources = sources
        self.n_bytes = sum(n_bytes for _, n_bytes, _ in sources)
        self.read = read
        #: Files skipped before reading.
        self.passed = passed
        self.is_remote = is_remote


def _find(
    spark: SparkSession,
    inputs: list[str],
    output: str,
    input_bytes: int,
    settings: dict[str, Any],
) -> _Found:
    addresses = [path for path in inputs if _store.is_address(path)]
    if addresses and len(addresses) < len(inputs):
        raise _arose.SettingError("pass either addresses or paths, not both")
    if addresses and all(map(_store.is_object, inputs)):
        objects = [list(source) for source in _store.find(inputs)]
        paths = [str(path) for path, _, _ in objects]
        return _Found(objects, lambda engine: engine.read(paths), [], True)
    if addresses:
        files = spark.read.format("binaryFile").load(inputs)
        listed = files.selectExpr("path", "length", "unix_micros(modificationTime)").collect()
        remote = sorted(list(row) for row in listed)
        paths = [str(path) for path, _, _ in remote]
        return _Found(remote, lambda engine: engine.read_remote(inputs, paths), [], True)
    expanded, is_crawl = _arose.expand_inputs(inputs)
    settings["reading"]["success"] |= is_crawl
    skip = [] if _store.is_address(output) else [output]
    parts, passed = _arose.cut_input(expanded, input_bytes, json.dumps(settings), skip)
    return _Found(_sources(parts), lambda engine: engine.read(parts), passed, False)


def _add_lost(read: dict[str, Any], lost: list[dict[str, Any]]) -> None:
    """Add files with records that were read but not copied."""
    there = {file["path"] for file in read["incomplete"]}
    read["incomplete"] += [file for file in lost if file["path"] not in there]


def _add_passed(read: dict[str, Any], passed: list[tuple[str, str | None, str | None]]) -> None:
    """Add the files skipped before reading, and decide which files are incomplete."""
    for reason, warning, file in passed:
        skipped = read.setdefault("skipped", {})
        skipped[reason] = skipped.get(reason, 0) + 1
        if warning is not None:
            read.setdefault("warnings", []).append(warning)
        if file is not None:
            read.setdefault("incomplete", []).append(json.loads(file))
    # A range without readable records is a loss only if another range of the file has some.
    readable = set(read.pop("readable", []))
    unreadable = [file for file in read.pop("unreadable", []) if file["path"] not in readable]
    by_path: dict[str, Any] = {}
    # The first range of a file counts, in whatever order they were read.
    for file in sorted([*read.get("incomplete", []), *unreadable], key=_position):
        by_path.setdefault(file["path"], file)
    read["incomplete"] = [by_path[path] for path in sorted(by_path)]


def _position(file: dict[str, Any]) -> tuple[int, ...]:
    return tuple(map(int, file["position"].split("+")))


def _incomplete_line(file: dict[str, Any]) -> str:
    words = [f"{file['path']}:{file['position']}", file["reason"], file["detail"]]
    return ": ".join(word for word in words if word)


def _n_incomplete(read: dict[str, Any]) -> int:
    return len(read["incomplete"]) + int(read.get("more_incomplete", 0))


def _refuse_losses(read: dict[str, Any]) -> None:
    n_files, n_records = _n_incomplete(read), read.get("damaged", 0)
    if n_files + n_records == 0:
        return
    lines = [_incomplete_line(file) for file in read["incomplete"]]
    first = [*lines, *sorted(read.get("warnings", []))][0]
    counts = [
        f"{n} {one if n == 1 else one + 's'}"
        for n, one in [(n_files, "file"), (n_records, "record")]
        if n
    ]
    raise _arose.InputLost(
        f"the input is incomplete: {' and '.join(counts)} cannot be read, first {first}; "
        "repair the input or run without strict=True"
    )


def _default_partitions(spark: SparkSession, n_bytes: int) -> int:
    """Return the tasks of a shuffle: two per core, fewer for small and more for large inputs."""
    least, most = (math.ceil(n_bytes / n) for n in TASK_BYTES)
    return max(1, min(2 * _cores(spark), least), most)


def _cores(spark: SparkSession) -> int:
    """Return the cores of the cluster, or the most that the job may request."""
    conf = functools.partial(spark.conf.get, default=None)
    if str(conf("spark.dynamicAllocation.enabled")).lower() == "true":
        most = conf("spark.dynamicAllocation.maxExecutors")
        if most is not None and int(most) < 1 << 20:
            return int(most) * int(conf("spark.executor.cores") or 1)
    try:
        # Spark Connect hides the context; count the partitions of a table instead.
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return _leaf_partitions(spark)


def _leaf_partitions(spark: SparkSession) -> int:
    from pyspark.sql import functions as f

    try:
        return int(spark.range(1 << 12).select(f.spark_partition_id()).distinct().count())
    except Exception:
        return 2


def _sources(parts: list[str]) -> list[list[str | int]]:
    """Return the files with size and modification time, to notice changes."""
    paths = {path for part in parts for path, _ in json.loads(part)["files"]}
    found: list[list[str | int]] = []
    for path in sorted(paths):
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append([path, status.st_size, status.st_mtime_ns])
    return found


def _counts(files: Any) -> dict[str, int]:
    """Count the decisions in the tables."""
    by_rule = files.count("documents", "rule")
    kept, exact = by_rule.pop(None, 0), by_rule.pop("exact", 0)
    empty = by_rule.pop("empty", 0)
    return {
        "kept": kept,
        "dropped_exact": exact,
        "dropped_near": sum(by_rule.values()),
        "dropped_known": 0,
        "dropped_empty": empty,
        # Filters do not run on a cluster.
        "dropped_filtered": 0,
        "dropped_superseded": 0,
        "pairs": sum(files.count("pairs", "rule").values()),
    }


def _summary(
    settings: dict[str, Any],
    read: dict[str, Any],
    found: dict[str, Any],
    plan: Plan,
    stages: Stages,
    counts: dict[str, int],
) -> dict[str, Any]:
    candidates, groups = found.get("candidates", {}), found.get("groups", {})
    verify, pairs = found["verify"], found["pairs"]
    skipped, versions = read.get("skipped", {}), found.get("versions", {})
    accepted = verify.get("accepted", 0)
    n_pairs = verify.get("estimated_pairs", 0) + candidates.get("lost", 0)
    # How many of the contained documents are found is not known.
    estimated = round(accepted / max(1.0, n_pairs), 6) if accepted and candidates else None
    return {
        "version": settings["version"],
        "inputs": settings["inputs"],
        "settings": settings["settings"],
        "counts": {
            "read": plan.n_docs,
            **counts,
            "empty": read.get("empty", 0),
            "short": read.get("short", 0),
            "null_text": skipped.get("null text", 0),
            "incomplete_files": _n_incomplete(read),
            "damaged_records": read.get("damaged", 0),
            "skipped": {"total": sum(skipped.values()), "by_reason": skipped},
            "tokens": read.get("tokens", 0),
            "text_bytes": read.get("text_bytes", 0),
            "tested": candidates.get("tested", 0),
            "candidates": groups.get("candidates", 0),
            "pairs_not_listed": 0,
            "clusters": pairs.get("clusters", 0),
            "clustered_documents": pairs.get("members", 0),
            "largest_cluster": pairs.get("max_cluster", 0),
            "not_judged": verify.get("not_judged", 0),
            "version_groups": versions.get("version_groups", 0),
            "versions": versions.get("versions", 0),
        },
        "sites": _sites(found),
        "recall": {"estimated": estimated},
        "cap": {
            "runs": candidates.get("capped", 0),
            "documents": candidates.get("unled", 0),
            "longest": candidates.get("max_capped", 0),
            "pairs_not_compared": candidates.get("untested", 0),
        },
        "kept_in": found["kept"]["kept_in"],
        "incomplete_files": read["incomplete"],
        "unknown_files": read.get("unknown", {}),
        "warnings": sorted(read.get("warnings", []))[:20],
        "stages": [{"name": name, "seconds": s} for name, s in stages.seconds.items()],
    }


def _sites(found: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of repeated text, under the policy `content`."""
    if "pages" not in found:
        return None
    return {
        "sites": found["pages"].get("sites", 0),
        "pages": found["pages"].get("pages", 0),
        "framed_word_pairs": found["counts"].get("framed", 0),
    }


#: Parameters of `arose.dedup` that this job does not support, and what to do instead.
REFUSED = {
    "against": "needs a single machine; pass it to arose.dedup, for the kept documents",
    "update_index": "needs a single machine; pass it to arose.dedup, for the kept documents",
    "memory": "has no effect on Spark; set spark.executor.memory",
    "threads": "has no effect on Spark; set spark.executor.cores",
    "versions": "needs a single machine; pass it to arose.dedup, or pass the current pages only",
    "dropped": "needs a single machine; documents.parquet says what was dropped for what",
    "max_file_size": "needs a single machine; parts of the input are files of their own here",
    "ids_only": "needs a single machine; pass tables_only, documents.parquet has the IDs",
    "quality": "needs a single machine; pass it to arose.dedup, for the kept documents",
    "filter": "needs a single machine; pass it to arose.dedup, for the kept documents",
    "progress": "has no effect on Spark; stages are named on standard error",
    "name": "is for tables, which have no files; pass a DataFrame in place of the session",
}
#: Parameters of `arose.dedup` for input and output, or that this job defines itself.
OWN = ("data", "output", "texts", "files", "force")
READING = (
    "mode",
    "text_field",
    "id_field",
    "url_field",
    "success",
    "include",
    "exclude",
    "all_text",
    "strict",
)


def _parameters() -> dict[str, Any]:
    """Return the options of the job, which are those of `arose.dedup`, with their defaults."""
    parameters = inspect.signature(_local_dedup).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters}
    left_out = {*OWN, *REFUSED}
    return {name: value for name, value in defaults.items() if name not in left_out}


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for the compiled part, with defaults."""
    tables_only = options.pop("tables_only", False)
    parameters = _parameters()
    for name in options:
        if name in REFUSED:
            raise _arose.SettingError(f"{name} {REFUSED[name]}")
        if name not in parameters:
            raise _arose.SettingError(f"there is no option `{name}`; see arose.dedup")
    if options.get("pairs", "verified") != "verified":
        raise _arose.SettingError("pairs='all' needs a single machine; pass it to arose.dedup")
    given = {**parameters, **options}
    reading = {name: given.pop(name) for name in READING}
    settings = _settings.checked({**given, "tables_only": tables_only})
    # One thread: Spark runs a task for every core.
    settings["reading"] = _settings.reading(**reading, threads=1)
    # Settings that do not go together are refused before anything is started.
    _arose.settings(json.dumps(settings))
    return settings


#: Descriptions of options in the help.
HELP = {
    "w": "tokens per shingle",
    "time_field": "for --keep newest or copies",
    "drop_empty": "drop empty documents, kept otherwise",
    "success": "only responses of status 200 to 299",
    "include": "read only these files",
    "exclude": "leave out these files",
    "all_text": "read all text files in directories",
    "strict": "stop if part of the input cannot be read",
}


def arguments() -> argparse.ArgumentParser:
    """Return the parser: the parameters of `arose.dedup`, with the names of `arose dedup`."""
    parser = argparse.ArgumentParser(
        prog="python -m arose.spark",
        description="Finds exact and near duplicates on Apache Spark: the tables of `arose dedup`.",
        epilog="Example: python -m arose.spark 'crawl/*.warc.gz' -o out --master 'local[4]'. "
        "Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be "
        "read completely.",
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="files, directories, patterns, or URLs")
    add("-o", "--output", required=True, metavar="OUT", help="the directory or URL to write to")
    for name, default in _parameters().items():
        add(*_flags(name), dest=name, **_argument(name, default))
    add("--tables-only", action="store_true", help="do not write the kept documents")
    add("--partitions", type=int, metavar="N", help="shuffle partitions; rows do not depend on it")
    add("--force", action="store_true", help="start over")
    add("--gather", action="store_true", help="sort in the workers, for engines that do not (Sail)")
    add("--master", metavar="URL", help="where Spark runs, if spark-submit does not say")
    add("--conf", action="append", default=[], type=_setting, metavar="NAME=VALUE", help="of Spark")
    add("--remote", metavar="URL", help="a Spark Connect server, such as Sail (experimental)")
    return parser


#: Parameters with other names on the command line.
FLAGS = {"w": ["-w", "--shingle"], "cjk_w": ["--cjk-shingle"]}


def _flags(name: str) -> list[str]:
    return FLAGS.get(name, [f"--{name.replace('_', '-')}"])


def _argument(name: str, default: Any) -> dict[str, Any]:
    """Return the arguments of argparse for a parameter, by the type in `_settings`."""
    more = {"default": default, "help": HELP.get(name)}
    if name in _settings.FLAGS:
        return {**more, "action": "store_true"}
    if name in _settings.CHOICES:
        return {**more, "choices": _settings.CHOICES[name]}
    if name in _settings.WHOLE:
        return {**more, "type": int, "metavar": "N"}
    if name in _settings.SHARES:
        return {**more, "type": float, "metavar": "SHARE"}
    if default == ():
        metavar = "GLOB" if name in ("include", "exclude") else "NAME"
        return {**more, "action": "append", "default": [], "metavar": metavar}
    return {**more, "metavar": "NAME"}


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got `{text}`")
    return name, value


def session(master: str | None = None, **settings: str) -> SparkSession:
    """Return a Spark session; on this machine (`local...`) one with small processes."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError("pyspark is not installed; run `pip install arose[spark]`") from error

    if remote := settings.get("spark.remote"):
        _check_server(remote)
    # Workers on this machine run this interpreter, unless another one is configured.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("arose")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings = {**HERE, **settings}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _check_server(remote: str) -> None:
    """Check that the server responds: the client of Spark Connect retries silently for minutes."""
    import socket

    found = re.match(r"sc://(\[[^]]+\]|[^:/;]+)(?::(\d+))?", remote)
    if found is None:
        raise _arose.SettingError(f"remote={remote!r}, expected sc://HOST:PORT")
    address = found[1].strip("[]"), int(found[2] or 15002)
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError as error:
        raise _arose.AroseError(
            f"no server answers at {remote}: {error}; start one, for instance `sail spark server`"
        ) from error


def main(argv: list[str] | None = None) -> int:
    given = vars(arguments().parse_args(argv))
    try:
        # Check the options before anything starts.
        _options({name: given[name] for name in _parameters()})
    except _arose.AroseError as error:
        print(f"arose: {error}", file=sys.stderr)
        return 2
    settings = dict(given.pop("conf"))
    if remote := given.pop("remote"):
        settings["spark.remote"] = remote
    try:
        spark = session(given.pop("master"), **settings)
    except (ImportError, _arose.AroseError) as error:
        print(f"arose: {error}", file=sys.stderr)
        return 2
    try:
        summary = dedup(spark, given.pop("inputs"), given.pop("output"), **given)
    except _arose.AroseError as error:
        print(f"arose: {error}", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    counts = summary["counts"]
    for name in ["read", "kept", "dropped_exact", "dropped_near", "pairs", "clusters"]:
        print(f"{name:<15} {counts[name]:>12}")
    if n_files := counts["incomplete_files"]:
        print(f"{'incomplete':<15} {n_files:>12}")
        for file in summary["incomplete_files"][:20]:
            print(f"  {_incomplete_line(file)}")
        for file in summary["incomplete_files"]:
            print(f"arose: {_incomplete_line(file)}", file=sys.stderr)
        files = "file" if n_files == 1 else "files"
        print(
            f"arose: {n_files} {files} could not be read completely; everything else is done",
            file=sys.stderr,
        )
        return 3
    return 0 if counts["read"] else 1


if __name__ == "__main__":
    sys.exit(main())
