"""Runs a command and measures its time and memory; describes the machine."""

import ctypes
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Cost:
    """The time and memory of a run."""

    code: int
    cpu: float
    """Seconds of CPU time, user and system, of the command and all it started."""
    wall: float
    megabytes: float
    """The largest resident set of any one of its processes."""


def adopt_orphans():
    """Makes processes whose parent ends children of this one.

    Otherwise `wait4` would miss the CPU time of workers that outlive a command, such as those
    of a fork server.
    """
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(command, log, environment, seconds):
    """Runs `command` with a time limit in seconds; its output goes to the file `log`.

    The resident set of a child starts as that of its parent, so the parent must stay small: it does
    not read the corpus or the truth.
    """
    start = time.perf_counter()
    with open(log, "wb") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
            start_new_session=True,
        )
    alarm = threading.Timer(seconds, stop_group, [child.pid])
    alarm.start()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    alarm.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    usages = [usage, *orphans(child.pid)]
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    kibibytes = max(usage.ru_maxrss for usage in usages)
    return Cost(child.returncode, cpu, wall, kibibytes / 1024)


def stop_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def orphans(group):
    """Ends the remaining processes of a run's process group and returns the usage of each."""
    stop_group(group)
    usages = []
    while True:
        try:
            usages.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            return usages


def machine():
    """Describes the processor, its cores and vector instructions, and the memory, in one line."""
    with open("/proc/cpuinfo") as file:
        processor = file.read()
    with open("/proc/meminfo") as file:
        kibibytes = int(re.search(r"MemTotal:\s*(\d+)", file.read())[1])
    model = re.search(r"model name\s*:\s*(.*)", processor)
    flags = re.search(r"flags\s*:\s*(.*)", processor)
    vectors = [flag for flag in (flags[1].split() if flags else []) if flag.startswith("avx")]
    return (
        f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores, "
        f"{' '.join(vectors) or 'no AVX'}; {kibibytes / 2**20:.0f} GiB"
    )


def load():
    """Returns the load averages over one, five and fifteen minutes."""
    return " ".join(f"{average:.1f}" for average in os.getloadavg())
