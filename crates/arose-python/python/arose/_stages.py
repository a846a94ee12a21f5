"""What a run keeps: tables and notes in a folder, and which stages are done."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _arose
from .cluster import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LocalFiles:
    """A folder that this machine sees: what is small is read without Spark."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def path(self, name: str) -> str:
        return os.path.normpath(self.folder / name)

    def shared(self, name: str) -> str:
        """A folder that executors may write to themselves."""
        return os.path.abspath(self.path(name))

    def kept(self, name: str, kind: int | None) -> list[str]:
        """Files of a stored table: of its messages of a kind, or of chunks."""
        suffix = "chunks" if kind is None else kind
        return sorted(os.fspath(path) for path in Path(self.shared(name)).glob(f"*.{suffix}"))

    def keep(self, name: str, paths: list[str]) -> None:
        """Makes files that workers have written a stored table; others of theirs go."""
        self._move(name, paths, Path(self.path(name)))

    def publish(self, name: str, paths: list[str], schema: str) -> None:
        """Makes files that workers have written a result."""
        import pyarrow.parquet as pq

        folder = Path(self.path(f"../{name}.parquet"))
        self._move(name, paths, folder)
        if not paths:
            pq.write_table(_schema(schema).empty_table(), folder / "00000.parquet")

    def _move(self, name: str, paths: list[str], folder: Path) -> None:
        if folder.is_file():  # the result of a local run
            folder.unlink()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for number, path in enumerate(paths):
            os.replace(path, folder / f"{number:05}{os.path.splitext(path)[1]}")
        shutil.rmtree(self.path(f"{name}.new"), ignore_errors=True)

    def rows(
        self, name: str, kind: int | None, columns: list[str], schema: str
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of these columns in a stored table; none if there is no such table."""
        for batch in kept(self.kept(name, kind)):
            yield from zip(*(batch.column(column).to_pylist() for column in columns))

    def count(self, name: str, column: str, schema: str) -> dict[Any, int]:
        """How often each value of a column occurs."""
        import pyarrow.parquet as pq

        counts: dict[Any, int] = {}
        for file in Path(self.path(name)).glob("*.parquet"):
            for found in pq.ParquetFile(file).read([column])[column].value_counts().to_pylist():
                counts[found["values"]] = counts.get(found["values"], 0) + found["counts"]
        return counts

    def read(self, name: str) -> str | None:
        try:
            return (self.folder / name).read_text()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f"{name}.part"
        partial.write_text(text)
        partial.replace(self.folder / name)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class SparkFiles:
    """A folder wherever Spark writes."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = folder

    def path(self, name: str) -> str:
        scheme, rest = self.folder.split("://", 1)
        return f"{scheme}://{posixpath.normpath(posixpath.join(rest, name))}"

    def rows(
        self, name: str, kind: int | None, columns: list[str], schema: str
    ) -> Iterator[tuple[Any, ...]]:
        from pyspark.errors import AnalysisException

        path = self.path(name if kind is None else f"{name}/kind={kind}")
        try:
            table = self.spark.read.schema(schema).parquet(path)
            yield from (tuple(row) for row in table.select(*columns).collect())
        except AnalysisException:
            return

    def count(self, name: str, column: str, schema: str) -> dict[Any, int]:
        table = self.spark.read.schema(schema).parquet(self.path(name))
        return {row[0]: row[1] for row in table.groupBy(column).count().collect()}

    def read(self, name: str) -> str | None:
        from pyspark.errors import AnalysisException

        try:
            rows = self.spark.read.text(f"{self.folder}/{name}", wholetext=True).collect()
        except AnalysisException:
            return None
        return rows[0][0] if rows else None

    def write(self, name: str, text: str) -> None:
        rows = self.spark.createDataFrame([(json.dumps(json.loads(text)),)], "value string")
        rows.coalesce(1).write.mode("overwrite").text(f"{self.folder}/{name}")

    def clear(self) -> None:
        """Nothing is removed: stages are written over, and those of other settings are not read."""
        self.write("settings.json", "{}")


class Stages:
    """Which stages are done, under the settings they were done with."""

    def __init__(
        self, files: LocalFiles | SparkFiles, settings: dict[str, Any], force: bool
    ) -> None:
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
        self.seconds: dict[str, float] = {}
        self._begin = time.monotonic()

    def _compare(self, there: dict[str, Any], here: dict[str, Any]) -> None:
        here = json.loads(json.dumps(here))
        for name in here:
            if there.get(name) == here[name]:
                continue
            if name == "sources":
                changed = [s[0] for s in here[name] if s not in there.get(name, [])] or ["an input"]
                raise _arose.InputError(
                    f"`{changed[0]}` has changed since it was read; start over with force"
                )
            raise _arose.AroseError(
                f"the output holds a run with another {name}: {json.dumps(there.get(name))} there, "
                f"{json.dumps(here[name])} here; choose another directory or replace it with force"
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
        seconds = round(time.monotonic() - self._begin, 3)
        self.seconds[name] = seconds
        stage = {"run": self.run, "seconds": seconds, "note": note}
        self.files.write(f"{name}.json", json.dumps(stage))


def _schema(text: str) -> Any:
    """What Spark calls a schema, as pyarrow does."""
    import pyarrow as pa

    types = {"long": pa.int64(), "string": pa.string(), "double": pa.float64(), "boolean": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in map(str.split, text.split(","))])
