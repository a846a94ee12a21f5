"""Texts, tables and datasets in memory: every kind of input gives the same rows."""

import json
import os
import pickle
import subprocess
import sys

import numpy
import pandas
import polars
import pyarrow as pa
import pytest

import arose

ROSE = "a rose is a rose is a rose, whatever else it may be called by anyone today"
TEXTS = [ROSE, None, ROSE.replace(" ", "  "), "another text altogether", ROSE + " or tomorrow", ""]
KEPT = [True, True, False, True, False, True]
OPTIONS = {"threshold": 0.7, "w": 2}


def kinds():
    """The same rows in every kind of object."""
    yield "list", TEXTS
    yield "tuple", tuple(TEXTS)
    yield "generator", (text for text in TEXTS)
    yield "numpy", numpy.array(TEXTS, dtype=object)
    yield "array", pa.array(TEXTS)
    yield "view", pa.array(TEXTS, pa.string_view())
    yield "chunked", pa.chunked_array([TEXTS[:2], TEXTS[2:]])
    yield "dictionary", pa.array(TEXTS).dictionary_encode()
    yield "table", pa.table({"n": range(6), "text": TEXTS})
    yield "batch", pa.record_batch({"text": pa.array(TEXTS)})
    yield "reader", pa.table({"text": TEXTS}).to_reader(max_chunksize=2)
    yield "pandas series", pandas.Series(TEXTS)
    yield "pandas strings", pandas.Series(TEXTS, dtype="string")
    yield "pandas categories", pandas.Series(TEXTS, dtype="category")
    yield "pandas frame", pandas.DataFrame({"text": TEXTS}, index=list("abcdef"))
    yield "polars series", polars.Series(TEXTS)
    yield "polars categories", polars.Series(TEXTS, dtype=polars.Categorical)
    yield "polars frame", polars.DataFrame({"text": TEXTS})
    yield "polars lazy", polars.LazyFrame({"text": TEXTS})


def rows(table):
    return table.to_pyarrow().to_pylist()


def test_issue_30_every_kind_of_input_gives_the_same_rows():
    expected = arose.dedup(texts=TEXTS, **OPTIONS)
    assert expected.mask.tolist() == KEPT
    documents = rows(expected.documents)
    assert [row["row"] for row in documents] == list(range(6))
    assert [row["id"] for row in documents] == [f"table#{i}" for i in range(6)]
    assert [row["kept_row"] for row in documents] == [None, None, 0, None, 0, None]
    for name, data in kinds():
        found = arose.dedup(data, **OPTIONS)
        assert rows(found.documents) == documents, name
        assert rows(found.pairs) == rows(expected.pairs), name


def test_issue_30_datasets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": TEXTS, "n": list(range(6))})
    found = arose.dedup(data, **OPTIONS)
    assert found.mask.tolist() == KEPT
    assert found.filter(data)["n"][:] == [0, 1, 3, 5]
    # The rows of a selection are its own.
    turned = data.select([5, 4, 3, 2, 1, 0])
    assert arose.dedup(turned, **OPTIONS).mask.tolist() == [True, True, True, False, True, False]
    stream = data.to_iterable_dataset()
    assert arose.dedup(stream, **OPTIONS).mask.tolist() == KEPT
    assert [row["n"] for row in found.filter(stream)] == [0, 1, 3, 5]
    with pytest.raises(TypeError, match="DatasetDict.*train"):
        arose.dedup(datasets.DatasetDict(train=data))


def test_issue_30_filter_keeps_index_and_columns():
    found = arose.dedup(TEXTS, **OPTIONS)
    assert found.filter(TEXTS) == [TEXTS[0], None, TEXTS[3], ""]
    assert found.filter(tuple(TEXTS)) == (TEXTS[0], None, TEXTS[3], "")
    frame = pandas.DataFrame({"text": TEXTS, "n": range(6)}, index=list("fedcba"))
    shuffled = frame.sample(frac=1, random_state=3)
    kept = arose.dedup(shuffled, **OPTIONS).filter(shuffled)
    assert list(kept.columns) == ["text", "n"]
    assert kept.equals(shuffled.loc[kept.index])
    assert len(kept) == 4 and {"e", "c", "a"} <= set(kept.index)
    table = polars.DataFrame({"text": TEXTS, "n": range(6)})
    assert found.filter(table)["n"].to_list() == [0, 1, 3, 5]
    assert found.filter(table.lazy()).collect()["n"].to_list() == [0, 1, 3, 5]
    arrow = pa.table({"text": TEXTS, "n": range(6)})
    assert found.filter(arrow)["n"].to_pylist() == [0, 1, 3, 5]
    assert found.filter_arrow(arrow).to_pyarrow()["n"].to_pylist() == [0, 1, 3, 5]
    assert list(found.filter(text for text in TEXTS)) == [TEXTS[0], None, TEXTS[3], ""]
    with pytest.raises(ValueError, match="2 rows, expected 6"):
        found.filter(["a", "b"])
    with pytest.raises(ValueError, match="2 rows, expected 6"):
        found.filter_arrow(arrow.slice(0, 2))


