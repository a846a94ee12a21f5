"""`arose dedup` for a Spark DataFrame: returns every row with its decision and evidence."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

from ._arose import InputError, SettingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The number of a row, also a column of the result.
ROW = "arose_row"
#: Additional columns of the result.
FOUND = (ROW, "kept", "kept_row", "cluster", "rule", "similarity")


def dedup_frame(
    df: DataFrame,
    *,
    text: str = "text",
    id: str | None = None,
    directory: str | None = None,
    partitions: int | None = None,
    **options: Any,
) -> DataFrame:
    """Find duplicates among the rows of `df` and return all rows with the results.

    `text` is the column with the text, `id` the column to which `kept_id` refers. The rows are
    first written to `directory`, so that every executor reads the same rows. All executors must be
    able to read it, and it must exist while the result is used. If Spark runs on this machine, the
    default is a temporary directory, which is removed when Python ends. The new columns are
    `arose_row`, `kept`, `kept_row` (the row for which it was dropped), `cluster` (the kept row of
    its cluster), `rule`, `similarity` and, with `id`, `kept_id`. A row without text is kept. The
    search for duplicates runs immediately; the result is lazy.
    """
    from pyspark.sql import functions as f

    from . import spark as job

    for parameter, instead in [("text_field", "text"), ("id_field", "id")]:
        if parameter in options:
            raise SettingError(f"{parameter} is for files; of a DataFrame, pass {instead}")
    for parameter, column in [("text", text), ("id", id)]:
        if column is not None and column not in df.columns:
            found = ", ".join(f"{name} ({kind})" for name, kind in df.dtypes)
            raise InputError(f"{parameter}={column!r}: no such column; columns found: {found}")
    if not (kind := dict(df.dtypes)[text]).startswith(("string", "char", "varchar")):
        raise InputError(f"text={text!r}: the column has type {kind}, expected string; cast it first")
    # Spark does not tell upper from lower case in names.
    if taken := [name for name in df.columns if name.lower() in (*FOUND, "kept_id")]:
        raise InputError(f"`{taken[0]}` is a column of the result; rename it")
    spark = df.sparkSession
    root = _directory(spark, directory)
    rows, out = f"{root}/rows", f"{root}/out"
    df.withColumn(ROW, f.monotonically_increasing_id()).write.mode("error").parquet(rows)
    options.update(text_field=[text], id_field=[ROW], tables_only=True)
    job.dedup(spark, [rows], out, partitions=partitions, **options)
    documents = spark.read.parquet(f"{out}/documents.parquet")
    row_of = documents.select("doc", f.col("id").cast("long").alias("row"))

    def row(name: str, number: str) -> DataFrame:
        return row_of.select(f.col("doc").alias(number), f.col("row").alias(name))

    verdicts = (
        documents.join(row("kept_row", "kept_doc"), "kept_doc", "left")
        .withColumnRenamed("cluster", "cluster_doc")
        .join(row("cluster", "cluster_doc"), "cluster_doc", "left")
        .select(
            f.col("id").cast("long").alias(ROW), "kept", "kept_row", "cluster", "rule", "similarity"
        )
    )
    written = spark.read.parquet(rows)
    result = written.join(verdicts, ROW, "left")
    result = result.withColumn("kept", f.coalesce("kept", f.lit(True)))
    if id is not None:
        ids = written.select(f.col(ROW).alias("kept_row"), _column(id).alias("kept_id"))
        result = result.join(ids, "kept_row", "left")
    own = map(_column, df.columns)
    return result.select(*own, *FOUND, *(["kept_id"] if id is not None else []))


def _column(name: str) -> Any:
    """Return the column of a name, which may contain dots."""
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def _directory(spark: Any, directory: str | None) -> str:
    if directory is not None:
        return os.fspath(directory).rstrip("/")
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise SettingError("directory=None, expected a directory that all executors see")
    made = tempfile.mkdtemp(prefix="arose-spark-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
