"""Compares `arose passages` with a suffix array and datatrove on one corpus: CPU time and memory.

    python3 run.py --arose ../../target/release/arose --suffixes target/release/arose-bench-passages \
        --python VENV/bin/python --dir DIR CORPUS.jsonl

CORPUS has JSON Lines with a `text` field. VENV has datatrove. CPU time is that of a command and the
processes it has waited for, user and system; memory is the largest resident set of one of them.
Everything runs on one thread, one command after the other. The suffix array must find what
`arose passages` finds, or the run ends. `--growth` measures `arose passages` alone,
on the first hundredth, tenth and all of the corpus.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
COUNTS = ["tokens", "repeated", "occurrences", "passages", "covered"]


def measure(name, command):
    """Run a command, print what it took and return what it wrote."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as written:
        process = subprocess.Popen([str(part) for part in command], stdout=written)
        _, status, used = os.wait4(process.pid, 0)
        written.seek(0)
        output = written.read()
    row = {
        "engine": name,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "memory_mb": round(used.ru_maxrss / 1000, 1),
        "wall_seconds": round(time.monotonic() - begin, 2),
        "exit": os.waitstatus_to_exitcode(status),
    }
    summary = json.loads(output) if output.startswith(b"{") else {}
    stages = {one["name"]: one["cpu_seconds"] for one in summary.get("stages", [])}
    stages |= summary.get("cpu_seconds", {})
    if stages:
        row["stages"] = {name: round(seconds, 2) for name, seconds in stages.items()}
    print(json.dumps(row), flush=True)
    return summary


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--arose", type=Path, required=True)
    parser.add_argument("--suffixes", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--dir", type=Path, required=True)
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)

    def arose(name, *arguments, corpus=options.corpus):
        out = options.dir / "out"
        shutil.rmtree(out, ignore_errors=True)
        command = [options.arose, *arguments, corpus, "-o", out, "--threads", "1"]
        summary = measure(name, [*command, "--memory", options.memory, "--json"])
        shutil.rmtree(out, ignore_errors=True)
        return summary

    if options.growth:
        with open(options.corpus, encoding="utf-8") as lines:
            n_lines = sum(1 for _ in lines)
        for part in [100, 10, 1]:
            corpus = options.dir / "part.jsonl"
            with open(options.corpus, encoding="utf-8") as lines, open(corpus, "w") as out:
                out.writelines(itertools.islice(lines, n_lines // part))
            arose(f"arose passages, {n_lines // part} documents", "passages", corpus=corpus)
            corpus.unlink()
        return
    arose("arose dedup --policy jaccard", "dedup", "--policy", "jaccard")
    found = arose("arose passages", "passages")
    arose("arose passages --remove later", "passages", "--remove", "later")
    arose("arose passages --unit line --remove later", "passages", "--unit", "line", "--remove", "later")
    arose(
        "arose passages --unit sentence --remove later",
        *["passages", "--unit", "sentence", "--remove", "later"],
    )
    arose("arose dedup --policy contained", "dedup", "--policy", "contained")
    if options.reference:
        arose("arose passages --against", "passages", "--against", options.reference)
    if options.suffixes:
        scratch = options.dir / "suffixes"
        suffixes = measure("libsais, words", [options.suffixes, options.corpus, scratch])
        shutil.rmtree(scratch, ignore_errors=True)
        differing = [name for name in COUNTS if suffixes["counts"][name] != found["counts"][name]]
        if differing:
            raise SystemExit(f"the suffix array finds something else: {differing}")
    if options.python:
        for kind in ["line", "sentence"]:
            scratch = options.dir / kind
            shutil.rmtree(scratch, ignore_errors=True)
            command = [options.python, HERE / "peers.py", kind, options.corpus, scratch]
            measure(f"datatrove, {kind}s", command)
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
