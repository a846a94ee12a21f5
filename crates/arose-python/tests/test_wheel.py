"""Tests of the wheel against the command line and the library."""

import doctest
import gzip
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

import arose

WORDS = "a rose is a rose is a rose and by any other name it would smell as sweet".split()


def text(i, n=120):
    return " ".join(f"{WORDS[(i * 7 + j * j) % len(WORDS)]}{(i * j) % 97}" for j in range(n))


def rows(table):
    return table.to_pyarrow().to_pylist()


class TestCompare:
    def test_measures_are_those_of_the_library(self):
        found = arose.compare(
            "Once upon a midnight dreary, while I pondered", "Once upon a time, while I pondered", w=3
        )
        assert found.jaccard == 2 / 9
        assert found.containment == (1 / 3, 2 / 5)
        assert found.n_tokens == (8, 7)
        assert not found.is_duplicate

    def test_policies_decide(self):
        a, b = text(1), text(1) + " more"
        for policy in ["jaccard", "b", "c", "combined", "site"]:
            assert arose.compare(a, a.replace(" ", "\n"), policy=policy).rule == "exact"
        assert arose.compare(a, a.upper(), policy="jaccard").rule == "jaccard"
        assert arose.compare("C++", "C#").rule is None
        assert arose.compare(a, b, policy="jaccard").rule == "jaccard"
        assert arose.compare(a, b, policy="site", site="same").rule == "site-same"

    def test_settings_are_checked(self):
        with pytest.raises(arose.SettingError, match="threshold"):
            arose.compare("a", "b", threshold=1.5)
        with pytest.raises(arose.SettingError, match="policy='z', expected 'exact'"):
            arose.compare("a", "b", policy="z")
        with pytest.raises(arose.SettingError, match="threshold has no effect"):
            arose.compare("a", "b", policy="b", threshold=0.5)

    def test_empty_texts_have_no_measures(self):
        found = arose.compare("", "")
        assert found.jaccard is None and found.c_sim is None and found.rule is None


class TestExtract:
    PAGE = '<html lang=en><title>T</title><body><p>One <a href="/x?a=1">two</a>'

    def test_modes(self):
        assert arose.extract(self.PAGE, "plain").text == self.PAGE
        page = arose.extract(self.PAGE, "henzinger", url="http://example.org/y")
        assert page.title == "T" and page.language == "en"
        assert page.links == ["http://example.org/x?a=1"]

    def test_a_bad_address_is_named(self):
        with pytest.raises(arose.SettingError, match="no address"):
            arose.extract(self.PAGE, url="no address")


