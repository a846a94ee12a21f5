"""Tests that errors in settings use the names of Python."""

import json
import re

import pyarrow as pa
import pytest

import arose

TEXTS = ["a rose is a rose", "a tulip"]
#: A flag of the command line, or words of its parser or of the library of settings.
FOREIGN = re.compile(r"(^|\s)--?[a-z]|unknown variant|nonzero|Can't extract|expected one of|`arose ")


def test_foreign_words_are_found():
    for words in ["pass --min", "-o", "unknown variant `x`", "create one with `arose index create`"]:
        assert FOREIGN.search(words)
    assert not FOREIGN.search("min=0, expected a whole number of at least 1")


def mistakes(tmp_path):
    """Calls with a wrong setting, and the text that the message must contain."""
    out = tmp_path / "out"
    index = tmp_path / "index"
    arose.Index.create(index).close()
    jsonl = tmp_path / "a.jsonl"
    jsonl.write_text('{"text": "one"}\n')
    dedup = [
        ({"policy": "near"}, "policy='near'"),
        ({"policy": ""}, "policy=''"),
        ({"threshold": 0}, "threshold=0"),
        ({"threshold": 2}, "threshold=2"),
        ({"threshold": True}, "threshold=True"),
        ({"threshold": 0.1}, "threshold"),
        ({"threshold": 0.5, "recall": 1}, "recall"),
        ({"recall": -1}, "recall=-1"),
        ({"policy": "b", "threshold": 0.5}, "threshold has no effect with policy='b'"),
        ({"policy": "b", "recall": 0.5}, "recall has no effect"),
        ({"policy": "exact", "w": 3}, "w has no effect"),
        ({"policy": "exact", "cjk_w": 3}, "cjk_w has no effect"),
        ({"policy": "exact", "verify": "sketch"}, "verify has no effect"),
        ({"policy": "exact", "short": "any"}, "short has no effect"),
        ({"policy": "exact", "cap": 3}, "cap has no effect"),
        ({"policy": "exact", "seed": 3}, "seed has no effect"),
        ({"policy": "url", "drop_empty": True}, "drop_empty has no effect"),
        ({"policy": "url", "exact": "bytes"}, "exact='bytes' cannot be combined with policy='url'"),
        ({"policy": "contained", "pairs": "all"}, "pairs='all' cannot be combined with policy='contained'"),
        ({"policy": "contained", "against": index}, "against cannot be combined with policy='contained'"),
        ({"exact": "bytes", "against": index}, "exact='bytes' cannot be combined with against"),
        ({"remove": "same", "policy": "jaccard"}, "remove has no effect"),
        ({"remove": "all", "policy": "content"}, "remove='all'"),
        ({"site_counts": "exact", "threshold": 0.8}, "site_counts has no effect"),
        ({"site": "registrable", "w": 5}, "site has no effect"),
        ({"site": "x", "policy": "site"}, "site='x'"),
        ({"w": 0}, "w=0"),
        ({"w": 2**70}, "w="),
        ({"cjk_w": "3"}, "cjk_w='3'"),
        ({"verify": "yes"}, "verify='yes'"),
        ({"verify": None}, "verify=None"),
        ({"keep": "best"}, "keep='best'"),
        ({"keep": "priority"}, "priority_field"),
        ({"keep": "priority", "priority_field": 3}, "priority_field=3"),
        ({"priority_field": "n"}, "priority_field has no effect without keep='priority'"),
        ({"time_field": "n"}, "time_field has no effect without keep='newest'"),
        ({"exact": "x"}, "exact='x'"),
        ({"drop_empty": 1}, "drop_empty=1"),
        ({"short": "x"}, "short='x'"),
        ({"cap": 0}, "cap=0"),
        ({"pairs": "x"}, "pairs='x'"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 2**64}, "seed="),
        ({"memory": "2GiB"}, "memory='2GiB', expected a number of bytes"),
        ({"against": 3}, "against=3"),
        ({"update_index": True}, "update_index=True has no effect without against"),
        ({"update_index": True, "against": index}, "name="),
        ({"dropped": "x"}, "dropped='x'"),
        ({"max_file_size": 0}, "max_file_size=0"),
        ({"max_file_size": 9, "ids_only": True}, "max_file_size"),
        ({"ids_only": "x"}, "ids_only='x'"),
        ({"quality": 3}, "quality=3"),
        ({"filter": 3}, "filter=3"),
        ({"filter": "gohper"}, "filter='gohper', expected 'gopher'"),
        ({"mode": "x"}, "mode='x'"),
        ({"text_field": 3}, "text_field=3"),
        ({"id_field": [3]}, "id_field=[3]"),
        ({"success": "x"}, "success='x'"),
        ({"include": 3}, "include=3"),
        ({"strict": 2}, "strict=2"),
        ({"threads": 0}, "threads=0"),
        ({"threads": 1_000_000}, "threads=1000000, expected a whole number of at most 1024"),
        ({"force": "x"}, "force='x'"),
        ({"progress": 3}, "progress=3"),
        ({"name": ""}, "name=''"),
        ({"output": 3}, "output=3"),
    ]
    for options, said in dedup:
        yield arose.dedup, (TEXTS,), options, said
    yield arose.dedup, (), {"files": jsonl, "output": out, "dropped": "revisit"}, "dropped='revisit' has no effect"
    passages = [
        ({"min": 0}, "min=0"),
        ({"min": 70_000}, "min=70000"),
        ({"unit": "word"}, "unit='word'"),
        ({"unit": "line", "min": 3}, "min has no effect with unit='line'"),
        ({"unit": "line", "tokens": "all"}, "tokens has no effect with unit='line'"),
        ({"unit": "line", "cut": "line", "remove": "all"}, "cut has no effect with unit='line'"),
        ({"span": 3}, "span has no effect with unit='token'"),
        ({"unit": "line", "span": 70_000}, "span=70000"),
        ({"min_unit": 3}, "min_unit has no effect with unit='token'"),
        ({"digits": "zero"}, "digits has no effect with unit='token'"),
        ({"digits": "x"}, "digits='x'"),
        ({"tokens": "x"}, "tokens='x'"),
        ({"times": 1}, "times=1"),
        ({"times": 2, "against": TEXTS}, "times has no effect with against"),
        ({"scope": "any", "against": TEXTS}, "scope has no effect with against"),
        ({"scope": "x"}, "scope='x'"),
        ({"list": -1}, "list=-1"),
        ({"common": 3}, "common has no effect without against"),
        ({"remove": "x"}, "remove='x'"),
        ({"remove": "spans"}, "remove='spans' requires against"),
        ({"remove": "later", "against": TEXTS}, "remove='later' has no effect with against"),
        ({"remove": "documents", "against": TEXTS, "seam": "x"}, "have no effect with remove='documents'"),
        ({"remove": "all", "whole_first": True}, "whole_first=True has no effect without remove='later'"),
        ({"whole_first": True}, "whole_first=True has no effect without remove"),
        ({"cut": "line"}, "cut has no effect without remove"),
        ({"seam": ""}, "seam has no effect without remove"),
        ({"seam": 3, "remove": "all"}, "seam=3"),
        ({"min_left": 3}, "min_left has no effect without remove"),
        ({"min_left": -3, "remove": "all"}, "min_left=-3"),
        ({"memory": 1.5}, "memory=1.5"),
        ({"name": "a/b"}, "name='a/b'"),
        ({"force": None}, "force=None"),
    ]
    for options, said in passages:
        yield arose.passages, (TEXTS,), options, said
    for options, said in [
        ({"policy": "b", "samples": 3}, "samples"),
        ({"samples": 0}, "samples=0"),
        ({"samples": 70_000}, "samples=70000"),
        ({"policy": "contained"}, "policy='contained'"),
        ({"policy": "url"}, "policy='url'"),
        ({"policy": "content"}, "policy='content'"),
        ({"w": 1.5}, "w=1.5"),
    ]:
        yield arose.Sketcher, (), options, said
        if "samples" not in options and options.get("policy") != "content":
            yield arose.Index.create, (tmp_path / "new",), options, said
    yield arose.Index.create, (tmp_path / "new",), {"w": 70_000}, "w"
    yield arose.Index.create, (tmp_path / "new",), {"threshold": 0.1}, "recall"
    yield arose.Sketcher().estimate, ([1], [2]), {}, "expected 128 samples"
    yield arose.Sketcher().estimate, ("a", [2]), {}, "a='a'"
    yield arose.compare, ("a", "b"), {"policy": "url"}, "policy='url'"
    yield arose.compare, ("a", "b"), {"site": "x"}, "site='x'"
    yield arose.compare, ("a", "b"), {"site": "same"}, "site has no effect with policy='content'"
    yield arose.compare, ("a", "b"), {"w": 0}, "w=0"
    yield arose.extract, ("a", "x"), {}, "mode='x'"
    yield arose.extract, ("a",), {"url": "::"}, "url"
    yield arose.extract, ("a",), {"url": 3}, "url=3"
    yield arose.promise, (), {"threshold": 0.1}, "threshold"
    yield arose.promise, (), {"policy": "c", "recall": 0.1}, "recall"
    yield arose.read, (jsonl,), {"mode": "x"}, "mode='x'"
    yield arose.read, (jsonl,), {"threads": "x"}, "threads='x'"
    results = tmp_path / "results"
    arose.dedup(jsonl, results)
    for options, said in [
        ({"limit": -1}, "limit=-1"),
        ({"offset": 1.5}, "offset=1.5"),
        ({"offset": 10**9}, "only the first"),
        ({"sort": "x"}, "sort='x'"),
        ({"collapse": 3}, "collapse=3"),
        ({"per_site": "x"}, "per_site='x'"),
        ({"index": 3}, "index=3"),
        ({"query": "("}, "query"),
    ]:
        yield arose.search, (results,), {"query": "one", **options}, said


