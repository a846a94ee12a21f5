"""Measures datasketch as `others.rs` measures gaoya: 84 samples, bands with the same recall.

    python others.py [DOCUMENTS]

Signatures are random, not hashes of texts, so that only the index is measured.
"""

import sys
import time

import numpy
from datasketch import MinHash, MinHashLSH

N_SAMPLES = 84
RESEMBLANCE = 0.95


def main(n_docs):
    random = numpy.random.default_rng(5)
    signatures = random.integers(0, 2**32, (n_docs, N_SAMPLES), dtype=numpy.uint64)
    changed = random.random((n_docs, N_SAMPLES)) >= RESEMBLANCE
    others = random.integers(0, 2**32, (n_docs, N_SAMPLES), dtype=numpy.uint64)
    edited = numpy.where(changed, others, signatures)
    template = MinHash(num_perm=N_SAMPLES, scheme="legacy")
    wrap = lambda values: MinHash(  # random values fit any scheme
        num_perm=N_SAMPLES, hashvalues=values, permutations=template.permutations, scheme="legacy"
    )
    documents = [wrap(row) for row in signatures]
    queries = [wrap(row) for row in edited]
    start = time.process_time()
    index = MinHashLSH(num_perm=N_SAMPLES, params=(4, 17))
    for i, document in enumerate(documents):
        index.insert(i, document)
    n_found = sum(i in index.query(query) for i, query in enumerate(queries))
    seconds = time.process_time() - start
    print(
        f"datasketch: {seconds * 1e6 / n_docs:.2f} us a document, insertion and question;"
        f" recall {n_found / n_docs:.4f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
