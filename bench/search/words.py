"""Makes mixed queries from the words of a corpus: common and rare words, pairs, phrases, negations."""

import json
import random
import re


def texts(path, n):
    """Yields the texts of the first n pages."""
    with open(path, encoding="utf-8") as lines:
        for _, line in zip(range(n), lines):
            yield json.loads(line)["text"]


def queries(path, n, seed=1):
    """Returns n queries, a fifth of each kind."""
    chance = random.Random(seed)
    pages = [re.findall(r"[A-Za-z]{2,}", text) for text in texts(path, 5000)]
    # Operators, not words.
    pages = [[word for word in words if word not in ("AND", "OR", "NOT")] for words in pages]
    pages = [words for words in pages if len(words) > 20]
    made = []
    while len(made) < n:
        words = chance.choice(pages)
        at = chance.randrange(len(words) - 4)
        one, two, three = words[at], words[at + 1], chance.choice(words)
        kind = len(made) % 5
        made.append([
            one,
            f"{one} {three}",
            f'"{one} {two}"',
            f"{one} OR {three}",
            f"{one} {three} -{chance.choice(chance.choice(pages))}",
        ][kind])
    return made
