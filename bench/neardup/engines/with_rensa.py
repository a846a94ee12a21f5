"""rensa, with RMinHash and its index; candidates are verified by their sketches."""

from rensa import RMinHash, RMinHashLSH

import job

SEED = 42


def main():
    options = job.arguments()
    sets = (job.shingles(text) for text in job.texts(options.corpus))
    sketches = RMinHash.from_token_sets(sets, job.HASHES, SEED)
    index = RMinHashLSH(options.threshold, job.HASHES, job.BANDS)
    index.insert_many(sketches, 0)
    pairs = []
    for row, sketch in enumerate(sketches):
        for other in index.query(sketch):
            if other < row and sketch.jaccard(sketches[other]) >= options.threshold:
                pairs.append((other, row))
    job.write_pairs(options.output, pairs)


main()
