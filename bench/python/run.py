"""Deduplicates a list of texts in Python: arose.dedup, and loops with rensa and datasketch.

    python3 bench/python/run.py --python arose=A/bin/python --python rensa=R/bin/python \\
        --python datasketch=R/bin/python

Every tool gets the same list of strings: texts of random words, a tenth of them near duplicates of
an earlier text (4 of 100 words replaced). rensa and datasketch run the loop from their documentation,
a MinHash of 128 values per text and an index with threshold 0.8 that is queried before each text is
added, on the words of a text (`--tokens words`, the fewest steps in Python) or on its shingles of
five words, which arose compares (`--tokens shingles`). Time starts when the list is complete.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time


def texts(n, n_words):
    """Returns texts, and for each whether it is a near duplicate of an earlier one."""
    draw = random.Random(30)
    vocabulary = [
        "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(3, 9)))
        for _ in range(20_000)
    ]
    made, truth = [], []
    for _ in range(n):
        is_copy = bool(made) and draw.random() < 0.1
        if is_copy:
            words = draw.choice(made).split()
            # Adjacent words, so that the similarity of shingles is at least 0.8.
            at = draw.randrange(len(words) - 4)
            words[at : at + 4] = draw.choices(vocabulary, k=4)
        else:
            words = draw.choices(vocabulary, k=n_words)
        made.append(" ".join(words))
        truth.append(is_copy)
    return made, truth


def cut(text, kind):
    words = text.split()
    if kind == "words":
        return words
    return [" ".join(words[i : i + 5]) for i in range(len(words) - 4)]


def with_arose(made, kind):
    import arose

    found = arose.dedup(texts=made, policy="jaccard", threshold=0.8, progress=False)
    return [not kept for kept in found.mask]


def with_rensa(made, kind):
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=0.8, num_perm=128, num_bands=16)
    found = []
    for number, text in enumerate(made):
        minhash = RMinHash(num_perm=128, seed=42)
        minhash.update(cut(text, kind))
        found.append(len(index.query(minhash)) > 0)
        index.insert(number, minhash)
    return found


def with_datasketch(made, kind):
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=0.8, num_perm=128)
    found = []
    for number, text in enumerate(made):
        minhash = MinHash(num_perm=128)
        for token in cut(text, kind):
            minhash.update(token.encode())
        found.append(len(index.query(minhash)) > 0)
        index.insert(number, minhash)
    return found


TOOLS = {"arose": with_arose, "rensa": with_rensa, "datasketch": with_datasketch}


def measure(tool, options):
    made, truth = texts(options.texts, options.words)
    before, begin = time.process_time(), time.monotonic()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = TOOLS[tool](made, options.tokens)
    wall, cpu = time.monotonic() - begin, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pairs = list(zip(found, truth))
    print(json.dumps({
        "wall": wall,
        "cpu": cpu,
        "peak_mb": peak / 1024,
        "above_mb": (peak - rss) / 1024,
        "text_mb": sum(map(len, made)) / 1e6,
        "recall": sum(f and t for f, t in pairs) / max(1, sum(truth)),
        "precision": sum(f and t for f, t in pairs) / max(1, sum(found)),
    }))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", action="append", default=[], metavar="TOOL=PYTHON")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--tokens", choices=["words", "shingles"], default="words")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        return measure(options.only, options)
    tools = dict(item.split("=", 1) for item in options.python)
    arguments = ["--texts", options.texts, "--words", options.words, "--tokens", options.tokens]
    found = {tool: [] for tool in tools}
    for _ in range(options.rounds):
        for tool, python in tools.items():
            command = [python, __file__, "--only", tool, *map(str, arguments)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(run.stderr)
            found[tool].append(json.loads(run.stdout.splitlines()[-1]))
    print("| tool | wall s | CPU s | times arose, wall | peak MB, of it above the list | precision | recall |")
    print("|---|---|---|---|---|---|---|")
    best = min(run["wall"] for run in found["arose"])
    for tool, runs in found.items():
        run = min(runs, key=lambda run: run["wall"])
        print(
            f"| {tool} | {run['wall']:.2f} | {run['cpu']:.2f} | {run['wall'] / best:.1f} | "
            f"{run['peak_mb']:.0f}, {run['above_mb']:.0f} | {run['precision']:.4f} | {run['recall']:.4f} |"
        )
    print(f"\n{options.texts:,} texts of {options.words} words, {runs[0]['text_mb']:.0f} MB; {options.tokens}")


if __name__ == "__main__":
    main()
