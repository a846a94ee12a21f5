"""datatrove's removal of repeated sentences or lines from JSON lines, on one task.

    python3 peers.py line|sentence CORPUS.jsonl DIR
"""

import sys
from pathlib import Path

from datatrove.executor.local import LocalPipelineExecutor
from datatrove.pipeline.dedup.sentence_dedup import (
    SentDedupConfig,
    SentenceDedupFilter,
    SentenceDedupSignature,
    SentenceFindDedups,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter


def main():
    kind, corpus, scratch = sys.argv[1], Path(sys.argv[2]).absolute(), Path(sys.argv[3]).absolute()
    # Single lines, or spans of three sentences (C4).
    config = SentDedupConfig(
        n_sentences=1 if kind == "line" else 3,
        split_sentences=kind == "sentence",
        only_dedup_in_index=False,
        min_doc_words=0,
        min_num_sentences=0,
    )
    reader = JsonlReader(str(corpus.parent), glob_pattern=corpus.name)
    names = [str(scratch / name) for name in ["signatures", "duplicates", "kept", "logs"]]
    signatures, duplicates, kept, logs = names
    steps = [
        [reader, SentenceDedupSignature(output_folder=signatures, config=config, finder_workers=1)],
        [SentenceFindDedups(data_folder=signatures, output_folder=duplicates, config=config)],
        [reader, SentenceDedupFilter(data_folder=duplicates, config=config), JsonlWriter(kept)],
    ]
    for number, pipeline in enumerate(steps):
        LocalPipelineExecutor(
            pipeline=pipeline, tasks=1, workers=1, logging_dir=f"{logs}/{number}"
        ).run()


if __name__ == "__main__":
    main()
