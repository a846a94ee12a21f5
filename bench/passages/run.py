"""Measures `arose passages` beside a suffix array and datatrove on one corpus: CPU time and memory.

    python3 run.py --arose ../../target/release/arose --suffixes target/release/arose-bench-passages \
        --python VENV/bin/python --dir DIR CORPUS.jsonl

CORPUS has JSON lines with a `text` field. VENV has datatrove. CPU time is that of the child and its
children, user and system; memory is the largest resident set of one of them. Everything runs on one
thread, one after the other.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def measure(name, command, rows):
    """Runs a command; CPU seconds and peak memory of its process tree."""
    begin = time.time()
    # A process of its own per command, since the largest resident set never falls.
    probe = (
        "import resource,subprocess,sys,json;"
        "p=subprocess.run(sys.argv[2:],stdout=subprocess.PIPE);"
        "r=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "open(sys.argv[1],'w').write(json.dumps([p.returncode,r.ru_utime+r.ru_stime,r.ru_maxrss]))"
    )
    note = "/tmp/arose-bench-passages.json"
    subprocess.run([sys.executable, "-c", probe, note, *map(str, command)], check=True)
    code, cpu, memory = json.loads(Path(note).read_text())
    os.remove(note)
    row = {
        "engine": name,
        "cpu_seconds": round(cpu, 2),
        "memory_mb": round(memory / 1000, 1),
        "wall_seconds": round(time.time() - begin, 2),
        "exit": code,
    }
    rows.append(row)
    print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--arose", type=Path, required=True)
    parser.add_argument("--suffixes", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--dir", type=Path, required=True)
    options = parser.parse_args()
    rows = []

    def arose(name, *arguments):
        out = options.dir / "out"
        shutil.rmtree(out, ignore_errors=True)
        command = [options.arose, *arguments, options.corpus, "-o", out, "--threads", "1"]
        measure(name, [*command, "--memory", options.memory, "--json"], rows)
        shutil.rmtree(out, ignore_errors=True)

    options.dir.mkdir(parents=True, exist_ok=True)
    arose("arose dedup", "dedup", "--ids-only")
    arose("arose passages", "passages")
    arose("arose passages --remove later", "passages", "--remove", "later")
    arose("arose passages --unit line", "passages", "--unit", "line")
    arose("arose passages --unit sentence", "passages", "--unit", "sentence")
    arose("arose dedup --policy contained", "dedup", "--policy", "contained", "--ids-only")
    if options.reference:
        arose("arose passages --against", "passages", "--against", options.reference)
    if options.suffixes:
        measure("libsais, words", [options.suffixes, options.corpus], rows)
    if options.python:
        for kind in ["line", "sentence"]:
            scratch = options.dir / kind
            shutil.rmtree(scratch, ignore_errors=True)
            command = [options.python, HERE / "peers.py", kind, options.corpus, scratch]
            measure(f"datatrove, {kind}s", command, rows)
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