def test_issue_30_every_wrong_setting_is_told_in_python(tmp_path):
    n = 0
    for call, arguments, options, said in mistakes(tmp_path):
        with pytest.raises(arose.SettingError) as raised:
            call(*arguments, **options)
        words = str(raised.value)
        assert said in words, (options, words)
        assert not FOREIGN.search(words), words
        n += 1
    assert n > 100


def test_issue_30_other_errors_are_told_in_python(tmp_path):
    jsonl = tmp_path / "a--force.jsonl"
    jsonl.write_text('{"text": "one"}\n')
    out = tmp_path / "out"
    arose.dedup(jsonl, out)
    arose.passages(jsonl, tmp_path / "passages")
    html = tmp_path / "a.html"
    html.write_text("<p>a rose")
    (tmp_path / "damaged.gz").write_bytes(b"\x1f\x8b\x08\x00oh")
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"text": null}\n')
    for call, arguments, options, said in [
        (arose.dedup, (jsonl, out), {"threshold": 0.7}, "force=True"),
        (arose.passages, (jsonl, tmp_path / "passages"), {"min": 7}, "force=True"),
        (arose.dedup, (tmp_path / "a--strict.jsonl",), {}, "a--strict.jsonl"),
        (arose.dedup, (tmp_path / "damaged.gz",), {"strict": True}, "strict=True"),
        (arose.dedup, (jsonl,), {"keep": "newest"}, "time_field"),
        (arose.dedup, (jsonl,), {"keep": "priority", "priority_field": "n"}, "priority_field"),
        (arose.passages, (html,), {"remove": "all"}, "arose.read"),
        (arose.passages, (jsonl,), {"against": empty}, "text_field"),
        (arose.Index.open, (tmp_path / "no",), {}, "arose.Index.create"),
        (arose.search, (tmp_path,), {"query": "x"}, "arose.dedup"),
        (arose.search, (tmp_path / "no",), {"query": "x"}, "no such directory"),
        (arose.crawl_status, (tmp_path,), {}, "no crawl"),
        (arose.crawl_statistics, (tmp_path,), {}, "crawl"),
    ]:
        with pytest.raises(arose.AroseError) as raised:
            call(*arguments, **options)
        words = str(raised.value)
        assert said in words, words
        assert not FOREIGN.search(words) and "os error" not in words, words
    with arose.Index.create(tmp_path / "index"):
        with pytest.raises(arose.AroseError, match="is already open for writing in this process"):
            arose.dedup(["a"], against=tmp_path / "index", update_index=True, name="x")


