"""Scores the links of a run against the true pairs.

    score.py ids CORPUS.jsonl IDS      writes the IDs, one per line, and checks the corpus
    score.py links IDS TRUTH.tsv FOLDER THRESHOLD      prints the score as JSON

A folder has `pairs.tsv` or `clusters.tsv` with rows of the corpus, or the output of `arose dedup`,
which is read with pyarrow. A pair is linked if it is listed, or if both documents are in one cluster.
Pairs not listed in the truth count as below the threshold.
"""

import json
import os
import sys
from collections import Counter

BINS = [(0.80, 0.85), (0.85, 0.90), (0.90, 0.95), (0.95, 1.0)]


def main():
    match sys.argv[1:]:
        case ["ids", corpus, output]:
            write_ids(corpus, output)
        case ["links", ids, truth, folder, threshold]:
            with open(ids) as lines:
                ids = lines.read().splitlines()
            print(json.dumps(score(read_links(folder, ids), read_truth(truth), float(threshold))))
        case _:
            sys.exit(__doc__)


def write_ids(corpus, output):
    """Writes the IDs. Rejects empty texts, which engines treat differently, and repeated IDs."""
    seen = set()
    with open(corpus, "rb") as lines, open(output, "w") as out:
        for number, line in enumerate(lines, 1):
            document = json.loads(line)
            name = str(document["id"])
            if not document["text"].strip():
                sys.exit(f"line {number}: empty text")
            if name in seen or "\n" in name or "\t" in name:
                sys.exit(f"line {number}: id {name!r} is not unique, or not one line")
            seen.add(name)
            out.write(name + "\n")


def read_truth(path):
    """Returns the similarity of each pair of IDs, the smaller ID first."""
    truth = {}
    with open(path) as lines:
        for line in lines:
            a, b, similarity = line.rstrip("\n").split("\t")
            truth[min(a, b), max(a, b)] = float(similarity)
    return truth


class Links:
    """Pairs between classes of documents; those of one class are linked with each other."""

    def __init__(self, class_of, pairs):
        self.class_of = class_of
        self.sizes = Counter(class_of.values())
        self.pairs = {(min(a, b), max(a, b)) for a, b in pairs if a != b}

    def holds(self, a, b):
        a, b = self.class_of.get(a), self.class_of.get(b)
        return a is not None and b is not None and (a == b or (min(a, b), max(a, b)) in self.pairs)

    def __len__(self):
        within = sum(n * (n - 1) // 2 for n in self.sizes.values())
        return within + sum(self.sizes[a] * self.sizes[b] for a, b in self.pairs)

    def linked_documents(self):
        linked = {side for pair in self.pairs for side in pair}
        return {
            name for name, of in self.class_of.items() if of in linked or self.sizes[of] > 1
        }

    def closure(self):
        """Returns the links with every connected component as a class."""
        parents = {of: of for of in self.sizes}
        for a, b in self.pairs:
            a, b = root(parents, a), root(parents, b)
            parents[max(a, b)] = min(a, b)
        return Links({name: root(parents, of) for name, of in self.class_of.items()}, ())


def root(parents, item):
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


def read_links(folder, ids):
    if os.path.exists(os.path.join(folder, "pairs.parquet")):
        return read_arose(folder)
    clusters = os.path.join(folder, "clusters.tsv")
    if os.path.exists(clusters):
        return Links({ids[row]: cluster for row, cluster in rows(clusters)}, ())
    pairs = [(ids[a], ids[b]) for a, b in rows(os.path.join(folder, "pairs.tsv"))]
    return Links({name: name for name in ids}, pairs)


def read_arose(folder):
    """Reads the links. Exact duplicates form a class, since not all pairs of many copies are listed."""
    from pyarrow.parquet import read_table

    def columns(file, *names):
        table = read_table(os.path.join(folder, file), columns=list(names))
        return [table.column(name).to_pylist() for name in names]

    class_of = dict(zip(*columns("documents.parquet", "id", "digest")))
    pairs = zip(*columns("pairs.parquet", "id_a", "id_b"))
    return Links(class_of, ((class_of[a], class_of[b]) for a, b in pairs))


def rows(path):
    with open(path) as lines:
        for line in lines:
            left, right = line.split("\t")
            yield int(left), int(right)


def score(links, truth, threshold):
    similar = [pair for pair, similarity in truth.items() if similarity >= threshold]
    gold = {name for pair in similar for name in pair}
    linked = links.linked_documents()
    closure = links.closure()
    scores = {
        "documents": shares(len(gold & linked), len(gold), len(linked)),
        "clusters": pair_shares(closure, similar),
        "bins": [bin_recall(links, truth, *bounds) for bounds in BINS],
    }
    if links.pairs:
        scores["pairs"] = pair_shares(links, similar)
    return scores


def pair_shares(links, similar):
    return shares(sum(links.holds(*pair) for pair in similar), len(similar), len(links))


def shares(n_right, n_true, n_linked):
    """Returns recall and precision, which are 1 if there are no pairs."""
    return {
        "recall": n_right / n_true if n_true else 1.0,
        "precision": n_right / n_linked if n_linked else 1.0,
    }


def bin_recall(links, truth, low, high):
    """Returns the recall of pairs from `low` to below `high`; the last bin includes 1."""
    pairs = [pair for pair, s in truth.items() if low <= s and (s < high or high == 1.0)]
    found = sum(links.holds(*pair) for pair in pairs)
    return {"pairs": len(pairs), "recall": found / len(pairs) if pairs else None}


if __name__ == "__main__":
    main()
