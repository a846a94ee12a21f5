"""Runs the Spark job on a cluster: a standalone master, three workers and an object store.

    python3 bench/spark/cluster.py --python P/bin/python --store M/bin/moto_server CORPUS...
    python3 bench/spark/cluster.py ... --faults CORPUS

Every node is a process tree in its own network and mount namespaces. The directory of this run is
empty and private on each, so nodes share only the installed programs and the store, an S3 server
that they reach over the network. Corpora are stored first. Each is deduplicated on the cluster and
by `arose.dedup` on this machine; rows and kept documents are compared before figures are printed.
With `--faults` a run is started once for each fault:

- `lost`: a worker is killed while pairs are verified, and not restarted;
- `paused`: a worker is stopped for a minute, longer than Spark waits for it, and then continues;
- `driver`: the driver is killed, and started on another node;
- `disk`: the disk of a worker is full;
- `shuffle`: the shuffle files of a worker are deleted.

Namespaces require root. The script leaves nothing behind.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

NETWORK = "10.77.0"
STORE = f"http://{NETWORK}.1:5000"
BUCKET = "corpus"
FAULTS = ("lost", "paused", "driver", "disk", "shuffle")
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
COMPARE = """
import json, os, sys
import pyarrow.parquet as pq
from pyarrow import fs
store = fs.S3FileSystem(endpoint_override=sys.argv[1].split("://")[1], scheme="http")
out, local = sys.argv[2:4]
for name, keys in [("documents", ["doc"]), ("pairs", ["a", "b"])]:
    here = pq.read_table(f"{local}/{name}.parquet")
    order = [(key, "ascending") for key in keys]
    there = pq.read_table(f"{out}/{name}.parquet", filesystem=store)
    if name == "documents":
        assert there["doc"].to_pylist() == list(range(len(there))), "documents are not in order"
    # Documents have IDs; where they are is another place.
    left_out = [column for column in here.column_names if column == "source"]
    there = there.sort_by(order).cast(here.schema).drop_columns(left_out)
    assert there.equals(here.sort_by(order).drop_columns(left_out)), f"{name} differ"
