#!/usr/bin/env python3
"""Trains the forest that chooses main content, and writes its table.

    cargo run --release -- rows DATA/extract-wcxb-dev > work/mixed.jsonl
    cargo run --release -- rows DATA/extract-articles-181 > work/articles.jsonl
    python3 train.py validate work/mixed.jsonl work/articles.jsonl
    python3 train.py write    work/mixed.jsonl work/articles.jsonl > TABLE

TABLE is crates/arose-corpus/src/html/content/forest_table.rs. Needs numpy and lightgbm.

The label of a block is the share of its words that the truth contains in the same order (4-grams);
each word of the truth is matched once. Long blocks are matched first, then short ones, those next to
content before others, so that a menu entry is not matched to the heading it repeats.
"""
import json
import re
import sys
from collections import Counter

import lightgbm as lgb
import numpy as np

WORD = re.compile(r"\w+")
LONG = 8  # words; shorter blocks are labelled after the longer ones
MIN_EXPECTED_F1 = 0.35  # as in forest.rs
N_TREES = 250
PARAMETERS = dict(
    objective="cross_entropy", learning_rate=0.06, num_leaves=15, min_data_in_leaf=60,
    feature_fraction=0.3, bagging_fraction=0.7, bagging_freq=1, lambda_l2=5.0, seed=1,
    deterministic=True, num_threads=2, verbose=-1,
)


def words(text):
    return WORD.findall((text or "").lower())


class Page:
    def __init__(self, row):
        self.kind = row["kind"]  # absent for articles
        self.truth = words(row["truth"])
        self.blocks = [words(block[0]) for block in row["blocks"]]
        self.rows = np.array([block[1] for block in row["blocks"]], dtype=np.float32)
        self.sizes = np.array([len(block) for block in self.blocks], dtype=float)
        self.labels = labels(self.blocks, self.truth)


def covered(block, grams):
    """Returns the share of a block's words inside n-grams of the truth."""
    n = min(4, len(block))
    hit = [False] * len(block)
    for at in range(len(block) - n + 1):
        if tuple(block[at : at + n]) in grams[n]:
            hit[at : at + n] = [True] * n
    return sum(hit) / len(block)


def labels(blocks, truth):
    grams = {n: {tuple(truth[at : at + n]) for at in range(len(truth) - n + 1)} for n in (1, 2, 3, 4)}
    left = Counter(truth)
    out = np.zeros(len(blocks))

    def share_left(block):
        return sum(min(count, left[word]) for word, count in Counter(block).items()) / len(block)

    def take(block):
        taken = Counter(block) & left
        left.subtract(taken)
        return sum(taken.values()) / len(block)

    for at, block in enumerate(blocks):
        if len(block) >= LONG:
            cover = covered(block, grams)
            if cover > 0.5 and share_left(block) > 0.5:
                out[at] = min(cover, take(block))
    content = out * np.array([len(block) for block in blocks])
    short = [at for at, block in enumerate(blocks) if 0 < len(block) < LONG]
    short.sort(key=lambda at: -content[max(0, at - 4) : at + 5].sum())
    for at in short:
        if covered(blocks[at], grams) > 0.9 and share_left(blocks[at]) > 0.6:
            out[at] = take(blocks[at])
    return out


def fit(pages):
    """Pages have equal weights; within a page, the weight of a block is the root of its length."""
    pages = [page for page in pages if len(page.blocks)]
    weights = [np.sqrt(page.sizes + 1) for page in pages]
    data = lgb.Dataset(
        np.concatenate([page.rows for page in pages]),
        np.concatenate([page.labels for page in pages]),
        weight=np.concatenate([50 * weight / weight.sum() for weight in weights]),
    )
    return lgb.train(PARAMETERS, data, N_TREES)


def choose(probabilities, sizes):
    """Returns the prefix, by probability, with the largest expected F1; see forest.rs."""
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum((probabilities * sizes)[order])
    scores = 2 * hits / (np.cumsum(sizes[order]) + hits[-1] + 1e-9)
    chosen = np.zeros(len(sizes), dtype=bool)
    if scores.max() >= MIN_EXPECTED_F1:
        chosen[order[: scores.argmax() + 1]] = True
    return chosen


def text_of(model, page):
    if not len(page.blocks):
        return []
    chosen = choose(model.predict(page.rows), page.sizes)
    return [word for block, keep in zip(page.blocks, chosen) if keep for word in block]


def word_f1(found, truth):
    if not truth:
        return float(not found)
    return 2 * sum((Counter(found) & Counter(truth)).values()) / (len(found) + len(truth))


def shingles(text):
    return Counter(tuple(text[at : at + 4]) for at in range(max(1, len(text) - 3)) if text)


def validate(pages, n_folds=5):
    """Out-of-fold figures: no page is scored by a model that has seen it."""
    order = np.random.default_rng(0).permutation(len(pages))
    mixed, precision, recall = {}, [], []
    for fold in range(n_folds):
        held = set(order[fold::n_folds].tolist())
        model = fit([page for at, page in enumerate(pages) if at not in held])
        for at in sorted(held):
            page = pages[at]
            found = text_of(model, page)
            if page.kind:
                mixed.setdefault(page.kind, []).append(word_f1(found, page.truth))
                continue
            a, b = shingles(found), shingles(page.truth)
            both = sum((a & b).values())
            precision += [both / sum(a.values())] if a else []
            recall += [both / sum(b.values())] if b else []
    for kind in sorted(mixed):
        print(f"{kind:15} {np.mean(mixed[kind]):.3f}  ({len(mixed[kind])} pages)")
    print(f"mixed, word F1  {np.mean(sum(mixed.values(), [])):.3f}")
    p, r = np.mean(precision), np.mean(recall)
    print(f"articles, 4-gram F1 {2 * p * r / (p + r):.3f}, precision {p:.3f}, recall {r:.3f}")


def write(pages):
    model = fit(pages).dump_model()
    splits, leaves, roots = [], [], []

    def walk(node):
        if "leaf_value" in node:
            leaves.append(round(node["leaf_value"] * 1000))
            return -len(leaves)
        at = len(splits)
        splits.append(None)
        assert node["decision_type"] == "<="
        low, high = walk(node["left_child"]), walk(node["right_child"])
        splits[at] = f'({node["split_feature"]}, {threshold(node["threshold"])}, [{low}, {high}])'
        return at

    for tree in model["tree_info"]:
        roots.append(walk(tree["tree_structure"]))
    print(HEADER)
    table("Splits: feature, threshold, where to go at or below it and where above.",
          "SPLITS", "(u8, f32, [i16; 2])", splits)
    table("Leaves, in thousandths of a logit.", "LEAVES", "i16", leaves)
    table("The first split of each tree.", "ROOTS", "i16", roots)


def threshold(value):
    """Four digits; measures are counts and ratios, finer thresholds are noise."""
    text = f"{value:.4g}" if abs(value) > 1e-6 else "0"
    return text if "." in text or "e" in text else text + ".0"


HEADER = "//! The forest, as data; written by `bench/extract/train.py`, not by hand."


def table(doc, name, kind, items):
    print(f"\n/// {doc}\n#[rustfmt::skip]\npub(super) static {name}: [{kind}; {len(items)}] = [")
    line = "   "
    for item in items:
        if len(line) + len(str(item)) + 2 > 100:
            print(line)
            line = "   "
        line += f" {item},"
    print(f"{line}\n];")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("validate", "write"):
        sys.exit(__doc__)
    rows = [json.loads(line) for path in sys.argv[2:] for line in open(path)]
    globals()[sys.argv[1]]([Page(row) for row in rows])
