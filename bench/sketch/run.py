"""Compares sketching of texts (128 hashes) in Python with arose, rensa and daft, on one core.

    python3 bench/sketch/run.py --corpus C.jsonl --truth T.tsv --python arose=A/bin/python \\
        --python rensa=R/bin/python --python daft=D/bin/python

The truth has lines of ID, ID and exact similarity. For all engines, recall is the share of the pairs
with a similarity of at least 0.8 that agree in one of 16 bands of 8 hashes.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SCORE = """
import json, sys, numpy
sketches = numpy.load(sys.argv[1])
ids = {json.loads(line)["id"]: row for row, line in enumerate(open(sys.argv[2]))}
pairs = [line.rstrip("\\n").split("\\t") for line in open(sys.argv[3])]
pairs = [(ids[a], ids[b], float(s)) for a, b, s in pairs if float(s) >= 0.8]
a, b = (sketches[[pair[i] for pair in pairs]] for i in (0, 1))
equal = a == b
found = equal.reshape(len(pairs), 16, 8).all(axis=2).any(axis=1).mean()
error = abs(equal.mean(axis=1) - numpy.array([pair[2] for pair in pairs])).mean()
print(json.dumps({"pairs": len(pairs), "recall": float(found), "error": float(error)}))
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--truth", required=True)
    parser.add_argument("--python", action="append", required=True, metavar="ENGINE=PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    engines = dict(item.split("=", 1) for item in options.python)
    scorer = next(iter(engines.values()))
    found = {engine: [] for engine in engines}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        for _ in range(options.rounds):
            for engine, python in engines.items():
                output = f"{folder}/{engine}.npy"
                command = ["taskset", "-c", "0", python, HERE / "sketch.py", engine]
                command += [options.corpus, output]
                run = subprocess.run(command, env=environment, capture_output=True, text=True)
                if run.returncode != 0:
                    raise SystemExit(run.stderr)
                found[engine].append(json.loads(run.stdout.splitlines()[-1]))
        print("| engine | CPU s | MB/s | times arose | recall at 0.8 | mean error |")
        print("|---|---|---|---|---|---|")
        best = min(run["cpu_s"] for run in found["arose"])
        for engine, runs in found.items():
            seconds = sorted(run["cpu_s"] for run in runs)
            arguments = [f"{folder}/{engine}.npy", options.corpus, options.truth]
            score = subprocess.run([scorer, "-c", SCORE, *arguments], capture_output=True, text=True)
            score = json.loads(score.stdout)
            rate = runs[0]["bytes"] / seconds[0] / 1e6
            print(
                f"| {engine} | {seconds[0]:.2f} ({seconds[0]:.2f}-{seconds[-1]:.2f}) | {rate:.0f} | "
                f"{seconds[0] / best:.1f} | {score['recall']:.4f} | {score['error']:.4f} |"
            )


main()
