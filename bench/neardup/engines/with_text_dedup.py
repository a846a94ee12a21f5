"""text-dedup, run as its command in one process; the clusters are in the union-find that it writes.

Candidates are not verified: documents that agree in a band form a cluster.
"""

import os
import pickle
import subprocess
import sys

import job


def main():
    options = job.arguments()
    work = os.path.join(options.output, "work")
    os.makedirs(work)
    flags = {
        "path": "json",
        "data_files": os.path.abspath(options.corpus),
        "split": "train",
        "cache_dir": os.path.join(work, "cache"),
        "output": work,
        "column": "text",
        "ngram": job.SHINGLE_WORDS,
        "min_length": 1,
        "num_perm": job.HASHES,
        "threshold": options.threshold,
        "b": job.BANDS,
        "r": job.ROWS,
        "hash_func": "xxh3",
        "num_proc": 1,
    }
    command = [sys.executable, "-m", "text_dedup.minhash", "--debug"]
    for name, value in flags.items():
        command += [f"--{name}", str(value)]
    offline = {"HF_HOME": work, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    subprocess.run(command, check=True, env=os.environ | offline)
    with open(os.path.join(work, "uf.pkl"), "rb") as file:
        parents = pickle.load(file)
    parents = getattr(parents, "parent", parents)
    job.write_clusters(options.output, ((row, root(parents, row)) for row in parents))


def root(parents, row):
    while parents.get(row, row) != row:
        row = parents[row]
    return row


main()