def test_issue_30_no_panic_reaches_python():
    """All errors of arose are caught by `except Exception`."""
    odd = [
        pa.table({"text": pa.array([None, None], pa.null())}),
        pa.table({"text": pa.array([b"a", b"b"])}),
        pa.table({"text": pa.array([["a"], []])}),
        pa.table({"text": pa.array([{"a": 1}, None])}),
        pa.table({"text": pa.array([1, 2]).dictionary_encode()}),
        pa.table({"text": pa.array(["a", "b"]), "u": pa.UnionArray.from_dense(
            pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])])}),
        pa.table({"text": pa.array(["a", "a"]), "r": pa.RunEndEncodedArray.from_arrays([2], [7])}),
        pa.table({"text": []}),
        pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]),
        pa.table({}),
        pa.array([{}, {}], pa.struct([])),
        pa.array([], pa.null()),
    ]
    for data in odd:
        for call in [arose.dedup, arose.passages, arose.read, lambda d: list(arose.Sketcher().stream(d))]:
            try:
                call(data)
            except Exception as error:
                assert isinstance(error, (arose.AroseError, TypeError, ValueError)), repr(error)
                assert "internal error" not in str(error), str(error)


def test_issue_30_types_and_names_are_those_of_python():
    columns = {
        "when": pa.array([1], pa.timestamp("us", "UTC")),
        "clock": pa.array([1], pa.time64("us")),
        "price": pa.array([None], pa.decimal128(10, 2)),
        "vector": pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2)),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        "key": pa.array([b"abc"], pa.binary(3)),
        "n": pa.array([1], pa.uint16()),
        "it's": pa.array(["a"]),
    }
    with pytest.raises(arose.InputError) as raised:
        arose.dedup(pa.table(columns))
    assert str(raised.value) == (
        "no text column: none of text, content, raw_content, body; columns found: when (timestamp), "
        "clock (time), price (decimal), vector (list), map (map), key (binary), n (uint16), "
        "it's (string); pass text_field=\"it's\""
    )
    for name in ["plain", "it's", 'both \' and "', "tab\tand\nline", "back\\slash", "Größe"]:
        with pytest.raises(arose.InputError) as raised:
            arose.dedup(pa.table({"text": ["a"]}), text_field=name)
        assert str(raised.value).startswith(f"text_field={name!r}: no such column")


