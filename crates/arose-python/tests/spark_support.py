"""Spark sessions for tests, and a way to lose an executor."""

import os
import signal

import arose.spark
from arose.cluster import work


def session():
    """A session with two executors of one core and a gigabyte each, as separate processes."""
    loopback = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return arose.spark.session("local-cluster[2,1,1024]", **loopback)


def executor_of_this_worker():
    """Return the process of the executor of this Python worker."""
    pid = os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"CoarseGrainedExecutorBackend" in file.read():
                return pid
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])
    return None


def killing(steps, folder):
    """Return a runner that loses an executor once in the middle of each of these steps."""

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
