"""Sketches the texts of a corpus with one engine and prints the CPU time.

Time starts when the texts are in a pyarrow array and stops before sketches are copied to numpy.
"""

import argparse
import json
import re
import resource
import time

import numpy
import pyarrow

HASHES = 128
WORDS = 5


def with_arose(texts):
    import arose

    sketcher = arose.Sketcher("jaccard", samples=HASHES, w=WORDS, threads=1)
    table = pyarrow.table(sketcher.sketch(texts))
    return lambda: flat(table["samples"])


def with_rensa(texts):
    """Sketches with RMinHash, which takes sets of tokens: Python makes the shingles, as in its examples."""
    from rensa import RMinHash

    split = re.compile(r"\w+").findall

    def shingles(text):
        words = split(text.lower())
        return {" ".join(words[i : i + WORDS]) for i in range(max(1, len(words) - WORDS + 1))}

    sets = (shingles(text) for text in texts.to_pylist())
    sketches = RMinHash.from_token_sets(sets, HASHES, 42)
    return lambda: numpy.array([sketch.digest() for sketch in sketches], dtype=numpy.uint64)


def with_daft(texts):
    import daft
    from daft.functions import minhash, normalize

    words = normalize(daft.col("text"), remove_punct=True, lowercase=True, white_space=True)
    sketch = minhash(words, num_hashes=HASHES, ngram_size=WORDS, hash_function="xxhash3_64")
    frame = daft.from_arrow(pyarrow.table({"text": texts}))
    column = frame.select(sketch.alias("sketch")).to_arrow().column("sketch")
    return lambda: flat(column)


def flat(column):
    values = column.combine_chunks().flatten()
    return values.to_numpy(zero_copy_only=False).reshape(-1, HASHES)


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["arose", "rensa", "daft"])
    parser.add_argument("corpus", help="JSON lines with id and text")
    parser.add_argument("output", help="where the sketches go, .npy")
    options = parser.parse_args()
    with open(options.corpus) as file:
        texts = pyarrow.array([json.loads(line)["text"] for line in file])
    run = globals()[f"with_{options.engine}"]
    run(texts.slice(0, 10))  # loads modules
    begin, wall = processor_seconds(), time.monotonic()
    result = run(texts)
    seconds, wall = processor_seconds() - begin, time.monotonic() - wall
    numpy.save(options.output, result())
    print(json.dumps({"engine": options.engine, "cpu_s": seconds, "wall_s": wall, "bytes": texts.nbytes}))


main()
