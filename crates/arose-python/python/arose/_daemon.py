"""Spark's Python daemon, with modules from this interpreter's own packages.

Spark puts its modules before all others, in a zip file from which they are compiled at every start.
That takes two seconds of an executor and 60 MB of each worker. Installed modules are compiled only
once. The modules that every task imports are imported before workers are forked, and excluded from
the garbage collection that runs after each task.
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
