"""`arose dedup` on Apache Spark: the same tables, row for row, for any number of executors.

    python -m arose.spark INPUT... -o OUT
    spark-submit --py-files ... -m arose.spark INPUT... -o OUT

Inputs are files, folders and patterns that every executor can see, or addresses that Spark reads
(`s3a://bucket/crawl/*.warc.gz`, `hdfs://...`). The folder OUT then holds documents.parquet,
pairs.parquet and summary.json. A driver that is started again skips the stages that are done.
docs/cluster.md says more.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _arose, _reading
from ._stages import LocalFiles, SparkFiles, Stages
from .cluster import (
    INPUT_BYTES,
    NOTE,
    ORDER,
    Plan,
    as_messages,
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

MESSAGES = "part long, kind int, seq long, bytes binary, more binary"
CHUNKS = (
    "part long, seq long, n_docs long, n_tokens long, "
    "docs binary, sketches binary, vectors binary, tokens binary, note string"
)
ROWS = {
    "documents": (
        "doc long, id string, url string, source string, position string, digest string, "
        "n_tokens long, cluster long, kept boolean, kept_doc long, rule string, similarity double, "
        "known_as string, group long"
    ),
    "pairs": (
        "a long, b long, id_a string, id_b string, jaccard double, b_sim long, c_sim long, "
        "content double, content_unweighted double, rule string, verified string"
    ),
}
#: Messages are large and few: few of them make a batch, few rows of them a page, and compiling code
#: for every plan would cost more than all rows together.
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
#: For JVMs on this machine. They move bytes for some minutes: time spent on optimising their code,
#: or on proving that Spark's was compiled well, does not come back, and more heap is not used.
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
#: What a worker does to its batches.
Change = Callable[[Iterator[Any]], Iterator[Any]]
#: A table of Spark's, one to be, or files.
Table = Any


class SparkEngine:
    """Runs steps in `mapInArrow` and keeps messages as Parquet, a folder for each kind.

    What `map` and `reduce` give is a table to be: called, it is one; given a function that writes
    what tasks make, it is the paths of what they wrote.
    """

    #: No folder that all workers see is known of.
    chunk_folder: str | None = None

    def __init__(
        self,
        spark: SparkSession,
        files: Any,
        options: dict[str, Any],
        n_partitions: int,
        runner: Runner = work,
        order: Change = in_order,
    ) -> None:
        self.spark = spark
        self.files = files
        self.options = json.dumps(options)
        self.n_partitions = n_partitions
        self.runner = runner
        self.order = order

    def read(self, parts: list[str], folder: str | None) -> None:
        """Reads parts of the input that executors can see; paths may be relative to a folder."""
        import pyarrow as pa

        def name_parts(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                named = [parts[number] for number in batch.column(0).to_pylist()]
                yield pa.record_batch([batch.column(0), pa.array(named)], ["number", "part"])

        n_tasks = max(1, min(len(parts), 4 * self.n_partitions))
        numbers = self.spark.range(0, len(parts), 1, n_tasks)
        context = self._read_context(folder=folder)
        self.store("read", self._made([numbers], "read", context, CHUNKS, prepare=name_parts))

    def read_remote(self, addresses: list[str]) -> None:
        """Reads files that Spark brings, in the order of their addresses."""
        files = self.spark.read.format("binaryFile").load(addresses).select("path", "content")
        paths = sorted(row.path for row in files.select("path").collect())
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
        # Bytes have no order worth keeping and no value twice.
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
        rows = _union(self._rows(name, steps))
        path = self.files.path(f"../{name}.parquet")
        rows.write.mode("overwrite").option("compression", "zstd").parquet(path)

    def _rows(self, name: str, steps: list[tuple[str, list[Table], str, str]]) -> list[Table]:
        return [
            self._made(tables, step, context, ROWS[name], is_shuffled=how == "reduce")
            for how, tables, step, context in steps
        ]

    def notes(self, name: str) -> list[str]:
        if name == "read":
            return [note for (note,) in self.files.rows(name, None, ["note"], CHUNKS) if note]
        notes = self.files.rows(name, NOTE, ["bytes"], "bytes binary")
        return [bytes(note).decode() for (note,) in notes]

    def places(self) -> list[tuple[int, int, int]]:
        return []

    def shards(self) -> list[tuple[int, int, int]]:
        shards: dict[int, tuple[int, int]] = {}
        columns = ["part", "n_docs", "n_tokens"]
        for part, n_docs, n_tokens in self.files.rows("read", None, columns, CHUNKS):
            docs_before, tokens_before = shards.get(part, (0, 0))
            shards[part] = docs_before + n_docs, tokens_before + n_tokens
        return [(part, n_docs, n_tokens) for part, (n_docs, n_tokens) in shards.items()]

    def _made(
        self,
        tables: list[Table],
        step: str,
        context: str,
        schema: str,
        *,
        is_shuffled: bool = False,
        prepare: Change = iter,
    ) -> Table:
        """What a step makes of tables."""
        runner, options, has_rows = self.runner, self.options, schema in ROWS.values()
        if is_shuffled:
            prepare = self.order

        def made(write: Change | None = None) -> DataFrame:
            table, load = self._source(tables, is_shuffled)

            def run_step(batches: Iterator[Any]) -> Iterator[Any]:
                found = runner(prepare(load(batches)), step, options, context, has_rows)
                return found if write is None else write(found)

            if is_shuffled:
                table = table.repartition(self.n_partitions, "part").sortWithinPartitions(*ORDER)
            return table.mapInArrow(run_step, schema if write is None else "path string")

        return made

    def _source(self, tables: list[Table], is_shuffled: bool) -> tuple[DataFrame, Change]:
        """Tables as one, and what a worker has to do to their batches."""
        return _union(tables), iter

    def _load(self, name: str, schema: str) -> DataFrame:
        return self.spark.read.schema(schema).parquet(self.files.path(name))


class SharedEngine(SparkEngine):
    """Workers keep what they make in files that all of them see; Spark moves what is shuffled.

    A stored table is a list of files, each with what makes messages of its batches.
    """

    def __init__(self, spark: SparkSession, files: LocalFiles, *rest: Any, **more: Any) -> None:
        super().__init__(spark, files, *rest, **more)
        self.chunk_folder = files.shared("chunks")

    def chunks(self, kind: int, bytes: str, more: str | None = None) -> Table:
        change = functools.partial(as_messages, kind=kind, bytes=bytes, more=more)
        return [(path, change) for path in self.files.kept("read", None)]

    def stored(self, name: str, *kinds: int) -> Table:
        return [(path, messages) for kind in kinds for path in self.files.kept(name, kind)]

    def places(self) -> list[tuple[int, int, int]]:
        chunks = self.files.rows("read", None, ["part", "seq", "sketches"], CHUNKS)
        return [(part, seq, start_of(sketches)) for part, seq, sketches in chunks]

    def store(self, name: str, table: Table) -> None:
        write = functools.partial(keep, folder=self.files.shared(f"{name}.new"))
        paths = [path for row in _table(table, write).collect() for path in row]
        self.files.keep(name, paths)

    def store_rows(self, name: str, steps: list[tuple[str, list[Table], str, str]]) -> None:
        write = functools.partial(write_rows, folder=self.files.shared(f"{name}.new"))
        rows = _union(self._rows(name, steps), write)
        self.files.publish(name, [row.path for row in rows.collect()], ROWS[name])

    def _source(self, tables: list[Table], is_shuffled: bool) -> tuple[DataFrame, Change]:
        files = [file for table in tables if isinstance(table, list) for file in table]
        others = [table for table in tables if not isinstance(table, list)]
        if not files and others:
            return _union(others), iter

        def load(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    path, change = files[number]
                    yield from change(kept([path]))

        n_tasks = max(1, min(len(files), self.n_partitions // 2))
        numbers = self.spark.range(0, len(files), 1, n_tasks)
        if not others and not is_shuffled:
            return numbers, load
        return _union([numbers.mapInArrow(load, MESSAGES), *others]), iter


def _table(table: Table, write: Change | None = None) -> DataFrame:
    return table(write) if callable(table) else table


def _union(tables: list[Table], write: Change | None = None) -> DataFrame:
    first, *others = (_table(table, write) for table in tables)
    for other in others:
        first = first.unionAll(other)
    return first


def dedup(
    spark: SparkSession | DataFrame,
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

    Of a DataFrame (`dedup(df, text="review")`) the result is a DataFrame: every row of `df` with
    `kept`, `rule` and what else was found; see `arose._frames.dedup_frame`.

    Options are those of `arose.dedup`. `partitions` is the number of shuffle partitions (default:
    twice the cores that Spark speaks of); the rows do not depend on it. Files that
    could not be read completely are in `incomplete_files` of the summary; with `strict` they and
    damaged records raise `InputLost` after reading. With `gather` workers sort the messages
    of a partition, for engines that do not keep an order they were asked for; Spark does.
    """
    if hasattr(spark, "sparkSession"):
        from ._frames import dedup_frame

        return dedup_frame(spark, partitions=partitions, **options)
    if inputs is None or output is None:
        raise TypeError("pass inputs and output, or a DataFrame in place of the session")
    order = put_in_order if gather else in_order
    engine = SparkEngine if "://" in output else SharedEngine
    with own_session(spark) as own, _steps_speak():
        engine_of = functools.partial(engine, own, runner=runner, order=order)
        settings = _options(options)
        return _dedup(own, inputs, output, partitions, force, input_bytes, engine_of, settings)