def test_issue_30_missing_columns_are_errors():
    frame = pandas.DataFrame({"review": ["good", "bad"], "stars": [5, 1]})
    with pytest.raises(arose.InputError, match=r'review \(string\), stars.*pass text_field="review"'):
        arose.dedup(frame)
    assert len(arose.dedup(frame, text_field="review").documents) == 2
    good = pa.table({"text": ["one", "two"], "rank": ["high", "low"], "n": [1, 2]})
    for options, said in [
        ({"text_field": "txet"}, 'text_field="txet": no such column.*text.*rank'),
        ({"id_field": "key"}, 'id_field="key": no such column'),
        ({"keep": "priority", "priority_field": "rnak"}, 'priority_field="rnak": no such column'),
        ({"keep": "priority", "priority_field": "rank"}, 'priority_field="rank" has type string'),
        ({"text_field": "n"}, 'column "n" of type int64, expected strings'),
    ]:
        with pytest.raises(arose.InputError, match=said):
            arose.dedup(good, **options)
    assert arose.dedup(good, keep="priority", priority_field="n").mask.all()
    with pytest.raises(arose.InputError, match="int64, expected strings"):
        arose.dedup(pa.array([1, 2]))


def test_issue_30_a_misspelt_field_of_a_file_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n')
    with pytest.raises(arose.InputError, match="text_field='txet'.*txet"):
        arose.dedup(path, text_field="txet")


def test_issue_30_other_columns_may_have_any_type():
    data = polars.DataFrame({
        "text": TEXTS,
        "kind": polars.Series(list("abcabc"), dtype=polars.Categorical),
        "level": polars.Series(list("xyxyxy"), dtype=polars.Enum(["x", "y"])),
        "nothing": polars.Series([None] * 6),
        "empty": polars.Series([{}] * 6, dtype=polars.Struct([])),
        "list": [[1], [2], [], [3], None, [4, 5]],
    })
    found = arose.dedup(data, **OPTIONS)
    assert found.mask.tolist() == KEPT
    assert found.filter(data)["kind"].to_list() == ["a", "b", "a", "c"]
    assert arose.dedup(data, text_field="kind").mask.tolist() == [True] * 3 + [False] * 3
    assert arose.dedup(data["level"]).mask.tolist() == [True, True] + [False] * 4
    objects = pandas.DataFrame({"text": TEXTS, "mixed": [1, "a", None, 2.5, [], {}]})
    assert arose.dedup(objects, **OPTIONS).mask.tolist() == KEPT
    arrow = pa.table({"text": TEXTS, "month": pa.array([None] * 6, pa.month_day_nano_interval())})
    assert arose.dedup(arrow, **OPTIONS).mask.tolist() == KEPT


def test_issue_30_an_output_is_not_overwritten(tmp_path):
    out = tmp_path / "out"
    found = arose.dedup(pa.table({"text": TEXTS, "n": range(6)}), out, name="reviews", **OPTIONS)
    assert rows(found.documents)[4]["id"] == "reviews#4"
    import pyarrow.parquet as pq

    stored = pq.read_table(out / "documents.parquet").to_pylist()
    assert [row["id"] for row in stored] == [f"reviews#{i}" for i in (0, 2, 3, 4, 5)]
    assert all(os.path.exists(row["source"]) for row in stored)
    kept = pq.read_table(found.kept).to_pydict()
    assert kept["n"] == [0, 1, 3, 5]
    assert "rose" in found.report()
    with pytest.raises(arose.AroseError, match="already contains a run.*force=True"):
        arose.dedup(TEXTS, out, name="reviews", **OPTIONS)
    with pytest.raises(arose.AroseError, match="reviews.*force=True"):
        arose.dedup(TEXTS, out, **OPTIONS)
    assert len(arose.dedup(["one"], out, force=True).documents) == 1


def test_an_index_has_the_name_of_a_table(tmp_path):
    arose.Index.create(tmp_path / "seen").close()
    options = {"against": tmp_path / "seen", "update_index": True}
    arose.dedup([ROSE], name="first", **options)
    again = arose.dedup([ROSE, "something else entirely"], name="second", **options)
    # An index calls documents by file and ID. The file should not be part of it here: it is gone.
    assert rows(again.documents)[0]["known_as"].endswith("/first.parquet#first#0")
    with arose.Index.open(tmp_path / "seen", read_only=True) as index:
        (match,) = index.query(ROSE)
        assert match.name.endswith("#first#0")


