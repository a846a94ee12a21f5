"""Finds which versions of documentation pages the policy `content` finds, and why others are missed.

    python3 bench/content/documentation.py PAGES

PAGES has a directory per Debian package with its HTML files, as `bench/html/pages.sh` unpacks them. A
package is a site. Two pages with the same path in two versions of a package are versions. All such
pairs are scored by the definition (`definition.py`), without arose and without a search for
candidates. Pages whose names are numbers of Doxygen are listed apart, since the numbers change.

Takes 4 GB of memory and about three minutes for 14,088 pages.
"""

import argparse
import collections
import itertools
import re
from pathlib import Path

import definition


class Page:
    """A page with its word pairs; a score needs further attributes, which `prepare` adds."""

    def __init__(self, package, path, words):
        self.package, self.path, self.words = package, path, words
        self.pairs = list(zip(words, words[1:])) or [tuple(words)] * bool(words)

    def prepare(self, counts):
        seen = collections.Counter()
        self.elements = []
        for pair in self.pairs:
            self.elements.append((pair, seen[pair]))
            seen[pair] += 1
        self.places = {element: place for place, element in enumerate(self.elements)}
        others = [counts[self.package][pair] - 1 for pair in self.pairs]
        self.weights = [min(1, 3 / max(1, n)) ** 2 for n in others]
        self.own = sum(self.weights)

    def shingles(self):
        return {tuple(self.words[i : i + 5]) for i in range(len(self.words) - 4)} or {tuple(self.words)}


def read(folder):
    numbers = {}
    for package in sorted(folder.iterdir()):
        files = sorted(file for file in package.rglob("*.htm*") if file.is_file() and not file.is_symlink())
        base = common([file.parent for file in files])
        for file in files:
            words = definition.words({"html": file.read_text(encoding="utf-8", errors="replace")})
            ids = [numbers.setdefault(word, len(numbers)) for word in words]
            yield Page(package.name, str(file.relative_to(base)), ids)


def common(folders):
    base = folders[0] if folders else Path()
    while not all(folder.is_relative_to(base) for folder in folders):
        base = base.parent
    return base


def versions(pages):
    """Returns pairs of pages with the same path in two versions of a package."""
    groups = collections.defaultdict(list)
    for page in pages:
        family = re.sub(r"[-.]?\d+(\.\d+)?(?=-doc)", "", page.package)
        if not re.fullmatch(r"a?\d+\.html?", Path(page.path).name):
            groups[family, page.path].append(page)
    return [pair for group in groups.values() for pair in itertools.combinations(group, 2)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", type=Path)
    pages = list(read(parser.parse_args().pages))
    counts = collections.defaultdict(collections.Counter)
    for page in pages:
        counts[page.package].update(set(page.pairs))
    table = collections.defaultdict(collections.Counter)
    for a, b in versions(pages):
        a.prepare(counts)
        b.prepare(counts)
        one, other = a.shingles(), b.shingles()
        if re.search(r"(^|/)a\d+", a.path):
            kind = "numbers of Doxygen"
        else:
            kind = "own text" if min(a.own, b.own) >= 5 else "no own text"
        row = table[kind]
        row["pairs"] += 1
        level = definition.level(a, b)
        row["same"] += level == "same"
        row["content"] += level in ("same", "content")
        row["jaccard"] += len(one & other) >= 0.8 * len(one | other)
        for page in a, b:
            del page.elements, page.places, page.weights
    print(f"{len(pages)} pages")
    for kind, row in sorted(table.items()):
        found = ", ".join(f"{name} {row[name] / row['pairs']:.3f}" for name in ("same", "content", "jaccard"))
        print(f"{kind}: {row['pairs']} pairs; found by {found}")


if __name__ == "__main__":
    main()