@contextlib.contextmanager
def _steps_speak() -> Iterator[None]:
    """What a step says is what there is to know; Spark says much more."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        said = re.search(r"^arose\.\w+Error: (.*)$", str(error), re.MULTILINE)
        if said is None:
            raise
        raise _arose.AroseError(said[1]) from error


@contextlib.contextmanager
def own_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with settings of ours, which shares everything else with the caller's."""
    from pyspark.errors import PySparkException

    try:
        own = spark.newSession()
    except (PySparkException, NotImplementedError, AttributeError):
        # Some servers have one session only. It gets back what it had.
        own = spark
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            own.conf.set(name, value)
        yield own
    finally:
        for name, value in before.items() if own is spark else ():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)


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
    is_remote = any("://" in path for path in inputs)
    if is_remote and not all("://" in path for path in inputs):
        raise _arose.SettingError("give either addresses or paths, not both")
    shape = json.loads(_arose.settings(json.dumps(settings)))
    parts, passed = ([], []) if is_remote else _arose.cut_input(
        inputs, input_bytes, json.dumps(settings), [] if "://" in output else [output]
    )
    run_settings = {
        "version": _arose.__version__,
        "inputs": inputs,
        "settings": shape,
        "sources": _sources(parts),
    }
    folder = f"{output}/.arose-spark"
    files = SparkFiles(spark, folder) if "://" in output else LocalFiles(folder)
    stages = Stages(files, run_settings, force)
    n_partitions = partitions or 2 * _cores(spark)
    engine = engine_of(files, settings, n_partitions)
    read = stages.done("read")
    if read is None:
        if is_remote:
            engine.read_remote(inputs)
        else:
            engine.read(parts, None if all(map(os.path.isabs, inputs)) else os.getcwd())
        read = merge_notes(engine.notes("read"))
        _add_passed(read, passed)
        stages.finish("read", read)
    if settings["reading"]["strict"]:
        _refuse_losses(read)
    plan = Plan(engine, stages, settings)
    found = plan.run()
    summary = _summary(run_settings, read, found, plan, stages, _counts(files))
    if "://" not in str(output):
        # Where relative inputs start, as seen from OUT.
        summary["directory"] = os.path.relpath(os.path.realpath("."), os.path.realpath(output))
    files.write("../summary.json", json.dumps(summary, indent=2))
    return summary


