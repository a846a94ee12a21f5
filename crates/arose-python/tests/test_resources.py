"""Tests of the memory of a run and the cost of an import, measured in separate processes."""

import json
import os
import subprocess
import sys

import pytest

#: Prints the peak resident memory before and after a run, and the bytes of text.
PROGRAM = """
import json, random, sys
import arose

draw = random.Random(1)
words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(5000)]
N_TEXTS, N_WORDS = int(sys.argv[2]), int(sys.argv[3])

def texts():
    for number in range(N_TEXTS):
        yield " ".join(draw.choices(words, k=N_WORDS))

def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024

def stream(data):
    # The same as an Arrow stream, batch by batch.
    import itertools, pyarrow as pa
    schema = pa.schema([("text", pa.string())])
    def batches():
        while batch := list(itertools.islice(data, 4096)):
            yield pa.record_batch([pa.array(batch)], schema=schema)
    data = iter(data)
    return pa.RecordBatchReader.from_batches(schema, batches())

def run(data):
    return eval(sys.argv[1])(data)

run([text for _, text in zip(range(300), texts())])
before = peak()
found = run(texts())
assert len(found.documents) == N_TEXTS
print(json.dumps([before, peak(), N_TEXTS * (9 * N_WORDS - 1)]))
"""

MIB = 1 << 20
#: Rows in transit: two batches of texts, row groups of 8 MiB that are written and read.
BATCH = 64 * MIB


def peaks(call, n_texts, n_words):
    command = [sys.executable, "-c", PROGRAM, call, str(n_texts), str(n_words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peaks are read from /proc")
@pytest.mark.parametrize(
    ("call", "n_texts", "n_words"),
    [
        ("arose.dedup", 100_000, 52),
        ("lambda data: arose.dedup(stream(data), threads=1)", 100_000, 52),
        ("arose.passages", 40_000, 130),
        # As many rows as bytes: the results are larger than the input.
        ("arose.dedup", 400_000, 13),
    ],
)
def test_issue_30_memory_is_twice_the_input_above_the_batch(call, n_texts, n_words):
    before, after, n_bytes = peaks(call, n_texts, n_words)
    assert n_bytes > 46e6
    assert after - before < 2 * n_bytes + BATCH, f"{(after - before) / MIB:.0f} MiB"


def test_issue_30_an_import_brings_nothing_heavy():
    """Checks which modules an import must not load. Its time is recorded in bench/records."""
    program = "import json, sys, arose; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(json.loads(ran.stdout))
    assert not loaded & {"numpy", "pandas", "polars", "pyarrow", "pyspark", "datasets", "tqdm"}