class TestRead:
    def test_batches_hold_the_documents_in_order(self, pages):
        table = pa.RecordBatchReader.from_stream(arose.read(pages)).read_all()
        lines = [json.loads(line) for line in open(pages)]
        assert table["id"].to_pylist() == [line["id"] for line in lines]
        assert table["text"].to_pylist() == [line["text"] for line in lines]

    def test_damage_is_told(self, tmp_path):
        path = tmp_path / "x.jsonl.gz"
        packed = gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(9999)))
        path.write_bytes(packed[: len(packed) // 2])
        reader = arose.read(path)
        n = sum(len(batch) for batch in reader)
        assert 0 < n < 9999
        assert sum(reader.skipped.values()) >= 1
        assert os.fspath(path) in reader.warnings[0]

    def test_losses_are_named_or_raised(self, tmp_path):
        good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl.gz"
        good.write_text('{"text": "one"}\n{"text": null}\n')
        packed = gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(9999)))
        bad.write_bytes(packed[: len(packed) // 2])
        reader = arose.read([good, bad])
        assert len(reader.read_all()) > 1
        assert [os.fspath(bad) in line for line in reader.incomplete_files] == [True]
        assert reader.skipped["null text"] == 1
        for read in [lambda r: r.read_all(), list, pa.RecordBatchReader.from_stream]:
            with pytest.raises((arose.InputLost, pa.ArrowException), match="the input is incomplete"):
                stream = read(arose.read([good, bad], strict=True))
                stream.read_all()
        assert len(arose.read(good, strict=True).read_all()) == 1
        assert issubclass(arose.InputLost, arose.InputError)
        found = arose.dedup([good, bad], tmp_path / "out")
        assert [file["reason"] for file in found.incomplete_files] == ["truncated"]
        with pytest.raises(arose.InputLost, match="1 file cannot be read.*strict=True"):
            arose.dedup([good, bad], tmp_path / "strict", strict=True)
        assert not list((tmp_path / "strict").glob("kept*"))

    def test_files_are_chosen(self, tmp_path):
        for name in ["a.txt", "b.py", ".c.txt"]:
            (tmp_path / name).write_text(name)
        reader = arose.read(tmp_path)
        assert len(reader.read_all()) == 1 and reader.unknown_files == {".py": 1}
        assert len(arose.read(tmp_path, include="*.py").read_all()) == 1
        assert len(arose.read(tmp_path, all_text=True).read_all()) == 2
        assert len(arose.read(tmp_path, all_text=True, exclude=["*.py"]).read_all()) == 1
        assert arose.dedup(tmp_path, all_text=True).summary["counts"]["read"] == 2

    def test_what_is_not_there_is_an_error(self):
        with pytest.raises(arose.InputError, match="no such file or directory: `nothing.jsonl`"):
            arose.read("nothing.jsonl")


class TestSketcher:
    TEXTS = [text(i) for i in range(40)] + ["", "one two", "自然言語処理は楽しい。" * 9]

    def all_ways(self):
        import pandas
        import polars

        table = pa.table({"text": self.TEXTS})
        yield "list", self.TEXTS
        yield "generator", iter(self.TEXTS)
        yield "array", pa.array(self.TEXTS)
        yield "slice", pa.array(["x", *self.TEXTS, "y"]).slice(1, len(self.TEXTS))
        yield "large", pa.array(self.TEXTS, pa.large_string())
        yield "view", pa.array(self.TEXTS, pa.string_view())
        yield "chunked", pa.chunked_array([self.TEXTS[:7], self.TEXTS[7:]])
        yield "column", table["text"]
        yield "polars", polars.Series(self.TEXTS)
        yield "pandas", pandas.Series(self.TEXTS, dtype="string[pyarrow]")

    def test_every_kind_of_array_gives_the_same(self):
        for policy in ["jaccard", "b", "c", "combined", "site"]:
            sketcher = arose.Sketcher(policy)
            expected = rows(sketcher.sketch(self.TEXTS))
            assert len(expected) == len(self.TEXTS)
            for name, texts in self.all_ways():
                assert rows(sketcher.sketch(texts)) == expected, (policy, name)

    def test_threads_do_not_matter(self):
        texts = [text(i, 400) for i in range(700)]
        one, many = (rows(arose.Sketcher(threads=n).sketch(texts)) for n in (1, 3))
        assert one == many

    def test_estimates_are_near_the_truth(self):
        a, b = text(3, 500), text(3, 400) + " " + text(5, 100)
        truth = arose.compare(a, b, w=5).jaccard
        sketcher = arose.Sketcher(samples=1024)
        one, other = (row["samples"] for row in rows(sketcher.sketch([a, b])))
        # Four standard errors with 1024 MinHash values.
        assert abs(sketcher.estimate(one, other) - truth) < 4 * (0.25 / 1024) ** 0.5

    def test_null_and_empty_have_no_sketch(self):
        found = rows(arose.Sketcher().sketch(pa.array([None, "", "one two three four five six"])))
        assert [row["samples"] is None for row in found] == [True, True, False]
        assert [row["n_tokens"] for row in found] == [0, 0, 6]

    def test_results_are_taken_without_a_copy(self):
        table = arose.Sketcher().sketch(self.TEXTS)
        one, other = (pa.table(table)["samples"].chunk(0).values.buffers()[1] for _ in range(2))
        assert one.address == other.address

    def test_what_is_no_text_is_refused(self):
        with pytest.raises(TypeError, match="array of strings"):
            arose.Sketcher().sketch(pa.array([1, 2]))
        with pytest.raises(TypeError, match="put it into a list"):
            arose.Sketcher().sketch("one text")
        with pytest.raises(arose.SettingError, match="jaccard only"):
            arose.Sketcher("b", samples=64)

    def test_other_threads_go_on(self):
        """The interpreter lock is released: a counter moves while a sketch is computed."""
        texts = [text(i % 50, 3000) for i in range(1500)]
        sketcher = arose.Sketcher(threads=1)
        counted, is_done = [0], threading.Event()

        def count():
            while not is_done.is_set():
                counted[0] += 1
                time.sleep(0)

        counter = threading.Thread(target=count)
        counter.start()
        while counted[0] == 0:
            time.sleep(0)
        before = counted[0]
        sketcher.sketch(texts)
        after = counted[0]
        is_done.set()
        counter.join()
        assert after - before > 100

    def test_a_forked_process_can_sketch(self):
        texts = [text(i, 400) for i in range(700)]
        sketcher = arose.Sketcher(threads=2)
        expected = rows(sketcher.sketch(texts))
        child = os.fork()
        if child == 0:
            os._exit(0 if rows(sketcher.sketch(texts)) == expected else 1)
        assert os.waitpid(child, 0)[1] == 0


class TestDedup:
    def test_tables_are_those_of_the_command_line(self, pages, tmp_path):
        found = arose.dedup(pages, tmp_path / "out")
        assert found.summary["counts"]["kept"] == 244
        assert found.documents.num_rows == 300
        assert found.pairs.num_rows == found.summary["counts"]["pairs"]
        assert found.kept == tmp_path / "out" / "kept.jsonl"
        assert sum(1 for _ in open(found.kept)) == 244
        assert (tmp_path / "out" / "report.html").exists()
        again = arose.dedup(pages, tmp_path / "out")
        assert rows(again.documents) == rows(found.documents)

    def test_tables_go_in_as_files_do(self, pages):
        from_file = arose.dedup(pages)
        lines = [json.loads(line) for line in open(pages)]
        table = pa.Table.from_pylist(lines)
        from_table = arose.dedup(table)
        columns = ["id", "digest", "cluster", "kept", "rule", "similarity"]
        one, other = (
            found.documents.to_pyarrow().select([number, *columns, kept]).rename_columns(
                ["number", *columns, "kept_number"]
            ).to_pylist()
            for found, number, kept in [
                (from_file, "doc", "kept_doc"), (from_table, "row", "kept_row")
            ]
        )
        assert one == other
        assert rows(from_file.pairs) == rows(from_table.pairs)
        no_ids = arose.dedup(table.select(["text"]), name="pages")
        assert rows(no_ids.documents)[5]["id"] == "pages#5"

    def test_options_are_the_same(self, pages):
        for options in [
            {"policy": "b"},
            {"policy": "site", "site": "henzinger", "keep": "longest"},
            {"threshold": 0.5, "w": 3, "verify": "sketch", "cap": 5},
        ]:
            settings = arose.dedup(pages, **options).summary["settings"]
            for name, value in options.items():
                assert settings[name] == value, name

    def test_errors_have_the_same_words(self, pages, tmp_path):
        (tmp_path / "x").write_text("x")
        with pytest.raises(arose.AroseError, match="is not empty and contains no run of arose"):
            arose.dedup(pages, tmp_path)
        with pytest.raises(arose.InputError, match="no such file or directory: "):
            arose.dedup("nothing.jsonl")
        with pytest.raises(arose.SettingError, match="cannot reach recall"):
            arose.dedup(pages, threshold=0.1)
        with pytest.raises(arose.SettingError, match="priority_field"):
            arose.dedup(pages, keep="priority")

    def test_progress_is_told_and_may_stop_the_run(self, tmp_path):
        path = tmp_path / "many.jsonl"
        with open(path, "w") as out:
            for i in range(20_000):
                out.write(json.dumps({"text": text(i, 200)}) + "\n")
        seen = []

        def stop(stage, done, total):
            seen.append(stage)
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            arose.dedup(path, tmp_path / "out", progress=stop)
        assert seen == ["read"]
        assert not (tmp_path / "out" / "summary.json").exists()
        found = arose.dedup(path, tmp_path / "out", progress=lambda *_: None)
        assert found.summary["counts"]["read"] == 20_000

    def test_ctrl_c_stops_a_run(self, tmp_path):
        path = tmp_path / "many.jsonl"
        with open(path, "w") as out:
            for i in range(30_000):
                out.write(json.dumps({"text": text(i, 300)}) + "\n")
        # A stage after the first, so that there is something to resume.
        program = (
            "import arose, sys\n"
            "def told(stage, *_):\n"
            "    if stage != 'read': print(stage, flush=True)\n"
            "try: arose.dedup(sys.argv[1], sys.argv[2], threads=1, progress=told)\n"
            "except KeyboardInterrupt: sys.exit(42)\n"
        )
        run = subprocess.Popen(
            [sys.executable, "-c", program, path, tmp_path / "out"], stdout=subprocess.PIPE
        )
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        assert run.wait() == 42
        out = tmp_path / "out"
        assert not (out / "summary.json").exists()
        assert (out / ".arose" / "read" / "stage.json").exists()
        calls = []
        found = arose.dedup(path, out, progress=lambda *call: calls.append(call))
        assert found.summary["counts"]["read"] == 30_000
        # Data that was read before is not read again.
        assert calls
        assert [call for call in calls if call[0] == "read" and call[1] > 0] == []


class TestIndex:
    def test_what_was_inserted_is_found_again(self, tmp_path):
        with arose.Index.create(tmp_path / "seen", policy="combined") as index:
            for i in range(20):
                index.insert(f"d{i}", text(i))
            assert len(index) == 20
            assert [found.name for found in index.query(text(7).upper())] == ["d7"]
        with arose.Index.open(tmp_path / "seen") as index:
            found = index.query(text(7))
            assert (found[0].name, found[0].rule, found[0].similarity) == ("d7", "exact", 1.0)
            assert index.query("nothing like any of them at all, not even in the least") == []
            assert index.remove("d7") and not index.remove("d7")
            assert index.query(text(7)) == []
            assert index.query_or_insert("new", text(7)) == []
            assert [found.name for found in index.query_or_insert("again", text(7))] == ["new"]

    def test_errors_have_the_same_words(self, tmp_path):
        with pytest.raises(arose.AroseError, match=str(tmp_path)):
            arose.Index.open(tmp_path / "nothing")
        index = arose.Index.create(tmp_path / "seen")
        index.close()
        with pytest.raises(arose.AroseError, match="the index is closed"):
            index.query("x")
        with pytest.raises(arose.SettingError, match="policy='z', expected 'exact'"):
            arose.Index.create(tmp_path / "other", policy="z")
        with pytest.raises(arose.SettingError, match="threshold has no effect with policy='b'"):
            arose.Index.create(tmp_path / "other", policy="b", threshold=0.7)

    def test_defaults_are_those_of_dedup(self, pages, tmp_path):
        arose.Index.create(tmp_path / "seen").close()
        for name in ["first", "second"]:
            found = arose.dedup(
                pages, tmp_path / name, against=tmp_path / "seen", update_index=True
            )
            assert found.summary["index"]["agrees"]
        assert found.summary["counts"]["kept"] == found.summary["counts"]["empty"]


def test_the_examples_in_the_documentation():
    n_examples = 0
    for module in [
        arose, arose._index, arose._passages, arose._result, arose._search, arose._sketch
    ]:
        found = doctest.testmod(module, extraglobs={"arose": arose})
        assert found.failed == 0
        n_examples += found.attempted
    assert n_examples > 25


def test_version_and_stubs():
    assert arose.__version__ == importlib.metadata.version("arose")
    folder = os.path.dirname(arose.__file__)
    assert os.path.exists(os.path.join(folder, "py.typed"))
    stubs = open(os.path.join(folder, "_arose.pyi")).read()
    for name in dir(arose._arose):
        if not name.startswith("__"):
            assert name in stubs, name


def test_issue_24_an_index_of_content(tmp_path):
    """Pages of a known template are not duplicates, and every match states its basis."""

    def words(seed, n):
        return " ".join(f"w{seed}x{i}" for i in range(n))

    with arose.Index.create(tmp_path / "seen", policy="content") as index:
        for n in range(40):
            index.query_or_insert(str(n), words(0, 200) + " " + words(100 + n, 60), host="shop.example")
        assert len(index) == 40
        n_found = 0
        # The weights of a stored page are those at its insertion, and scores are estimates: most
        # of the later pages are at the level same.
        for n in range(20, 40):
            for found in index.query(words(100 + n, 60), host="other.example"):
                assert (found.name, found.rule, found.site_pages) == (str(n), "same", 0)
                assert found.content >= 0.9 and found.content_unweighted < 0.5
                assert found.b_sim is None
                n_found += 1
        assert 15 <= n_found <= 20
        [found] = index.query(words(0, 200) + " " + words(100 + 30, 60) + " more", host="shop.example")
        assert found.site_pages == 40