def _add_passed(read: dict[str, Any], passed: list[tuple[str, str | None, str | None]]) -> None:
    """Adds what was passed by before reading, and decides which files are incomplete."""
    for reason, warning, file in passed:
        skipped = read.setdefault("skipped", {})
        skipped[reason] = skipped.get(reason, 0) + 1
        if warning is not None:
            read.setdefault("warnings", []).append(warning)
        if file is not None:
            read.setdefault("incomplete", []).append(json.loads(file))
    # A range of a file without readable records is a loss of records if another range has some.
    readable = set(read.pop("readable", []))
    unreadable = [file for file in read.pop("unreadable", []) if file["path"] not in readable]
    by_path: dict[str, Any] = {}
    for file in [*read.get("incomplete", []), *unreadable]:
        by_path.setdefault(file["path"], file)
    read["incomplete"] = [by_path[path] for path in sorted(by_path)]


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


def _cores(spark: SparkSession) -> int:
    """What the session says of its size; two where it does not."""
    cores = spark.conf.get("spark.cores.max", None) or spark.conf.get("spark.executor.cores", None)
    instances = spark.conf.get("spark.executor.instances", None)
    return max(2, int(cores or 1) * int(instances or 1))


def _sources(parts: list[str]) -> list[list[str | int]]:
    """Files with size and time, by which a change is seen."""
    paths = {path for part in parts for path, _ in json.loads(part)["files"]}
    found: list[list[str | int]] = []
    for path in sorted(paths):
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append([path, status.st_size, status.st_mtime_ns])
    return found


