"""daft, which reads, normalizes and sketches; this script groups the bands with numpy.

Candidates are not verified: documents that agree in a band form a cluster.
"""

import daft
import numpy
from daft.functions import minhash, normalize

import job


def main():
    options = job.arguments()
    sketches = read_sketches(options.corpus)
    parents = list(range(len(sketches)))
    for band in range(job.BANDS):
        keys = numpy.ascontiguousarray(sketches[:, band * job.ROWS : (band + 1) * job.ROWS])
        keys = keys.view(numpy.dtype((numpy.void, keys.itemsize * job.ROWS))).ravel()
        order = numpy.argsort(keys, kind="stable")
        is_same = keys[order[1:]] == keys[order[:-1]]
        for left, right in zip(order[:-1][is_same].tolist(), order[1:][is_same].tolist()):
            join(parents, left, right)
    clusters = ((row, root(parents, row)) for row in range(len(parents)))
    job.write_clusters(options.output, clusters)


def read_sketches(path):
    """Returns a row of numbers per document, in corpus order."""
    words = normalize(daft.col("text"), remove_punct=True, lowercase=True, white_space=True)
    sketch = minhash(
        words, num_hashes=job.HASHES, ngram_size=job.SHINGLE_WORDS, hash_function="xxhash3_64"
    )
    column = daft.read_json(path).select(sketch.alias("sketch")).to_arrow().column("sketch")
    values = column.combine_chunks().flatten()
    return values.to_numpy(zero_copy_only=False).reshape(-1, job.HASHES)


def root(parents, row):
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


def join(parents, left, right):
    left, right = root(parents, left), root(parents, right)
    parents[max(left, right)] = min(left, right)


main()
