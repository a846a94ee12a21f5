"""datatrove, with one task each for signatures, buckets and clusters; words are separated by spaces.

Candidates are not verified: documents that agree in a bucket form a cluster. Its default tokenizer,
spaCy, takes many times as long, so texts are split at spaces after its own normalization.
"""

import os
import struct

import datatrove.pipeline.dedup.minhash as minhash
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.utils.hashing import HashConfig

import job


class Blanks:
    def word_tokenize(self, text):
        return text.split()


def main():
    options = job.arguments()
    minhash.load_word_tokenizer = lambda _language: Blanks()
    config = minhash.MinhashConfig(
        n_grams=job.SHINGLE_WORDS,
        num_buckets=job.BANDS,
        hashes_per_bucket=job.ROWS,
        hash_config=HashConfig(hash_fc="xxhash", precision=64),
    )
    signatures, buckets, clusters, logs = (
        os.path.join(options.output, name) for name in ("signatures", "buckets", "clusters", "logs")
    )
    folder, name = os.path.split(os.path.abspath(options.corpus))
    reader = JsonlReader(folder, glob_pattern=name)
    stages = [
        (1, [reader, minhash.MinhashDedupSignature(signatures, config)]),
        (job.BANDS, [minhash.MinhashDedupBuckets(signatures, buckets, config=config)]),
        (1, [minhash.MinhashDedupCluster(buckets, clusters, config=config, save_cluster_id=True)]),
    ]
    for number, (tasks, steps) in enumerate(stages):
        log = os.path.join(logs, str(number))
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=log).run()
    job.write_clusters(options.output, read_clusters(os.path.join(clusters, "000000.clusters")))


def read_clusters(path):
    """Returns pairs of document and cluster, 32 bits each. If there are no clusters, no file exists."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        return list(struct.iter_unpack("<II", file.read()))


main()
