"""The stored state of a run: tables and notes in a directory, and completed stages."""

from __future__ import annotations

import json
import os
import posixpath
import sys
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _arose, _schemas
from ._store import Store, is_object
from .cluster import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StoreFiles:
    """A directory that this machine and all workers can read. Small data is read without Spark.

    Every task writes its own files. A list, which is written last, says which of them form a table.
    So files of failed attempts and of replaced drivers are never read.
    """

    def __init__(self, folder: str) -> None:
        self.store: Store = Store(folder)

    def path(self, name: str) -> str:
        return self.store.path(name)

    def kept(self, name: str, kind: int | str) -> list[str]:
        """Return the files of a stored table with messages of a kind, or with `chunks` or `shards`."""
        listed = self.store.text(f"{name}.files")
        if listed is None:
            return []
        return [file for file in listed.split("\n") if file.endswith(f".{kind}")]

    def keep(self, name: str, files: list[str]) -> None:
        """Turn files of workers into a stored table, and remove their other files."""
        self.store.write_text(f"{name}.files", "\n".join(files))
        self._remove_others(name, set(files))

    def _remove_others(self, name: str, files: set[str]) -> None:
        for file in self.store.names(name):
            if file not in files:
                self.store.remove(file)

    def publish(self, name: str, files: list[str]) -> None:
        """Turn files of workers into a result, in the order of their names."""
        import pyarrow.parquet as pq

        folder = f"../{name}.parquet"
        self.store.remove(folder)
        for number, file in enumerate(sorted(files)):
            self.store.move(file, f"{folder}/{number:05}.parquet")
        if not files:
            with self.store.writing(f"{folder}/00000.parquet") as file:
                pq.write_table(_schemas.arrow(name).empty_table(), file)
        self.store.remove(f"{name}.new")

    def rows(
        self, name: str, kind: int | str, columns: list[str]
    ) -> Iterator[tuple[Any, ...]]:
        """Return rows of these columns in a stored table; none if it does not exist."""
        for batch in kept(self.store, self.kept(name, kind)):
            yield from zip(*(batch.column(column).to_pylist() for column in columns))

    def count(self, name: str, column: str) -> dict[Any, int]:
        """Count the occurrences of each value of a column of a result."""
        import pyarrow.parquet as pq

        counts: dict[Any, int] = {}
        for file in self.store.names(f"../{name}.parquet"):
            with self.store.reading(file) as source:
                values = pq.ParquetFile(source).read([column])[column]
                for found in values.value_counts().to_pylist():
                    counts[found["values"]] = counts.get(found["values"], 0) + found["counts"]
        return counts

    def read(self, name: str) -> str | None:
        return self.store.text(name)

    def write(self, name: str, text: str) -> None:
        self.store.write_text(name, text)

    def clear(self) -> None:
        self.store.remove(".")


class SparkFiles:
    """A directory in any file system to which Spark can write."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = folder

    def path(self, name: str) -> str:
        scheme, rest = self.folder.split("://", 1)
        return f"{scheme}://{posixpath.normpath(posixpath.join(rest, name))}"

    def table(self, name: str, schema: str) -> Any:
        return self.spark.read.schema(schema).parquet(self.path(name))

    def count(self, name: str, column: str) -> dict[Any, int]:
        table = self.table(f"../{name}.parquet", _schemas.spark(name))
        return {row[0]: row[1] for row in table.groupBy(column).count().collect()}

    def read(self, name: str) -> str | None:
        from pyspark.errors import AnalysisException

        try:
            rows = self.spark.read.text(f"{self.folder}/{name}", wholetext=True).collect()
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            return None
        return rows[0][0] if rows else None

    def write(self, name: str, text: str) -> None:
        if (jvm := getattr(self.spark, "_jvm", None)) is not None:
            path = jvm.org.apache.hadoop.fs.Path(self.path(name))
            system = path.getFileSystem(self.spark._jsc.hadoopConfiguration())
            system.delete(path, True)
            file = system.create(path, True)
            file.write(bytearray(text.encode()))
            file.close()
            return
        # The client of Spark Connect cannot write files, but a table with one row is read like one.
        rows = self.spark.createDataFrame([(json.dumps(json.loads(text)),)], "value string")
        rows.coalesce(1).write.mode("overwrite").text(f"{self.folder}/{name}")

    def clear(self) -> None:
        """Remove nothing: stages are overwritten, and those of other settings are not read."""
        self.write("settings.json", "{}")


Files = StoreFiles | SparkFiles


class Stages:
    """The completed stages, with the settings under which they were completed."""

    def __init__(self, files: Files, settings: dict[str, Any], force: bool) -> None:
        self.files = files
        there = files.read("settings.json")
        if force and there is not None:
            files.clear()
            there = None
        self.run = ""
        if there is not None and json.loads(there):
            self._compare(json.loads(there), settings)
            self.run = json.loads(there)["run"]
        else:
            self.run = str(time.time_ns())
            files.write("settings.json", json.dumps({**settings, "run": self.run}))
        self.owner = uuid.uuid4().hex
        files.write("driver.json", json.dumps({"driver": self.owner}))
        self.seconds: dict[str, float] = {}
        self._begin = time.monotonic()

    def _compare(self, there: dict[str, Any], here: dict[str, Any]) -> None:
        here = json.loads(json.dumps(here))
        for name in here:
            if there.get(name) == here[name]:
                continue
            if name == "sources":
                known = there.get(name, [])
                changed = [source[0] for source in here[name] if source not in known]
                raise _arose.InputError(
                    f"`{(changed or ['an input'])[0]}` has changed since it was read; "
                    "start over with force"
                )
            raise _arose.AroseError(
                f"the output already contains a run with {name} {json.dumps(there.get(name))}, not "
                f"{json.dumps(here[name])}; choose another directory or replace the run with force"
            )

    def done(self, name: str) -> dict[str, Any] | None:
        text = self.files.read(f"{name}.json")
        stage = json.loads(text) if text is not None else None
        if stage is None or stage["run"] != self.run:
            self._begin = time.monotonic()
            print(f"arose: {name}", file=sys.stderr, flush=True)
            return None
        self.seconds[name] = stage["seconds"]
        note: dict[str, Any] = stage["note"]
        return note

    def finish(self, name: str, note: dict[str, Any]) -> None:
        self.check_owner()
        seconds = round(time.monotonic() - self._begin, 3)
        self.seconds[name] = seconds
        stage = {"run": self.run, "seconds": seconds, "note": note}
        self.files.write(f"{name}.json", json.dumps(stage))

    def check_owner(self) -> None:
        """Raise an error if another driver has taken over this run."""
        there = json.loads(self.files.read("driver.json") or "{}")
        if there.get("driver") != self.owner:
            raise _arose.AroseError("another driver was started on this output; this one stops")


def files_of(spark: SparkSession, output: str) -> Files:
    """Return the directory of the files of a run."""
    if "://" in output and not is_object(output):
        return SparkFiles(spark, f"{output}/.arose-spark")
    return StoreFiles(f"{os.fspath(output)}/.arose-spark")