def _counts(files: LocalFiles | SparkFiles) -> dict[str, int]:
    """What became of the documents, from the tables themselves."""
    by_rule = files.count("../documents.parquet", "rule", ROWS["documents"])
    kept, exact = by_rule.pop(None, 0), by_rule.pop("exact", 0)
    empty = by_rule.pop("empty", 0)
    return {
        "kept": kept,
        "dropped_exact": exact,
        "dropped_near": sum(by_rule.values()),
        "dropped_known": 0,
        "dropped_empty": empty,
        "pairs": sum(files.count("../pairs.parquet", "rule", ROWS["pairs"]).values()),
    }


def _summary(
    settings: dict[str, Any],
    read: dict[str, Any],
    found: dict[str, Any],
    plan: Plan,
    stages: Stages,
    counts: dict[str, int],
) -> dict[str, Any]:
    candidates, verify, pairs = found["candidates"], found["verify"], found["pairs"]
    skipped = read.get("skipped", {})
    accepted = verify.get("accepted", 0)
    n_pairs = verify.get("estimated_pairs", 0) + candidates.get("lost", 0)
    estimated = round(accepted / max(1.0, n_pairs), 6) if accepted else None
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
            "candidates": found["groups"].get("candidates", 0),
            "pairs_not_listed": 0,
            "clusters": pairs.get("clusters", 0),
            "clustered_documents": pairs.get("members", 0),
            "largest_cluster": pairs.get("max_cluster", 0),
            # Of policies that do not run on a cluster.
            "not_judged": 0,
            "version_groups": 0,
            "versions": 0,
        },
        "recall": {"estimated": estimated},
        "cap": {
            "runs": candidates.get("capped", 0),
            "documents": candidates.get("unled", 0),
            "longest": candidates.get("max_capped", 0),
            "pairs_not_compared": candidates.get("untested", 0),
        },
        "incomplete_files": read["incomplete"],
        "unknown_files": read.get("unknown", {}),
        "warnings": sorted(read.get("warnings", []))[:20],
        "stages": [{"name": name, "seconds": s} for name, s in stages.seconds.items()],
    }


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """Options in the shape that the compiled part takes, defaults filled in."""
    if options.get("pairs", "verified") != "verified":
        raise _arose.SettingError('pairs="all" needs a single machine; run `arose dedup --pairs all`')
    names = ["mode", "text_field", "id_field", "url_field", "success"]
    names += ["include", "exclude", "all_text", "strict"]
    defaults = {"mode": "henzinger", "success": False, "all_text": False, "strict": False}
    reading = {name: options.pop(name, defaults.get(name, ())) for name in names}
    settings = {"policy": "jaccard", "verify": "text", **options}
    # One thread: Spark runs a task for every core.
    return {**settings, "reading": _reading(**reading, threads=1)}


