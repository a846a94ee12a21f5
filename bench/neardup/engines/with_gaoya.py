"""gaoya, whose index of texts is filled and queried in bulk; it verifies candidates by sketches."""

from gaoya.minhash import MinHashStringIndex

import job

BATCH = 20_000


def main():
    options = job.arguments()
    texts = job.texts(options.corpus)
    index = MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=options.threshold,
        num_bands=job.BANDS,
        band_size=job.ROWS,
        analyzer="word",
        lowercase=True,
        ngram_range=(job.SHINGLE_WORDS, job.SHINGLE_WORDS),
        id_container="vec",
    )
    batches = range(0, len(texts), BATCH)
    for start in batches:
        batch = texts[start : start + BATCH]
        index.par_bulk_insert_docs(list(range(start, start + len(batch))), batch)
    pairs = []
    for start in batches:
        found = index.par_bulk_query(texts[start : start + BATCH])
        for row, others in enumerate(found, start):
            pairs.extend((other, row) for other in others if other < row)
    job.write_pairs(options.output, pairs)


main()
