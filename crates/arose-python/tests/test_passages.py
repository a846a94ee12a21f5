"""Tests of repeated passages against the command line."""

import json
import os
import pickle
import subprocess
import sys

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import arose

WORDS = [f"word{i}" for i in range(40)]
SHARED = " ".join(WORDS[:20])
TEXTS = [f"first {SHARED} end", None, f"second {SHARED} stop", "", "nothing of it here", SHARED]


def rows(table):
    return table.to_pyarrow().to_pylist()


def kinds():
    yield "list", TEXTS
    yield "generator", (text for text in TEXTS)
    yield "array", pa.array(TEXTS)
    yield "table", pa.table({"n": range(6), "text": TEXTS})
    yield "reader", pa.table({"text": TEXTS}).to_reader(max_chunksize=2)
    yield "pandas", pandas.DataFrame({"text": TEXTS}, index=list("abcdef"))
    yield "polars", polars.LazyFrame({"text": TEXTS})
    yield "categories", polars.Series(TEXTS, dtype=polars.Categorical)


def test_issue_30_passages_go_by_rows():
    expected = arose.passages(texts=TEXTS, min=10, remove="later", seam=" ")
    documents = rows(expected.documents)
    assert [row["row"] for row in documents] == list(range(6))
    assert [row["id"] for row in documents] == [f"table#{i}" for i in range(6)]
    assert [row["covered"] for row in documents] == [20, None, 20, 0, 0, 20]
    assert [row["kept"] for row in documents] == [True, True, True, True, True, False]
    assert [row["longest_row"] for row in documents] == [2, None, 0, None, None, 0]
    assert [row["row"] for row in rows(expected.places)] == [0, 2, 5]
    assert [row["first_row"] for row in rows(expected.passages)] == [0]
    removed = [(row["row"], row["source_row"]) for row in rows(expected.removed)]
    assert removed == [(2, 0), (5, 0)]
    left = expected.texts()
    assert left == [TEXTS[0], None, "second  stop", "", TEXTS[4], None]
    for name, data in kinds():
        found = arose.passages(data, min=10, remove="later", seam=" ")
        assert rows(found.documents) == documents, name
        assert found.texts() == left, name
        for table in ["passages", "places", "removed"]:
            assert rows(getattr(found, table)) == rows(getattr(expected, table)), (name, table)


def test_issue_30_passages_of_datasets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": TEXTS})
    for kind in [data, data.to_iterable_dataset()]:
        found = arose.passages(kind, min=10, remove="all")
        assert [row["removed"] for row in rows(found.documents)] == [20, None, 20, 0, 0, 20]


