"""Spark's Python daemon, with modules from this interpreter's own packages.

Spark puts its modules before all others, in a zip file from which they are compiled at every start;
that takes two seconds of an executor and 60 MB of each worker. Those that are installed are compiled
once for all. What every task imports is imported before workers are forked, and put where the
collector, which runs after each task, does not look.
"""

import gc
import importlib.util
import sys

bundled = [path for path in sys.path if path.endswith("pyspark.zip")]
sys.path[:] = [path for path in sys.path if path not in bundled]
if importlib.util.find_spec("pyspark") is None:
    sys.path[:0] = bundled

import pandas  # noqa: E402, F401
import pyarrow.parquet  # noqa: E402, F401
from pyspark import daemon, worker  # noqa: E402, F401
from pyspark.sql import conversion  # noqa: E402, F401
from pyspark.sql.pandas import serializers, types  # noqa: E402, F401

from . import cluster  # noqa: E402, F401

if __name__ == "__main__":
    gc.freeze()
    daemon.manager()