def test_issue_30_errors_say_what_to_pass():
    import pandas

    with pytest.raises(TypeError, match="item 0 is bytes, expected str or None; decode the texts first"):
        arose.dedup([b"a"])
    frame = pandas.DataFrame({"text": ["a"], "n": [1]}, index=["x"])
    with pytest.raises(TypeError, match="got a table; pass one of its columns: text, n$"):
        arose.Sketcher().sketch(frame)


def test_settings_are_plain_json(tmp_path):
    """All values passed to the compiled part can be sent to another process."""
    found = arose.dedup(TEXTS, tmp_path / "out")
    json.dumps(found.summary)


def test_issue_30_odd_types_of_polars_are_no_panic():
    import polars

    odd = [
        polars.Series(["a", "b"], dtype=polars.Categorical),
        polars.Series(["a", "b"], dtype=polars.Enum(["a", "b"])),
        polars.Series([None, None]),
        polars.Series([{}, {}], dtype=polars.Struct([])),
        polars.DataFrame({"text": ["a", "b"], "kind": polars.Series(["x", "y"], dtype=polars.Categorical)}),
    ]
    found = arose.dedup(["a", "b"])
    with arose.Index.create(pytest.importorskip("tempfile").mkdtemp() + "/i") as index:
        for data in odd:
            for call in [arose.Sketcher().sketch, index.query_many, found.filter_arrow, found.filter]:
                try:
                    call(data)
                except Exception as error:
                    assert not str(error).startswith("internal error"), error


def test_issue_30_missing_libraries_are_named():
    """Each program lacks one library; `None` in `sys.modules` makes its import fail."""
    import subprocess
    import sys

    for missing, program, said in [
        ("pyarrow", "import pandas; arose.dedup(pandas.DataFrame({'text': ['a']}))", "arose[pandas]"),
        ("pandas", "arose.dedup(['a']).documents.to_pandas()", "arose[pandas]"),
        ("pyarrow", "arose.dedup(['a']).documents.to_pandas()", "arose[pandas]"),
        ("pyarrow", "arose.dedup(['a']).documents.to_pyarrow()", "pip install pyarrow"),
        ("polars", "arose.dedup(['a']).documents.to_polars()", "pip install polars"),
        ("pyspark", "import arose.spark; arose.spark.session()", "arose[spark]"),
    ]:
        code = f"import sys; sys.modules[{missing!r}] = None\nimport arose\n{program}"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        last = ran.stderr.strip().splitlines()[-1]
        assert ran.returncode == 1 and last.startswith("ImportError: "), ran.stderr
        assert missing in last and said in last and "not installed" in last
    # Results are available without NumPy and pyarrow.
    code = "import sys; sys.modules['numpy'] = sys.modules['pyarrow'] = None\nimport arose\n"
    code += "found = arose.dedup(['a b', 'a  b']); print(found.mask, found.filter(['a b', 'a  b']), found._repr_html_() != '')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "[True, False] ['a b'] True\n", ran.stderr
