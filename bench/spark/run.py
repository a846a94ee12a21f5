"""Compares `python -m arose.spark` with `arose.dedup`: their rows must agree; time, memory and disk.

    python3 bench/spark/run.py --python P/bin/python A.jsonl B.jsonl

The interpreter has the wheel, pyspark and pyarrow. Each corpus is deduplicated by the wheel on this
machine and by Spark with two executors of one core; rows are compared before figures are printed.
CPU time is that of the command and all its descendants, including JVMs. Spark's daemon does not
wait for its workers, so the time of workers that end first would be lost: all processes are also
sampled four times a second, and the larger sum counts. Memory is the largest sum over an executor and
its Python workers, sampled every second; shared pages count in part. Disk is the largest size of all
files of the run, including shuffle files and without the input, sampled every five seconds.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.append(os.fspath(Path(__file__).parent.parent / "neardup"))
import measure

LOCAL = """
import arose, sys
arose.dedup(sys.argv[1], sys.argv[2], policy=sys.argv[3], memory=2 << 30, ids_only=sys.argv[4] == "True")
"""
COMPARE = """
import sys, pyarrow.parquet as pq
one, other = sys.argv[1:]
for name, keys in [("documents", ["doc"]), ("pairs", ["a", "b"])]:
    local = pq.read_table(f"{one}/{name}.parquet")
    order = [(key, "ascending") for key in keys]
    there = pq.read_table(f"{other}/{name}.parquet").sort_by(order)
    assert there.cast(local.schema).equals(local.sort_by(order)), f"{name} differ"
    print(name, local.num_rows, "rows are the same")
"""


TICKS = os.sysconf("SC_CLK_TCK")


def processes():
    """Returns parent, start time, processor seconds and command line of every process."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    command = file.read()
            except OSError:
                continue  # it has ended
            seconds = (int(fields[11]) + int(fields[12])) / TICKS
            found[int(entry)] = int(fields[1]), fields[19], seconds, command
    return found


def below(pid, children):
    """Returns all descendants of a process."""
    found, todo = [], list(children.get(pid, []))
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def own_bytes(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def size(folder):
    """Returns the bytes of all files below a directory."""
    found = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(where, name)).st_blocks << 9
            except OSError:
                continue  # it has been removed
    return found


class Executors(threading.Thread):
    """Samples the memory of executors, and all CPU time, until it is stopped."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = folder
        self.disk = 0
        self.is_over = threading.Event()
        self.largest = {"jvm": 0, "python": 0, "both": 0}
        self.seconds = {}

    def run(self):
        n = 0
        while not self.is_over.wait(0.25):
            found = processes()
            children = {}
            for pid, (parent, *_) in found.items():
                children.setdefault(parent, []).append(pid)
            own = below(os.getpid(), children)
            for pid in own:
                _, start, seconds, _ = found[pid]
                self.seconds[pid, start] = seconds
            n += 1
            if n % 20 == 0:
                self.disk = max(self.disk, size(self.folder))
            for pid in own:
                command = found[pid][3]
                is_java = b"java" in command.split(b"\0")[0]
                if n % 4 == 0 and is_java and b"CoarseGrainedExecutorBackend" in command:
                    self.look(pid, children)

    def look(self, pid, children):
        python = sum(own_bytes(child) for child in below(pid, children))
        jvm = own_bytes(pid)
        for name, n in {"jvm": jvm, "python": python, "both": jvm + python}.items():
            self.largest[name] = max(self.largest[name], n)


def cost(command, folder, seconds):
    log = folder / "log"
    executors = Executors(folder)
    executors.start()
    # Shuffle files, and data sorted on disk.
    (folder / "spills").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "spills")}
    environment["SPARK_LOCAL_DIRS"] = environment["TMPDIR"]
    spent = measure.run(command, log, environment, seconds)
    executors.is_over.set()
    executors.join()
    if spent.code != 0:
        raise SystemExit(Path(log).read_text(errors="replace")[-4000:])
    seconds = max(spent.cpu, sum(executors.seconds.values()))
    return dataclasses.replace(spent, cpu=seconds), executors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--python", required=True)
    parser.add_argument("--master", default="local-cluster[2,1,1024]")
    parser.add_argument("--policy", default="jaccard")
    parser.add_argument("--partitions", help="default: chosen by the job")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--folder", help="working directory; default: a temporary one")
    parser.add_argument("--local", action="store_true", help="only the local run")
    parser.add_argument("--against", type=Path, help="results of a local run, which is not repeated")
    parser.add_argument("--tables-only", action="store_true", help="write no kept documents")
    parser.add_argument("--timeout", type=float, default=1800)
    options = parser.parse_args()
    measure.adopt_orphans()
    print(f"{measure.machine()}; load {measure.load()}\n", flush=True)
    print("| corpus | where | CPU s | wall s | executor MiB: JVM, Python, both | disk GB | stages, s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for corpus in options.corpora:
            one_corpus(corpus, Path(folder), options)


def one_corpus(corpus, folder, options):
    name = f"{Path(corpus).parent.name}/{Path(corpus).name}"
    local, out = folder / "local", folder / "spark"
    if options.against is None:
        run_locally(name, corpus, local, folder, options)
    if not options.local:
        command = [options.python, "-m", "arose.spark", corpus, "-o", out]
        command += ["--policy", options.policy, "--master", options.master]
        command += ["--partitions", options.partitions] if options.partitions else []
        command += ["--tables-only"] if options.tables_only else []
        command += [word for setting in options.conf for word in ("--conf", setting)]
        before = size(folder)
        spent, looked = cost(command, folder, options.timeout)
        summary = json.loads((out / "summary.json").read_text())
        stages = ", ".join(f"{s['name']} {s['seconds']:.1f}" for s in summary["stages"])
        sizes = ", ".join(f"{n / 2**20:.0f}" for n in looked.largest.values())
        disk = f"{(looked.disk - before) / 1e9:.1f}"
        print(
            f"| {name} | Spark | {spent.cpu:.1f} | {spent.wall:.1f} | {sizes} | {disk} | {stages} |",
            flush=True,
        )
        compare = [options.python, "-c", COMPARE, options.against or local, out]
        subprocess.run(compare, check=True, stdout=sys.stderr)
    subprocess.run(["rm", "-rf", local, out], check=True)


def run_locally(name, corpus, local, folder, options):
    command = [options.python, "-c", LOCAL, corpus, local, options.policy, str(options.tables_only)]
    spent, looked = cost(command, folder, options.timeout)
    disk = f"{looked.disk / 1e9:.1f}"
    print(
        f"| {name} | local | {spent.cpu:.1f} | {spent.wall:.1f} | {spent.megabytes:.0f} | {disk} | |",
        flush=True,
    )


main()