def arguments() -> argparse.ArgumentParser:
    """The command line, with the names of `arose dedup`."""
    parser = argparse.ArgumentParser(
        prog="python -m arose.spark",
        description="Finds exact and near duplicates on Apache Spark: the tables of `arose dedup`.",
        epilog="Example: python -m arose.spark 'crawl/*.warc.gz' -o out --master 'local[4]'. "
        "Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be "
        "read completely.",
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="files, folders, patterns, or s3a:// addresses")
    add("-o", "--output", required=True, metavar="OUT", help="the folder or address to write to")
    policies = ["exact", "jaccard", "b", "c", "combined", "site", "site-union"]
    add("--policy", default="jaccard", choices=policies)
    add("--threshold", type=float, metavar="J")
    add("-w", "--w", type=int, metavar="N", help="tokens per shingle")
    add("--cjk-w", type=int, metavar="N")
    add("--recall", type=float, metavar="SHARE")
    add("--verify", default="text", choices=["text", "sketch", "none"])
    add("--keep", default="first", choices=["first", "longest", "newest", "copies", "priority"])
    add("--priority-field", metavar="NAME")
    add("--time-field", metavar="NAME", help="for --keep newest or copies")
    add("--exact", default="text", choices=["text", "bytes"])
    add("--drop-empty", action="store_true", help="drop empty documents, kept otherwise")
    add("--short", default="exact", choices=["exact", "any"])
    add("--site", choices=["registrable", "henzinger"])
    add("--cap", type=int, default=1024, metavar="N")
    add("--seed", type=int, default=1, metavar="N")
    add("--mode", default="henzinger", choices=["henzinger", "content", "plain"])
    add("--text-field", action="append", default=[], metavar="NAME")
    add("--id-field", action="append", default=[], metavar="NAME")
    add("--url-field", action="append", default=[], metavar="NAME")
    add("--success", action="store_true", help="only responses of status 200 to 299")
    add("--partitions", type=int, metavar="N", help="shuffle partitions; rows do not depend on it")
    add("--include", action="append", default=[], metavar="GLOB", help="read only these files")
    add("--exclude", action="append", default=[], metavar="GLOB", help="leave out these files")
    add("--all-text", action="store_true", help="read all text files in directories")
    add("--strict", action="store_true", help="stop if part of the input cannot be read")
    add("--force", action="store_true", help="begins anew")
    add("--gather", action="store_true", help="sort in the workers, for engines that do not (Sail)")
    add("--master", metavar="URL", help="where Spark runs, if spark-submit does not say")
    add("--conf", action="append", default=[], type=_setting, metavar="NAME=VALUE", help="of Spark")
    add("--remote", metavar="URL", help="a Spark Connect server, such as Sail (experimental)")
    return parser


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got `{text}`")
    return name, value


def session(master: str | None = None, **settings: str) -> SparkSession:
    """A Spark session; on this machine (`local...`) one whose processes are small."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError("pyspark is not installed; run `pip install arose[spark]`") from error

    # Workers on this machine run this interpreter, unless Spark was told of another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("arose")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            settings = {**HERE, **settings}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(argv: list[str] | None = None) -> int:
    given = vars(arguments().parse_args(argv))
    settings = dict(given.pop("conf"))
    if remote := given.pop("remote"):
        settings["spark.remote"] = remote
    try:
        spark = session(given.pop("master"), **settings)
    except ImportError as error:
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
