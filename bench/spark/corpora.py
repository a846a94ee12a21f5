"""Generates corpora for `run.py` as JSON Lines: two ordinary and two skewed ones.

    python3 bench/spark/corpora.py DIR short:1000000 half-equal:1000000 template:1000000

    short       20 to 60 words each, drawn by rank (Zipf's law); a tenth are near duplicates of an earlier one
    brief       the same, 10 to 30 words each
    usual       the same, 92 words each, to compare with template
    half-equal  short, but every second document has the same text
    template    92 words each, 76 of them the same in all

A larger corpus of a shape begins with the documents of a smaller one. After a million short documents
the same come again with other words, since drawing them would take longer than the job.
"""

import argparse
import itertools
import json
import random
from pathlib import Path

#: Number of different words.
VOCABULARY = 50_000
#: Number of texts from which near duplicates are made.
REMEMBERED = 1_000
#: Number of documents that are drawn.
DRAWN = 1_000_000
#: Words by the quantiles of their distribution, so that drawing one is fast.
QUANTILES = 1 << 20


def short(draw, least=20, most=60):
    texts = []
    for text in itertools.islice(drawn(draw, least, most), DRAWN):
        texts.append(text)
        yield text
    for letter in "ghijklmno":
        yield from (text.replace("w", letter) for text in texts)


def drawn(draw, least, most):
    words = [f"w{n:x}" for n in range(VOCABULARY)]
    ranks = (int(VOCABULARY ** ((n + 0.5) / QUANTILES)) - 1 for n in range(QUANTILES))
    by_quantile = [words[rank] for rank in ranks]
    recent = []
    while True:
        if recent and draw.random() < 0.1:
            text = draw.choice(recent).split()
            text[draw.randrange(len(text))] = draw.choice(words)
        else:
            text = draw.choices(by_quantile, k=draw.randint(least, most))
            if len(recent) < REMEMBERED:
                recent.append(" ".join(text))
            else:
                recent[draw.randrange(REMEMBERED)] = " ".join(text)
        yield " ".join(text)


def brief(draw):
    return short(draw, 10, 30)


def usual(draw):
    return short(draw, 92, 92)


def half_equal(draw):
    equal = " ".join(f"equal{n}" for n in range(40))
    for text in short(draw):
        yield text
        yield equal


def template(draw):
    shared = " ".join(f"shared{n}" for n in range(76))
    while True:
        yield shared + " " + " ".join(f"own{draw.getrandbits(40):x}" for _ in range(16))


SHAPES = {"short": short, "brief": brief, "usual": usual, "half-equal": half_equal, "template": template}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("corpora", nargs="+", metavar="SHAPE:N")
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    for corpus in options.corpora:
        shape, _, n = corpus.partition(":")
        texts = SHAPES[shape](random.Random(31))
        with open(options.directory / f"{shape}-{n}.jsonl", "w") as file:
            for number, text in zip(range(int(n)), texts):
                file.write(json.dumps({"id": number, "text": text}) + "\n")


main()