selector = fs.FileSelector(out, recursive=True)
kept = sorted(
    info.path for info in store.get_file_info(selector)
    if info.path[len(out) + 1:].startswith("kept.") and info.type == fs.FileType.File
)
there = b"".join(bytes(store.open_input_file(path).read()) for path in kept)
here = b"".join(
    open(os.path.join(folder, file), "rb").read()
    for folder, _, files in sorted(os.walk(local)) for file in sorted(files)
    if os.path.relpath(os.path.join(folder, file), local).startswith("kept.")
)
assert there == here, "kept documents differ"
print(json.dumps({"documents": pq.read_metadata(f"{local}/documents.parquet").num_rows}))
"""
LOCAL = "import arose, sys; arose.dedup(files=sys.argv[2:], output=sys.argv[1])"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


class Node:
    """A machine, with its own network and a private directory in place of that of this run."""

    def __init__(self, number, folder, n_megabytes):
        self.address = f"{NETWORK}.{number}"
        self.folder = folder
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
        self.processes = []
        pid = self.holder.pid
        while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        run("ip", "link", "add", f"node{number}", "type", "veth", "peer", "name", "eth0", "netns", pid)
        run("ip", "link", "set", f"node{number}", "master", "cluster", "up")
        self.run("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "link", "set", "lo", "up")
        # From here on, the files of the driver of this script are hidden.
        self.run("mount", "-t", "tmpfs", "-o", f"size={n_megabytes}m", "tmpfs", folder)

    def enter(self, command):
        enter = ["nsenter", "-t", str(self.holder.pid), "-n", "-m", f"--wd={self.folder}", "--"]
        return enter + [str(word) for word in command]

    def run(self, *command):
        run(*["nsenter", "-t", self.holder.pid, "-n", "-m", "--", *command])

    def start(self, command, environment, **more):
        environment = {**environment, "SPARK_LOCAL_IP": self.address, "TMPDIR": self.folder}
        environment |= {"SPARK_LOCAL_DIRS": self.folder, "SPARK_WORKER_DIR": f"{self.folder}/work"}
        environment |= {"SPARK_LOG_DIR": self.folder, "SPARK_PID_DIR": self.folder}
        process = subprocess.Popen(
            self.enter(command), env=environment, start_new_session=True, **more
        )
        self.processes.append(process)
        return process

    def pids(self):
        """Returns all processes of the node except the one that keeps its namespaces open."""
        own = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.readlink(f"/proc/{entry}/ns/net") == own:
                    found.append(int(entry))
            except OSError:
                continue  # it has ended
        return [pid for pid in found if pid != self.holder.pid]

    def signal(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def stop(self):
        self.signal(signal.SIGKILL)
        self.holder.kill()
        for process in [*self.processes, self.holder]:
            process.wait()


class Cluster:
    """A head node with the master, three workers, and another node for a driver."""

    def __init__(self, python, folder, is_quick):
        self.python = python
        self.folder = folder
        home = run(
            python, "-c", "import pyspark; print(pyspark.__path__[0])", capture_output=True, text=True
        ).stdout.strip()
        self.environment = {**os.environ, **KEYS, "SPARK_HOME": home, "AWS_ENDPOINT_URL": STORE}
        self.environment |= {"PYSPARK_PYTHON": python, "SPARK_NO_DAEMONIZE": "1"}
        self.environment["SPARK_DAEMON_MEMORY"] = "256m"
        # These JVMs end before optimizing would pay off.
        self.environment["SPARK_DAEMON_JAVA_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        spark_class = f"{home}/bin/spark-class"
        self.head = Node(2, folder, 512)
        self.other = None if is_quick else Node(3, folder, 512)
        self.workers = [Node(number, folder, 2048) for number in (11, 12, 13)]
        self.master = f"spark://{self.head.address}:7077"
        deploy = "org.apache.spark.deploy"
        log = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        options = ["--host", self.head.address, "--port", "7077", "--webui-port", "0"]
        self.head.start([spark_class, f"{deploy}.master.Master", *options], self.environment, **log)
        for node in self.workers:
            options = ["--host", node.address, "-c", "1", "-m", "1g", "--webui-port", "0"]
            command = [spark_class, f"{deploy}.worker.Worker", *options, self.master]
            node.start(command, self.environment, **log)

    def driver(self, node, inputs, out, *settings):
        command = [self.python, "-m", "arose.spark", *inputs, "-o", out, "--master", self.master]
        # Work for every worker, even for a small input.
        command += ["--partitions", "6"]
        for setting in (
            f"spark.driver.host={node.address}",
            f"spark.driver.bindAddress={node.address}",
            "spark.driver.memory=512m",
            "spark.executor.memory=512m",
            "spark.executorEnv.MALLOC_ARENA_MAX=2",
            "spark.python.daemon.module=arose._daemon",
            "spark.log.level=ERROR",
            "spark.ui.enabled=false",
            "spark.ui.showConsoleProgress=false",
            "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            *settings,
        ):
            command += ["--conf", setting]
        return node.start(
            command, self.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self):
        for node in [self.head, *filter(None, [self.other]), *self.workers]:
            node.stop()


def watched(driver, stages):
    """Waits for a driver and calls a function when it names a stage; returns its exit code and output."""
    words = []
    for line in driver.stderr:
        words.append(line)
        if line.startswith("arose: ") and (act := stages.pop(line[7:].strip(), None)):
            act()
    driver.stdout.read()
    return driver.wait(), "".join(words)


def fault(name, cluster, inputs, out):
    """Runs the job with a fault; returns its exit code and output."""
    worker = cluster.workers[0]
    soon = ["spark.network.timeout=20s", "spark.network.timeoutInterval=5s"]
    soon += ["spark.executor.heartbeatInterval=2s"]
    soon += ["spark.excludeOnFailure.enabled=true", "spark.task.maxFailures=8"]
    driver = cluster.driver(cluster.head, inputs, out, *soon)
    if name == "lost":
        return watched(driver, {"verify": lambda: cluster.workers[2].signal(signal.SIGKILL)})
    if name == "paused":
        later = threading.Timer(60, lambda: worker.signal(signal.SIGCONT))

        def pause():
            worker.signal(signal.SIGSTOP)
            later.start()

        found = watched(driver, {"candidates": pause})
        if later.is_alive():
            later.join()
        return found
    if name == "disk":
        full = f"head -c 4G /dev/zero > {cluster.folder}/full || true"
        found = watched(driver, {"runs": lambda: worker.run("sh", "-c", full)})
        worker.run("rm", "-f", f"{cluster.folder}/full")
        return found
    if name == "shuffle":
        # Several times, since the shuffle files of a stage exist only briefly.
        gone = f"find {cluster.folder} -name 'shuffle_*' -type f -print -delete"
        often = f"for i in $(seq 12); do {gone}; sleep 1; done > {cluster.folder}/gone"
        deleting = lambda: worker.start(["sh", "-c", often], os.environ)
        found = watched(driver, {"runs": deleting})
        worker.run("test", "-s", f"{cluster.folder}/gone")
        return found
    code, _ = watched(driver, {"groups": lambda: os.killpg(driver.pid, signal.SIGKILL)})
    assert code == -signal.SIGKILL, code
    return watched(cluster.driver(cluster.other, inputs, out, *soon), {})


def serve_store(server, folder):
    """Starts an S3 server in memory and makes a bucket."""
    log = open(f"{folder}/store.log", "w")
    command = [server, "-H", f"{NETWORK}.1", "-p", "5000"]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            run("python3", "-c", f"import urllib.request as u; u.urlopen('{STORE}')", stderr=log)
            return process
        except subprocess.CalledProcessError:
            time.sleep(0.2)
    raise SystemExit(Path(f"{folder}/store.log").read_text())


def put(python, corpora):
    """Stores the files under the numbers of the corpora."""
    script = f"""
