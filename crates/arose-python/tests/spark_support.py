"""Spark sessions for tests, and a way to lose an executor."""

import os
import signal
import sys

from arose.cluster import work


def session(master="local-cluster[2,1,1024]", **settings):
    """A session with two executors of one core and a gigabyte each, as processes of their own."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("arose-test")
    defaults = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "640m",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.log.level": "ERROR",
    }
    for name, value in {**defaults, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def executor_of_this_worker():
    """The process of the executor that this Python worker belongs to."""
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"CoarseGrainedExecutorBackend" in file.read():
                return pid
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])
    return None


def killing(steps, folder):
    """A runner that loses an executor in the middle of each of these steps, once."""

    def is_first(step):
        try:
            os.close(os.open(os.path.join(folder, f"killed-{step}"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def run(batches, step, options, context, rows):
        found = work(batches, step, options, context, rows)
        if step in steps and is_first(step):
            next(found, None)
            os.kill(executor_of_this_worker(), signal.SIGKILL)
            os._exit(1)
        yield from found

    return run
