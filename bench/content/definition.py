"""Scores the levels of the policy `content` on pairs of documents by its definition alone.

    python3 bench/content/definition.py snapshots.jsonl --group page

This script shares no code with arose: it reads HTML with Python's parser, words are runs of letters
and digits, and word pairs and chains are plain lists. Its figures show whether `arose evaluate pairs`
follows the definition. The input is JSON Lines with `text` or `html`, and `url` or null; documents with the same
value of the field `--group` are duplicates. Documents without a URL form one site. There, documents
with the same text are one page (the default), or each is a page of its own (`--pages each`).

Time is quadratic in the number of documents: 206 pages of 5,700 words take about a minute.
"""

import argparse
import bisect
import collections
import itertools
import json
import re
import unicodedata
from html.parser import HTMLParser

INLINE = set("a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q s samp small span strike"
             " strong sub sup time tt u var wbr".split())
SILENT = {"script", "style", "template", "noscript"}


class Visible(HTMLParser):
    """Collects the text that readers see."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts = []
        self.silent = []

    def handle_starttag(self, tag, attributes):
        if tag in SILENT:
            self.silent.append(tag)
        elif tag not in INLINE:
            self.parts.append(" ")

    def handle_endtag(self, tag):
        if tag in self.silent:
            while self.silent.pop() != tag:
                pass
        elif tag not in INLINE and tag not in SILENT:
            self.parts.append(" ")

    def handle_data(self, data):
        if not self.silent:
            self.parts.append(data)


def words(row):
    text = row.get("text")
    if text is None:
        parser = Visible()
        parser.feed(row["html"])
        parser.close()
        text = "".join(parser.parts)
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).lower())


class Document:
    def __init__(self, row, group):
        tokens = words(row)
        self.group = row[group]
        self.url = row.get("url")
        self.text = hash(tuple(tokens))
        self.pairs = list(zip(tokens, tokens[1:])) or [tuple(tokens)] * bool(tokens)
        seen = collections.Counter()
        self.elements = []
        for pair in self.pairs:
            self.elements.append((pair, seen[pair]))
            seen[pair] += 1
        self.places = {element: place for place, element in enumerate(self.elements)}

    def site(self):
        host = self.url.split("/")[2].split(":")[0] if self.url else ""
        return ".".join(host.split(".")[-2:])


def weigh(documents, pages):
    """Sets the weights of word pairs by the other pages of their sites."""
    containing = collections.defaultdict(set)
    for number, document in enumerate(documents):
        page = document.url or (number if pages == "each" else document.text)
        for pair in set(document.pairs):
            containing[document.site(), pair].add(page)
    for document in documents:
        others = [len(containing[document.site(), pair]) - 1 for pair in document.pairs]
        document.weights = [min(1, 3 / max(1, n)) ** 2 for n in others]
        document.own = sum(document.weights)


def chain(a, b):
    """Returns a longest sequence of positions of equal elements that increases in both documents."""
    matches = [(i, b.places[element]) for i, element in enumerate(a.elements) if element in b.places]
    ends, last, before = [], [], [-1] * len(matches)
    for number, (_, j) in enumerate(matches):
        length = bisect.bisect_left(ends, j)
        if length == len(ends):
            ends.append(j)
            last.append(number)
        ends[length], last[length] = j, number
        before[number] = last[length - 1] if length else -1
    number, found = last[-1] if last else -1, []
    while number >= 0:
        found.append(matches[number])
        number = before[number]
    return found


def level(a, b):
    common = chain(a, b)
    u = len(common) / max(len(a.pairs), len(b.pairs), 1)
    s = 0
    if min(a.own, b.own) >= 5:
        s = min(sum(a.weights[i] for i, _ in common) / a.own, sum(b.weights[j] for _, j in common) / b.own)
    if s >= 0.9 or u >= 0.97 and len(common) >= 5:
        return "same"
    return "content" if s >= 0.75 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--group", required=True)
    parser.add_argument("--pages", choices=["text", "each"], default="text")
    args = parser.parse_args()
    with open(args.file, encoding="utf-8") as lines:
        documents = [Document(json.loads(line), args.group) for line in lines]
    weigh(documents, args.pages)
    accepted, n_true = collections.Counter(), 0
    for a, b in itertools.combinations(documents, 2):
        is_pair = a.group == b.group
        n_true += is_pair
        accepted[level(a, b), is_pair] += 1
    for name, levels in [("same", ["same"]), ("content", ["same", "content"])]:
        right, wrong = (sum(accepted[one, is_pair] for one in levels) for is_pair in (True, False))
        precision, recall = right / max(1, right + wrong), right / max(1, n_true)
        f1 = 2 * right / max(1, right + wrong + n_true)
        print(f"{name:8} {right + wrong} pairs, precision {precision:.4f}, recall {recall:.4f}, F1 {f1:.4f}")


if __name__ == "__main__":
    main()