import sys
from pyarrow import fs
store = fs.S3FileSystem(endpoint_override="{STORE}".split("://")[1], scheme="http",
                        allow_bucket_creation=True)
store.create_dir("{BUCKET}")
store.create_dir("{BUCKET}-out")
for number, path in enumerate(sys.argv[1:]):
    with open(path, "rb") as file, store.open_output_stream(f"{BUCKET}/{{number}}.jsonl") as out:
        out.write(file.read())
"""
    run(python, "-c", script, *corpora, env={**os.environ, **KEYS})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--python", required=True, help="with the wheel, pyspark and pyarrow")
    parser.add_argument("--store", required=True, help="the program moto_server")
    parser.add_argument("--faults", nargs="*", choices=FAULTS, help="default: all of them")
    options = parser.parse_args()
    if os.environ.get("AROSE_CLUSTER") != "inside":
        # The bridge between nodes is in a network namespace that ends with this script.
        command = ["unshare", "--net", "--mount", "--fork", "--kill-child", sys.executable]
        os.environ["AROSE_CLUSTER"] = "inside"
        os.execvp(command[0], [*command, *sys.argv])
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "cluster", "type", "bridge")
    run("ip", "addr", "add", f"{NETWORK}.1/24", "dev", "cluster")
    run("ip", "link", "set", "cluster", "up")
    faults = FAULTS if options.faults == [] else options.faults or []
    folder = tempfile.mkdtemp(prefix="arose-cluster-")
    store, cluster = None, None
    try:
        store = serve_store(options.store, folder)
        put(options.python, options.corpora)
        inputs = [f"s3://{BUCKET}/{number}.jsonl" for number in range(len(options.corpora))]
        local = f"{folder}/local"
        run(options.python, "-c", LOCAL, local, *options.corpora, stdout=subprocess.DEVNULL)
        cluster = Cluster(options.python, folder, is_quick=not faults)
        for name in ["none", *faults]:
            check(name, cluster, inputs, local, options.python)
            if name in ("lost", "paused", "disk"):
                cluster.stop()
                cluster = Cluster(options.python, folder, is_quick=False)
    finally:
        if cluster is not None:
            cluster.stop()
        if store is not None:
            store.kill()
            store.wait()
        shutil.rmtree(folder, ignore_errors=True)


def check(name, cluster, inputs, local, python):
    out = f"{BUCKET}-out/{name}"
    begin = time.monotonic()
    if name == "none":
        code, words = watched(cluster.driver(cluster.head, inputs, f"s3://{out}"), {})
    else:
        code, words = fault(name, cluster, inputs, f"s3://{out}")
    seconds = time.monotonic() - begin
    last = words.strip().splitlines()[-1:]
    if code != 0:
        raise SystemExit(f"fault {name}: exit code {code}\n{words[-3000:]}")
    found = run(
        python, "-c", COMPARE, STORE, out, local, env={**os.environ, **KEYS},
        stdout=subprocess.PIPE, text=True,
    )
    told = {"fault": name, "seconds": round(seconds, 1), "rows": "same", **json.loads(found.stdout)}
    print(json.dumps({**told, "last words": last}), flush=True)


if __name__ == "__main__":
    main()
