"""Arguments, texts, shingles and results of the programs for other engines.

Results name documents by row of the corpus, from 0. IDs are looked up when the run is scored,
outside the measured time.
"""

import argparse
import os
import re

SHINGLE_WORDS = 5
HASHES = 128
BANDS = 16
ROWS = HASHES // BANDS

WORD = re.compile(r"\w+")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", help="JSON lines with a field text")
    parser.add_argument("output", help="folder for pairs.tsv or clusters.tsv")
    parser.add_argument("--threshold", type=float, required=True)
    return parser.parse_args()


def texts(path):
    """Yields the texts, read with the fastest installed parser."""
    try:
        from orjson import loads
    except ImportError:
        from json import loads
    with open(path, "rb") as lines:
        return [loads(line)["text"] for line in lines]


def shingles(text):
    """Returns the distinct shingles of a text, for engines that take sets; a short text is one shingle."""
    words = WORD.findall(text.lower())
    starts = [words[i:] for i in range(SHINGLE_WORDS)]
    return list({" ".join(window) for window in zip(*starts)}) or [" ".join(words)]


def write_pairs(folder, pairs):
    write(os.path.join(folder, "pairs.tsv"), pairs)


def write_clusters(folder, clusters):
    """Writes (row, cluster) for each document of a cluster."""
    write(os.path.join(folder, "clusters.tsv"), clusters)


def write(path, rows):
    with open(path, "w") as out:
        out.writelines(f"{left}\t{right}\n" for left, right in rows)