def test_issue_30_passages_are_those_of_the_command(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    reference = tmp_path / "reference.jsonl"
    reference.write_text(json.dumps({"text": SHARED}) + "\n")
    for number, (flags, options) in enumerate([
        (["--min", "10"], {"min": 10}),
        (["--min", "5", "--remove", "later", "--whole-first"], {"min": 5, "remove": "later", "whole_first": True}),
        (["--min", "8", "--scope", "across", "--times", "3"], {"min": 8, "scope": "across", "times": 3}),
        (["--unit", "sentence", "--span", "1", "--digits", "zero"], {"unit": "sentence", "span": 1, "digits": "zero"}),
        (["--unit", "line", "--min-unit", "2"], {"unit": "line", "min_unit": 2}),
        (["--min", "8", "--remove", "all", "--cut", "line", "--seam", "x", "--min-left", "3"],
         {"min": 8, "remove": "all", "cut": "line", "seam": "x", "min_left": 3}),
        (["--tokens", "all", "--list", "1"], {"tokens": "all", "list": 1}),
        (["--against", str(reference), "--common", "5"], {"against": reference, "common": 5}),
        (["--against", str(reference), "--remove", "documents"], {"against": reference, "remove": "documents"}),
    ]):
        out, own = tmp_path / f"out{number}", tmp_path / f"own{number}"
        command = [sys.executable, "-m", "arose", "passages", str(path), "-o", str(out), *flags]
        subprocess.run(command, check=True, capture_output=True)
        found = arose.passages(path, own, **options)
        assert found.summary["settings"] == json.loads((out / "summary.json").read_text())["settings"]
        names = sorted(file.name for file in out.iterdir() if not file.name.startswith("."))
        assert names == sorted(file.name for file in own.iterdir() if not file.name.startswith("."))
        for name in names:
            if name.endswith(".parquet"):
                there = pq.read_table(out / name)
                assert there.equals(getattr(found, name.removesuffix(".parquet")).to_pyarrow()), name
            elif name.startswith("kept"):
                assert (out / name).read_bytes() == (own / name).read_bytes()


def test_issue_30_a_reference_is_any_kind_of_rows(tmp_path):
    items = [SHARED, None, "an item that is not there at all, not even in part of it"]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in items if text))
    expected = arose.passages(TEXTS, against=items, min=10, remove="spans")
    found = rows(expected.items)
    assert [row["item"] for row in found] == [0, 1, 2]
    assert [row["id"] for row in found] == ["against#0", "against#1", "against#2"]
    assert [row["covered"] for row in found] == [20, None, 0]
    assert [row["best_row"] for row in found] == [0, None, None]
    assert [(row["item"], row["row"]) for row in rows(expected.matches)] == [(0, 0), (0, 2), (0, 5)]
    assert expected.texts() == ["first end", None, "second stop", "", TEXTS[4], None]
    assert expected.passages is None and "1 of 2 items found" in repr(expected)
    for against in [pa.array(items), pa.table({"question": items, "text": items}), pandas.Series(items)]:
        again = arose.passages(TEXTS, against=against, min=10)
        assert rows(again.items) == found
    # The text column of the reference has another name than that of the rows.
    table = pa.table({"review": TEXTS, "text": ["x"] * 6})
    again = arose.passages(table, against=pa.table({"text": items}), text_field="review", min=10)
    assert rows(again.items) == found
    of_files = arose.passages(TEXTS, against=path, min=10)
    assert [row["covered"] for row in rows(of_files.items)] == [20, 0]
    in_files = arose.passages(files=[path], against=[SHARED], min=10)
    assert [row["doc"] for row in rows(in_files.matches)] == [0]
    with pytest.raises(arose.InputError, match="the reference `against` contains no text"):
        arose.passages(TEXTS, against=[None])


def test_issue_30_passages_into_a_directory(tmp_path):
    out = tmp_path / "out"
    table = pa.table({"n": range(6), "text": TEXTS})
    found = arose.passages(table, out, name="lines", min=10, remove="later")
    kept = pq.read_table(found.kept).to_pydict()
    assert kept["n"] == [0, 1, 2, 3, 4]
    stored = pq.read_table(out / "documents.parquet").to_pylist()
    assert [row["id"] for row in stored] == [f"lines#{i}" for i in (0, 2, 3, 4, 5)]
    assert all(os.path.exists(row["source"]) for row in stored)
    assert found.texts()[2] == "second stop"
    assert repr(found) == (
        "<arose.Passages: 6 rows, 1 repeated passage, 88.2% of the text repeated, 58.8% removed>"
    )
    assert "<html" in found.report(tmp_path / "report.html")
    with pytest.raises(arose.AroseError, match="already contains a run.*force=True"):
        arose.passages(table, out, name="lines", min=10, remove="later")
    again = arose.passages(table, out, name="lines", min=10, force=True)
    with pytest.raises(arose.AroseError, match="pass remove="):
        again.texts()
    copy = pickle.loads(pickle.dumps(arose.passages(TEXTS, min=10, remove="all")))
    assert rows(copy.documents)[0]["removed"] == 20
    with pytest.raises(arose.AroseError, match="gone"):
        copy.texts()
    pages = pa.table({"html": ["<p>a rose is a rose"]})
    assert arose.passages(pages, min=3).summary["counts"]["read"] == 1
    with pytest.raises(arose.InputError, match="'html' contains web pages.*arose.extract"):
        arose.passages(pages, min=3, remove="all")


def test_issue_30_passages_of_nothing():
    for data in [[], [None, None], [""]]:
        found = arose.passages(data, remove="later")
        assert len(found.documents) == len(data)
        assert found.texts() == data
