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


class AnyStream:
    """Knows nothing but the Arrow C stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def kinds():
    """The same rows in every kind of object."""
    yield "any stream", AnyStream(pa.table({"n": range(6), "text": TEXTS}))
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
    yield "pandas array", pandas.Series(TEXTS, dtype="string").array
    yield "pandas index", pandas.Index(TEXTS)
    yield "pandas frame of categories", pandas.DataFrame({"text": TEXTS}).astype("category")
    yield "numpy strings", numpy.array(TEXTS, dtype=numpy.dtypes.StringDType(na_object=None))
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
    # A column, and a stream whose columns are not known beforehand.
    assert arose.dedup(data["text"], **OPTIONS).mask.tolist() == KEPT
    assert found.filter(data["text"]) == [TEXTS[0], None, TEXTS[3], ""]
    rows = [{"text": text, "n": n} for n, text in enumerate(TEXTS)]
    stream = datasets.IterableDataset.from_generator(lambda: iter(rows))
    assert arose.dedup(stream, **OPTIONS).mask.tolist() == KEPT
    assert [row["n"] for row in found.filter(stream)] == [0, 1, 3, 5]
    assert len(arose.Sketcher().stream(stream).read_all()) == 6
    with pytest.raises(arose.InputError, match="no text column.*columns found: words"):
        arose.dedup(datasets.IterableDataset.from_generator(lambda: iter([{"words": "a"}])))
    with pytest.raises(TypeError, match="DatasetDict.*train"):
        arose.dedup(datasets.DatasetDict(train=data))


def test_issue_30_rows_of_several_row_groups_stay_in_order():
    """With and without rows that are no documents."""
    n = 70_000
    texts = [f"row number {i} says {i * i}" for i in range(n)]
    texts[40_001] = texts[40_000]
    for missing in [[], range(0, n, 7), range(n - 5, n)]:
        rows = [*texts]
        for row in missing:
            rows[row] = None
        found = arose.dedup(rows)
        documents = found.documents.to_pyarrow()
        assert documents["row"].to_pylist() == list(range(n))
        assert documents["id"].to_pylist() == [f"table#{row}" for row in range(n)]
        assert [row for row, is_kept in enumerate(found.mask) if not is_kept] == [40_001]
        assert documents["kept_row"][40_001].as_py() == 40_000
        assert documents["n_tokens"].null_count == len(missing)
        assert found.pairs.to_pyarrow().select(["a", "b"]).to_pylist() == [{"a": 40_000, "b": 40_001}]


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


def test_issue_30_a_mask_belongs_to_the_caller():
    found = arose.dedup(TEXTS, **OPTIONS)
    mask = found.mask
    mask &= numpy.arange(6) > 0
    mask[3] = False
    assert mask.tolist() == [False, True, False, False, False, True]
    assert found.mask.tolist() == KEPT


def test_issue_30_missing_columns_are_errors():
    frame = pandas.DataFrame({"review": ["good", "bad"], "stars": [5, 1]})
    with pytest.raises(arose.InputError, match=r"review \(string\), stars.*pass text_field='review'"):
        arose.dedup(frame)
    assert len(arose.dedup(frame, text_field="review").documents) == 2
    good = pa.table({"text": ["one", "two"], "rank": ["high", "low"], "n": [1, 2]})
    for options, said in [
        ({"text_field": "txet"}, "text_field='txet': no such column.*text.*rank"),
        ({"id_field": "key"}, "id_field='key': no such column"),
        ({"keep": "priority", "priority_field": "rnak"}, "priority_field='rnak': no such column"),
        ({"keep": "priority", "priority_field": "rank"}, "priority_field='rank' has type string"),
        ({"text_field": "n"}, "column 'n' of type int64, expected strings"),
    ]:
        with pytest.raises(arose.InputError, match=said):
            arose.dedup(good, **options)
    assert arose.dedup(good, keep="priority", priority_field="n").mask.all()
    with pytest.raises(arose.InputError, match="int64, expected strings"):
        arose.dedup(pa.array([1, 2]))


def test_issue_30_a_column_of_mixed_types_is_named(tmp_path):
    frame = pandas.DataFrame({"text": ["a", None, 1, 2.5]}, dtype=object)
    with pytest.raises(arose.InputError, match="column 'text' has values of .* str and, in row 2, int"):
        arose.dedup(frame)
    frame = pandas.DataFrame({"text": ["a", "b"], "mixed": [1, "x"]})
    assert len(arose.dedup(frame).documents) == 2
    with pytest.raises(arose.InputError, match="column 'mixed' has values of .* int and, in row 1, str"):
        arose.dedup(frame, tmp_path / "out")


def test_issue_30_a_column_is_not_taken_for_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for data in [
        pandas.DataFrame({"review": ["a"]}),
        polars.DataFrame({"review": ["a"]}),
        polars.LazyFrame({"review": ["a"]}),
        pa.table({"review": ["a"]}),
    ]:
        for call in [arose.dedup, arose.passages]:
            with pytest.raises(arose.InputError, match="output='review' is a column; pass text_field="):
                call(data, "review")
            assert list(tmp_path.iterdir()) == []
    assert len(arose.dedup(data, "./review", text_field="review").documents) == 1
    assert (tmp_path / "review" / "summary.json").exists()


def test_issue_30_a_column_without_any_value_is_one_of_missing_texts(tmp_path):
    """pandas takes it for numbers, for instance where a part of a CSV file has no texts."""
    for frame in [
        pandas.DataFrame({"text": [numpy.nan, numpy.nan], "n": [1.5, numpy.nan]}),
        pandas.DataFrame({"text": []}),
    ]:
        found = arose.dedup(frame)
        assert found.mask.tolist() == [True] * len(frame) and found.summary["counts"]["read"] == 0
        assert found.filter(frame).equals(frame)
        assert arose.dedup(frame.rename(columns={"text": "x"}), text_field="x").mask.all()
        arose.dedup(frame, tmp_path / f"out{len(frame)}")
    with pytest.raises(arose.InputError, match="column 'text' of type float64, expected strings"):
        arose.dedup(pandas.DataFrame({"text": [1.5, numpy.nan]}))


def test_issue_30_texts_have_no_columns():
    for data in [["a", "b"], iter(["a", "b"]), pa.array(["a", "b"]), numpy.array(["a", "b"])]:
        for options in [
            {"text_field": "review"},
            {"id_field": "key"},
            {"url_field": "link"},
            {"keep": "priority", "priority_field": "n"},
            {"keep": "newest", "time_field": "when"},
        ]:
            name = [name for name in options if name.endswith("field")][0]
            with pytest.raises(arose.InputError, match=f"{name}='{options[name]}': texts have no columns"):
                arose.dedup(data, **options)
    assert len(arose.passages(pa.table({"review": TEXTS}), against=[ROSE], text_field="review").items) == 1


def test_issue_30_what_is_no_data_is_named():
    for data in [polars.col("text"), pandas.DataFrame({"text": ["a"]}).groupby("text"), 3, object()]:
        with pytest.raises(TypeError, match=f"expected texts, a table or paths, got {type(data).__name__}"):
            arose.dedup(data)


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


def arrow_types():
    """An array of six values of every type that pyarrow can make."""
    numbers = list(range(6))
    for kind in [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
                 pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.time32("s"), pa.time32("ms"),
                 pa.time64("us"), pa.time64("ns"), pa.duration("s"), pa.duration("ns"), pa.timestamp("s"),
                 pa.timestamp("ns", "Europe/Vienna"), pa.decimal32(5), pa.decimal64(9), pa.decimal128(20, 2),
                 pa.decimal256(50, 2)]:
        yield pa.array([*numbers[:5], None], kind)
    yield pa.array([86_400_000] * 6, pa.date64())
    yield pa.array([True, None] * 3)
    yield pa.nulls(6)
    for kind in [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
                 pa.binary(1)]:
        yield pa.array(["a", None] * 3, kind)
    for kind in [pa.list_(pa.int8()), pa.large_list(pa.string_view()), pa.list_(pa.int8(), 0), pa.list_view(pa.int8()),
                 pa.large_list_view(pa.binary())]:
        yield pa.array([[], None] * 3, kind)
    yield pa.array([{"a": 1, "b": [{}]}, None] * 3)
    yield pa.array([{}, None] * 3, pa.struct([]))
    yield pa.array([[("a", 1)], None] * 3, pa.map_(pa.string(), pa.int8()))
    yield pa.array([(1, 2, 3), None] * 3, pa.month_day_nano_interval())
    yield pa.array(["a", None] * 3).dictionary_encode()
    yield pa.DictionaryArray.from_arrays(pa.array([0, 1] * 3, pa.uint8()), pa.array([[1], []]))
    yield pa.RunEndEncodedArray.from_arrays(pa.array([4, 6], pa.int16()), pa.array(["a", None]))
    kinds, offsets = pa.array([0, 1] * 3, pa.int8()), pa.array([0, 0, 1, 1, 2, 2], pa.int32())
    yield pa.UnionArray.from_dense(kinds, offsets, [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    yield pa.UnionArray.from_sparse(kinds, [pa.array(numbers), pa.array(list("abcdef"))])
    yield pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 6, pa.binary(16)))


def test_issue_30_every_arrow_type_passes_through():
    for column in arrow_types():
        table = pa.table({"before": column, "text": TEXTS, "after": column})
        for data in [table, AnyStream(table)]:
            found = arose.dedup(data, **OPTIONS)
            assert found.mask.tolist() == KEPT, column.type
        assert found.filter(table).num_rows == 4
        assert found.filter_arrow(table).to_pyarrow()["after"].equals(found.filter(table)["after"]), column.type


def test_issue_30_an_output_holds_every_type_or_names_the_column(tmp_path):
    refused = set()
    for number, column in enumerate(arrow_types()):
        table = pa.table({"text": TEXTS, "other": column})
        try:
            found = arose.dedup(table, tmp_path / f"{number}", **OPTIONS)
        except arose.InputError as error:
            assert str(error).startswith("column 'other' has type "), error
            assert "leave out `output`, or drop the column" in str(error)
            refused.add(str(error).split()[4].strip(","))
        else:
            import pyarrow.parquet as pq

            kept, expected = pq.read_table(found.kept)["other"], found.filter(table)["other"]
            # A column of runs has no null count of its own.
            nulls = [[value is None for value in values.to_pylist()] for values in (kept, expected)]
            assert nulls[0] == nulls[1], column.type
    assert refused == {"struct", "interval", "union"}


def test_issue_30_filter_takes_what_pyarrow_cannot_filter():
    found = arose.dedup(["a", "a", "b"])
    for kind in [pa.string_view(), pa.binary_view()]:
        array = pa.array(["a", None, "b"], kind)
        chunked = pa.chunked_array([array[:2], array[2:]])
        for data in [array, chunked]:
            kept = found.filter(data)
            assert type(kept) is type(data) and kept.to_pylist() == [array[0].as_py(), array[2].as_py()]
        batch = pa.record_batch({"v": array})
        kept = found.filter(batch)
        assert type(kept) is pa.RecordBatch and kept.num_rows == 2


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
    # A finished run of files is not replaced by a table.
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n')
    arose.dedup(path, tmp_path / "files")
    before = (tmp_path / "files" / "summary.json").read_bytes()
    with pytest.raises(arose.AroseError, match="force=True"):
        arose.dedup(TEXTS, tmp_path / "files")
    assert (tmp_path / "files" / "summary.json").read_bytes() == before


def test_issue_30_an_index_has_the_ids_of_tables(tmp_path):
    arose.Index.create(tmp_path / "seen").close()
    options = {"against": tmp_path / "seen", "update_index": True}
    with pytest.raises(arose.SettingError, match="no ID column; pass name="):
        arose.dedup([ROSE], **options)
    arose.dedup([ROSE], name="first", **options)
    again = arose.dedup([ROSE, "something else entirely"], tmp_path / "out", name="second", **options)
    assert rows(again.documents)[0]["known_as"] == "first#0"
    import pyarrow.parquet as pq

    stored = pq.read_table(tmp_path / "out" / "documents.parquet").to_pylist()
    assert [(row["id"], row["known_as"]) for row in stored] == [("second#0", "first#0"), ("second#1", None)]
    named = pa.table({"id": ["x", None], "text": ["yet another text", "and one more of them"]})
    arose.dedup(named, name="third", **options)
    with arose.Index.open(tmp_path / "seen", read_only=True) as index:
        (match,) = index.query(ROSE)
        assert match.name == "first#0"
        assert list(index) == ["first#0", "second#1", "x", "third#1"]


def test_issue_30_ids_name_no_temporary_file(tmp_path):
    table = pa.table({"key": [7, None, 9], "text": ["one", "two", None], "tags": [[], [], []]})
    found = arose.dedup(table, tmp_path / "out", id_field="key", name="t")
    assert [row["id"] for row in rows(found.documents)] == ["7", "t#1", "9"]
    assert [row["id"] for row in rows(arose.dedup(table, id_field="key").documents)] == ["7", "table#1", "9"]
    import pyarrow.parquet as pq

    stored = pq.read_table(tmp_path / "out" / "documents.parquet")
    assert stored["id"].to_pylist() == ["7", "t#1"]
    kept = pq.read_table(found.kept)
    assert kept["arose_id"].to_pylist() == ["7", "t#1", "9"]
    # What was kept has the same IDs when it goes in again.
    again = arose.dedup(kept.drop_columns(["key"]), name="u")
    assert [row["id"] for row in rows(again.documents)] == ["7", "t#1", "9"]
    with pytest.raises(arose.InputError, match="id_field='tags' has type list"):
        arose.dedup(table, id_field="tags")
    # A column that is called as IDs are, and holds none.
    odd = pa.table({"id": [[1], [2]], "text": ["one", "two"]})
    assert [row["id"] for row in rows(arose.dedup(odd).documents)] == ["table#0", "table#1"]


def test_issue_30_batches_that_differ_are_told(tmp_path):
    class Changing:
        def __init__(self):
            self.column_names = None

        def iter(self, batch_size):
            return iter([{"text": ["a"], "n": [1]}, {"text": ["b"], "n": ["c"]}])

    Changing.__module__ = "datasets.test"
    assert arose.dedup(Changing()).mask.tolist() == [True, True]
    with pytest.raises(arose.InputError, match="column 'n' has type int64 in one batch and string in another"):
        arose.dedup(Changing(), tmp_path / "out")


def test_issue_30_missing_values_of_every_library():
    texts = ["one text", None, float("nan"), numpy.nan, pandas.NA, pandas.NaT, numpy.str_("another")]
    assert arose.dedup(texts).summary["counts"]["read"] == 2
    assert arose.dedup(pandas.Series(texts, dtype=object)).summary["counts"]["read"] == 2
    with pytest.raises(TypeError, match="item 9000 is int, expected str or None"):
        arose.dedup(["text"] * 9000 + [2])
    with pytest.raises(arose.InputError, match="item 1 is not valid Unicode"):
        arose.dedup(["one", "\ud800"])
    assert arose.dedup(numpy.array(["a b", "a b"])).mask.tolist() == [True, False]


def test_issue_30_policies_are_those_of_the_command(tmp_path):
    long = " ".join(f"word{i}" for i in range(200))
    part = " ".join(f"word{i}" for i in range(50, 150))
    assert arose.dedup([long, part], policy="contained").mask.tolist() == [True, False]
    assert arose.dedup([long, part], policy="contained", threshold=1.0, w=3).mask.tolist() == [True, False]
    pages = pa.table({"url": ["http://a.org/x", "http://A.org:80/x", "http://b.org/"], "text": list("abc")})
    assert arose.dedup(pages, policy="url").mask.tolist() == [True, False, True]
    with pytest.raises(arose.InputError, match="policy='url' needs a column with URLs"):
        arose.dedup(["a", "b"], policy="url")
    site = [f"menu home about contact news {i} " + " ".join(f"own{i}x{j}" for j in range(30)) for i in range(6)]
    urls = [f"http://site.org/{i}" for i in range(7)]
    table = pa.table({"url": urls, "text": [*site, site[0]]})
    for remove in ["same", "content"]:
        found = arose.dedup(table, policy="content", remove=remove, site_counts="sampled")
        assert found.mask.tolist() == [True] * 6 + [False]
        assert found.summary["settings"]["remove"] == remove
    script = [sys.executable, "-m", "arose", "dedup", "--help"]
    words = subprocess.run(script, capture_output=True, text=True).stdout
    offered = words.split("--policy <POLICY>")[1].split("possible values: ")[1].split("]")[0]
    assert sorted(offered.replace(",", " ").split()) == sorted(arose._settings.POLICIES)


def test_issue_30_options_are_those_of_the_command():
    import inspect
    import re

    import arose.spark

    command = [sys.executable, "-m", "arose", "dedup", "--help"]
    words = subprocess.run(command, capture_output=True, text=True).stdout
    flags = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", words, re.MULTILINE))
    names = {"shingle": "w", "cjk-shingle": "cjk_w"}
    # What a program has by other means.
    shown = {"dry-run", "json", "verbose", "quiet", "color", "no-config", "help"}
    assert len(flags) > 30 and shown <= flags
    own = {names.get(flag, flag.replace("-", "_")) for flag in flags - shown}
    parameters = set(inspect.signature(arose.dedup).parameters)
    assert own <= parameters, own - parameters
    assert parameters - own == {"data", "texts", "files", "name"}
    # The command on Spark has the same flags, and those of its own.
    actions = arose.spark.arguments()._actions
    there = {flag.removeprefix("--") for a in actions for flag in a.option_strings if flag.startswith("--")}
    assert there - flags == {"tables-only", "partitions", "gather", "master", "conf", "remote"}


def test_issue_30_quality_is_measured_and_filters():
    good = " ".join(f"The word{i} of that kind is to be with word{i * 7 % 97}." for i in range(20))
    texts = [good, "short", None, good + " And more of that.", "# # # #"]
    found = arose.dedup(texts, quality=True)
    assert found.mask.tolist() == [True, True, True, False, True]
    columns = found.documents.to_pyarrow()
    assert columns["gopher_words"].to_pylist()[1:3] == [1.0, None]
    for rules in ["gopher_words", ["gopher_words", "c4_lorem_ipsum"]]:
        found = arose.dedup(texts, filter=rules)
        assert found.mask.tolist() == [True, False, True, False, False]
        assert found.documents.to_pyarrow()["rule"].to_pylist()[1] == "filter"
        assert "5 rows, 2 kept, 0 exact and 1 near duplicate in 1 cluster, 2 filtered out" in repr(found)


def test_issue_30_superseded_versions_are_dropped(tmp_path):
    import pyarrow as pa

    rows = [("a", 1), ("b", 2), ("a", 3), ("c", 1), ("a", 2)]
    columns = {
        "text": [f"words of page {url} on day {day} and nothing else" for url, day in rows],
        "url": [f"http://site.example/{url}" for url, _ in rows],
        "seen": [f"2026-01-0{day}T00:00:00Z" for _, day in rows],
    }
    table = pa.table(columns)
    options = {"policy": "exact", "versions": "current", "time_field": "seen"}
    found = arose.dedup(table, **options)
    assert found.mask.tolist() == [False, True, True, True, False]
    assert found.documents.to_pyarrow()["rule"].to_pylist()[0] == "superseded"
    assert "2 superseded by a later version" in repr(found)
    lines = [dict(zip(columns, values)) for values in zip(*columns.values())]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert arose.dedup(tmp_path / "a.jsonl", **options).mask.tolist() == found.mask.tolist()
    for data in [columns["text"], table.drop_columns("url"), table.drop_columns("seen")]:
        with pytest.raises(arose.InputError, match="versions='current' needs columns with URLs and"):
            arose.dedup(data, versions="current")


def test_issue_30_files_of_a_run_can_be_split(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "document number {i}"}}\n' for i in range(100)))
    found = arose.dedup(path, tmp_path / "split", max_file_size=1000)
    assert found.kept.is_dir() and len(list(found.kept.iterdir())) > 2
    found = arose.dedup(path, tmp_path / "ids", ids_only=True)
    assert found.kept.name == "kept.ids.jsonl"


def test_issue_30_errors_name_the_parameter():
    for options, said in [
        ({"w": 0}, "w=0, expected a whole number of at least 1"),
        ({"cap": -1}, "cap=-1, expected a whole number"),
        ({"threads": 1.5}, "threads=1.5, expected a whole number"),
        ({"policy": "z"}, "policy='z', expected 'exact', .* or 'url'"),
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
    with pytest.raises(TypeError, match="got dict; pass one value, or make a DataFrame"):
        arose.dedup({"text": TEXTS})
    with pytest.raises(TypeError, match="item 0 is dict, .*pass the text of each"):
        arose.dedup([{"text": "one"}])
    with pytest.raises(arose.InputError, match="no file or directory 'a rose is.*put texts into a list"):
        arose.dedup("a rose is a rose")
    assert repr(arose.dedup(["one"]).documents).startswith("<arose.Table of 1 row: row, id")
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
    page = found._repr_html_()
    assert "6 rows, 4 kept" in page and "Largest clusters" in page and "Sample pairs" in page
    assert page.count("<table>") == 2 and f"<td>table#0</td><td>3</td><td>{ROSE}</td>" in page
    assert f"<td>{ROSE}</td><td>{ROSE} or tomorrow</td>" in page
    cluster = rows(found.clusters)
    assert cluster == [{"cluster": 0, "kept_id": "table#0", "size": 3, "members": [0, 2, 4]}]
    marked = ["<b> & " * 50] * 2
    assert f"<td>{'&lt;b&gt; &amp; ' * 20}…</td>" in arose.dedup(marked)._repr_html_()
    shown = found.clusters._repr_html_()
    assert "arose.Table of 1 row: cluster, kept_id" in shown and "<td>[0, 2, 4]</td>" in shown
    assert found.documents["kept"].to_pylist() == KEPT
    for ask in [lambda: found.documents[0], lambda: list(found.documents)]:
        with pytest.raises(TypeError, match="expected the name of a column, got int; for rows, use to_pandas"):
            ask()
    with pytest.raises(TypeError, match="expected an Arrow table or stream, got list; call filter"):
        found.filter_arrow(TEXTS)
    with pytest.raises(KeyError, match="no column .*kpet.*; columns: row, id"):
        found.documents["kpet"]
    again = pickle.loads(pickle.dumps(found))
    assert again._repr_html_().count("<table>") == 2
    assert rows(again.documents) == rows(found.documents) and repr(again) == repr(found)
    shown = found.show_pair(0, 4)
    assert "{+or tomorrow+}" in str(shown) and "<mark>" in shown._repr_html_()
    assert found.report(tmp_path / "report.html").startswith("<!")
    assert str(found.show_pair(0, 2)) == "no differences except case, punctuation and whitespace"
    assert str(found.show_pair(0, 0)) == "no differences"
    with pytest.raises(TypeError, match="b is str, expected the number of a row"):
        found.show_pair(0, "1")
    with pytest.raises(IndexError, match="no row 9"):
        found.show_pair(0, 9)
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
        with pytest.raises(arose.AroseError, match="is already open for writing in this process"):
            arose.Index.open(tmp_path / "seen")
        with pytest.raises(ValueError, match="1 names for 2 texts"):
            index.add(["a"], ["b", "c"])
        with pytest.raises(TypeError, match="names: item 0 is int, expected str"):
            index.add([1], ["b"])
        with pytest.raises(TypeError, match="texts: item 0 is int, expected str"):
            index.query_many([1])
        assert repr(index) == "<arose.Index: 300 documents>"
        for call in [lambda: index.query(5), lambda: index.insert("a", 5), lambda: index.query_or_insert("a", 5)]:
            with pytest.raises(TypeError, match="text is int, expected str"):
                call()
        with pytest.raises(TypeError, match="name is int, expected str"):
            index.remove(5)
        with pytest.raises(TypeError, match="text is list, expected str; for many texts call query_many"):
            index.query([ROSE])
        with pytest.raises(TypeError, match="call arose.Index.create"):
            arose.Index(tmp_path / "seen")
    assert repr(index) == "<arose.Index: closed>"
    with arose.Index.open(tmp_path / "seen", read_only=True) as reader:
        assert len(reader) == 300
        with pytest.raises(arose.AroseError, match="reading only"):
            reader.insert("x", "y")


def test_issue_30_an_index_decides_by_every_policy(tmp_path):
    for policy in ["exact", "jaccard", "b", "c", "combined", "site", "site-union"]:
        with arose.Index.create(tmp_path / policy, policy=policy) as index:
            assert index.query_or_insert("rose", ROSE) == []
            (match,) = index.query(ROSE.replace(" ", "\n"))
            assert (match.name, match.rule) == ("rose", "exact")
            assert index.query("something else altogether, and much more of it") == []


def test_issue_30_another_process_is_named_only_if_there_is_one(tmp_path):
    program = (
        "import arose, sys\n"
        "with arose.Index.create(sys.argv[1]) as index: print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, tmp_path / "seen"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(arose.AroseError, match="another process is writing"):
            arose.Index.open(tmp_path / "seen")
        with arose.Index.open(tmp_path / "seen", read_only=True) as reader:
            assert len(reader) == 0
        other.stdin.close()
    index = arose.Index.open(tmp_path / "seen")
    with pytest.raises(arose.AroseError, match="already open for writing in this process"):
        arose.Index.open(tmp_path / "seen")
    index.close()
    arose.Index.open(tmp_path / "seen").close()


def test_issue_30_the_page_of_the_api_is_complete():
    import inspect
    import re

    page = open("docs/python.md").read()
    for name in set(arose.__all__) - {"__version__", "Comparison", "Deduplicated", "Difference", "Match",
                                      "Page", "Passages", "Reader", "SearchResults", "SketchReader"}:
        assert f"arose.{name}" in page, name
    for function in [arose.dedup, arose.passages, arose.search]:
        for parameter in inspect.signature(function).parameters:
            assert re.search(rf"\b{parameter}\b", page), (function.__name__, parameter)
    for kind in [arose.Deduplicated, arose.Passages]:
        for member in [name for name in dir(kind) if not name.startswith("_") and name != "is_by_rows"]:
            assert f"found.{member}" in page, member


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
    assert len(names["kept"]) == 244
    assert names["again"].summary["counts"]["kept"] == names["again"].summary["counts"]["empty"]
