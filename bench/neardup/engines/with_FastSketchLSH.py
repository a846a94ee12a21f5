"""FastSketchLSH, with its sketch and its index; candidates are verified by their sketches."""

import numpy
from FastSketchLSH import LSH, FastSimilaritySketch

import job

# Documents whose shingles are in memory at the same time.
BATCH = 2_000


def main():
    options = job.arguments()
    sketches = read_sketches(job.texts(options.corpus))
    index = LSH(num_perm=job.HASHES, num_bands=job.BANDS)
    index.insert(sketches)
    pairs = []
    for start in range(0, len(sketches), BATCH):
        found, ends = index.query(sketches[start : start + BATCH], format="csr")
        counts = numpy.diff(ends).astype(numpy.int64)
        rows = numpy.repeat(numpy.arange(start, start + len(counts)), counts)
        is_earlier = found < rows
        others, rows = found[is_earlier], rows[is_earlier]
        shares = (sketches[others] == sketches[rows]).mean(axis=1)
        is_pair = shares >= options.threshold
        pairs.extend(zip(others[is_pair].tolist(), rows[is_pair].tolist()))
    job.write_pairs(options.output, pairs)


def read_sketches(texts):
    """Returns a row of numbers per document, in corpus order."""
    sketcher = FastSimilaritySketch(size=job.HASHES, seed=42)
    batches = []
    for start in range(0, len(texts), BATCH):
        sets = [job.shingles(text) for text in texts[start : start + BATCH]]
        batches.append(numpy.asarray(sketcher.batch(sets), dtype=numpy.uint64))
    return numpy.concatenate(batches)


main()
