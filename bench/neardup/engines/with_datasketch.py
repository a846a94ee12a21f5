"""datasketch, with MinHash and MinHashLSH; candidates are verified by their sketches."""

from datasketch import MinHash, MinHashLSH

import job


def main():
    options = job.arguments()
    # Copies share its permutations, which take longer to generate than a text takes to sketch.
    empty = MinHash(num_perm=job.HASHES, seed=1)
    index = MinHashLSH(num_perm=job.HASHES, params=(job.BANDS, job.ROWS))
    sketches = []
    for row, text in enumerate(job.texts(options.corpus)):
        sketch = empty.copy()
        sketch.update_batch([shingle.encode() for shingle in job.shingles(text)])
        sketches.append(sketch)
        index.insert(row, sketch, check_duplication=False)
    pairs = []
    for row, sketch in enumerate(sketches):
        for other in index.query(sketch):
            if other < row and sketch.jaccard(sketches[other]) >= options.threshold:
                pairs.append((other, row))
    job.write_pairs(options.output, pairs)


main()