def test_issue_30_errors_name_the_parameter():
    for options, said in [
        ({"w": 0}, "w=0, expected a whole number of at least 1"),
        ({"cap": -1}, "cap=-1, expected a whole number"),
        ({"threads": 1.5}, "threads=1.5, expected a whole number"),
        ({"policy": "z"}, "policy='z', expected 'exact', .* or 'site-union'"),
        ({"keep": None, "policy": 3}, "policy=3, expected"),
        ({"threshold": 1.5}, "threshold=1.5, expected a number above 0, up to 1"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"drop_empty": "yes"}, "drop_empty='yes', expected True or False"),
        ({"text_field": 3}, "text_field=3, expected a string"),
        ({"progress": "yes"}, "progress='yes'"),
        ({"name": "a/b"}, "name='a/b'"),
    ]:
        with pytest.raises(arose.SettingError, match=said) as raised:
            arose.dedup(["one"], **options)
        assert "--" not in str(raised.value)
    found = arose.dedup(["one"], w=numpy.int64(3), threshold=numpy.float32(0.5), cap=numpy.uint8(9))
    assert found.summary["settings"]["w"] == 3
    with pytest.raises(TypeError, match="item 1 is int, expected str or None"):
        arose.dedup(["one", 2])
    with pytest.raises(TypeError, match="pass one of data, texts= and files="):
        arose.dedup()
    with pytest.raises(TypeError, match="a is int, expected str"):
        arose.compare(1, "b")


def test_issue_30_one_rule_tells_files_from_texts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    assert not arose.dedup(path).is_by_rows
    assert not arose.dedup([path]).is_by_rows
    assert not arose.dedup(files=[str(path)]).is_by_rows
    assert arose.dedup(texts=[str(path)]).is_by_rows
    with pytest.raises(TypeError, match="every string is the name of a file.*files="):
        arose.dedup([str(path)])
    with pytest.raises(TypeError, match="mixes paths and texts"):
        arose.dedup([path, "text"])
    with pytest.raises(TypeError, match="put it into a list"):
        arose.dedup(texts="one text")


def test_results_speak(tmp_path):
    found = arose.dedup(TEXTS, **OPTIONS)
    assert repr(found) == "<arose.Deduplicated: 6 rows, 4 kept, 1 exact and 1 near duplicate in 1 cluster>"
    assert "<table>" in found._repr_html_()
    cluster = rows(found.clusters)
    assert cluster == [{"cluster": 0, "kept_id": "table#0", "size": 3, "members": [0, 2, 4]}]
    again = pickle.loads(pickle.dumps(found))
    assert rows(again.documents) == rows(found.documents) and repr(again) == repr(found)
    shown = found.show_pair(0, 4)
    assert "{+or tomorrow+}" in str(shown) and "<mark>" in shown._repr_html_()
    assert found.report(tmp_path / "report.html").startswith("<!")
    with pytest.raises(ValueError, match="row 1 has no text"):
        found.show_pair(0, 1)
    with pytest.raises(arose.AroseError, match="gone"):
        again.show_pair(0, 4)


def test_progress_ends_at_its_totals():
    calls = []
    arose.dedup([f"text number {i}" for i in range(5000)], progress=lambda *call: calls.append(call))
    stage, done, total = calls[-1]
    assert done == total and total is not None


def test_an_index_in_batches(tmp_path):
    with arose.Index.create(tmp_path / "seen") as index:
        index.add([f"d{i}" for i in range(300)], [f"{ROSE} number {i} {i * i}" for i in range(300)])
        assert len(index) == 300 and list(index)[:2] == ["d0", "d1"]
        found = index.query_many([f"{ROSE} number 7 49", "nothing like it"])
        assert "d7" in [match.name for match in found[0]] and found[1] == []
        with pytest.raises(arose.AroseError, match="this process has .* open for writing already"):
            arose.Index.open(tmp_path / "seen")
        with pytest.raises(ValueError, match="1 names for 2 texts"):
            index.add(["a"], ["b", "c"])
    with arose.Index.open(tmp_path / "seen", read_only=True) as reader:
        assert len(reader) == 300
        with pytest.raises(arose.AroseError, match="reading only"):
            reader.insert("x", "y")


def test_the_wheel_brings_the_command(tmp_path):
    command = [sys.executable, "-m", "arose"]
    ran = subprocess.run([*command, "compare", "--help"], capture_output=True, text=True)
    assert ran.returncode == 0 and "Usage: arose compare" in ran.stdout
    ran = subprocess.run([*command, "read", "nothing.jsonl"], capture_output=True, text=True)
    assert ran.returncode == 2 and "nothing.jsonl" in ran.stderr
    script = os.path.join(os.path.dirname(sys.executable), "arose")
    ran = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert ran.stdout == f"arose {arose.__version__}\n"


def test_the_tutorial_runs(monkeypatch):
    root = os.path.join(os.path.dirname(__file__), "..", "..", "..")
    monkeypatch.chdir(root)
    with open("examples/tutorial.ipynb") as file:
        cells = json.load(file)["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert len(names["kept"]) == 247
    assert names["again"].summary["counts"]["kept"] == names["again"].summary["counts"]["empty"]
