"""Arrow streams in and out, search, and crawls."""

import json
import threading

import numpy
import pandas
import polars
import pyarrow as pa
import pytest

import arose

TEXTS = [f"text number {i} of some words that differ {i * i}" for i in range(20_000)]


def rows(table):
    return table.to_pyarrow().to_pylist()


def table(texts=TEXTS):
    return pa.table({"n": range(len(texts)), "text": texts})


def test_issue_30_a_sketcher_takes_and_gives_streams():
    sketcher = arose.Sketcher(samples=8)
    expected = sketcher.sketch(TEXTS).to_pyarrow()
    for name, stream in [
        ("reader", table().to_reader(max_chunksize=3000)),
        ("table", table()),
        ("array", pa.array(TEXTS)),
        ("chunks", pa.chunked_array([TEXTS[:7], [], TEXTS[7:]])),
        ("categories", pa.array(TEXTS).dictionary_encode()),
        ("generator", (text for text in TEXTS)),
        ("list", TEXTS),
        ("polars", polars.DataFrame({"text": TEXTS})),
        ("lazy", polars.LazyFrame({"text": TEXTS, "n": range(len(TEXTS))})),
        ("pandas", pandas.DataFrame({"text": TEXTS})),
        ("numpy", numpy.array(TEXTS)),
    ]:
        found = sketcher.stream(stream)
        batches = pa.RecordBatchReader.from_stream(found).read_all()
        assert batches.to_pydict() == expected.to_pydict(), name
        assert max(chunk.num_rows for chunk in batches.to_batches()) <= 8192, name
    assert sum(len(part) for part in sketcher.stream(TEXTS)) == len(TEXTS)
    assert polars.DataFrame(sketcher.stream(TEXTS[:50])).height == 50
    assert len(sketcher.stream(iter([])).read_all()) == 0
    with pytest.raises(arose.InputError, match="no text column.*columns found: n"):
        sketcher.stream(table().drop_columns(["text"]))
    assert len(sketcher.stream(table().rename_columns(["n", "review"]), text_field="review").read_all()) == 20_000
    with pytest.raises(TypeError, match="put it into a list"):
        sketcher.stream("one")


def test_issue_30_a_sketcher_takes_datasets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"n": range(3000), "text": TEXTS[:3000]})
    sketcher = arose.Sketcher(samples=8)
    expected = rows(sketcher.sketch(TEXTS[:3000]))
    for kind in [data, data.to_iterable_dataset()]:
        assert rows(sketcher.stream(kind).read_all()) == expected
    with pytest.raises(arose.InputError, match="no text column.*columns found: n"):
        next(sketcher.stream(data.select_columns(["n"])))


def test_issue_30_a_stream_is_consumed_as_it_is_asked_for():
    taken = [0]

    def texts():
        for text in TEXTS:
            taken[0] += 1
            yield text

    stream = arose.Sketcher(samples=8).stream(texts())
    assert taken[0] == 0
    next(stream)
    assert taken[0] == 8192

    def failing():
        yield from TEXTS[:9000]
        raise RuntimeError("no more")

    stream = arose.Sketcher(samples=8).stream(failing())
    assert len(next(stream)) == 8192
    with pytest.raises(RuntimeError, match="no more"):
        next(stream)
    with pytest.raises(TypeError, match="item 1 is int"):
        next(arose.Sketcher().stream(["a", 2]))


class LongText(str):
    """A text that is counted while it is in memory."""

    alive = 0
    most = 0

    def __new__(cls, text):
        cls.alive += 1
        cls.most = max(cls.most, cls.alive)
        return super().__new__(cls, text)

    def __del__(self):
        LongText.alive -= 1


@pytest.mark.parametrize("call", ["dedup", "passages", "stream", "add", "query_many"])
def test_issue_30_few_long_texts_are_in_memory_at_once(call, tmp_path):
    """A batch is bounded by its characters, too."""
    LongText.most = LongText.alive = 0
    n = 60
    texts = (LongText(f"text {i} " * 100_000) for i in range(n))
    if call == "stream":
        assert sum(map(len, arose.Sketcher(samples=8).stream(texts))) == n
    elif call == "dedup":
        assert len(arose.dedup(texts, policy="exact").documents) == n
    elif call == "passages":
        assert len(arose.passages(texts, unit="line").documents) == n
    else:
        with arose.Index.create(tmp_path / "seen", policy="exact") as index:
            if call == "add":
                index.add((f"d{i}" for i in range(n)), texts)
                assert len(index) == n
            else:
                assert index.query_many(texts) == [[]] * n
    # 8 Mi characters in one batch, and another one that is on its way; or each is copied at once.
    least = 1 if call in ("dedup", "passages") else 9
    assert least <= LongText.most <= 25


def test_threads_may_share_a_stream():
    stream = arose.Sketcher(samples=8).stream(TEXTS)
    found = []

    def take():
        for part in stream:
            found.append(len(part))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) == len(TEXTS)


def test_issue_30_read_takes_and_gives_streams(pages):
    lines = [json.loads(line) for line in open(pages)]
    frame = pa.Table.from_pylist(lines)
    expected = [row["text"] for row in rows(arose.read(pages).read_all())]
    for name, data in [
        ("table", frame),
        ("reader", frame.to_reader(max_chunksize=50)),
        ("polars", polars.DataFrame(frame)),
        ("lazy", polars.LazyFrame(frame)),
        ("pandas", frame.to_pandas()),
        ("reader of ours", arose.read(pages)),
    ]:
        reader = arose.read(data, name="pages")
        found = rows(reader.read_all())
        assert [row["text"] for row in found] == expected, name
        assert {row["source"] for row in found} == {"pages"}, name
        assert found[5]["position"] == "5" and found[5]["id"] == lines[5]["id"], name
    assert polars.DataFrame(arose.read(frame)).height == 300
    nulls = arose.read(pa.table({"text": ["a", None], "id": ["x", None]}))
    assert [row["id"] for row in rows(nulls.read_all())] == ["x"] and nulls.skipped == {"null text": 1}
    with pytest.raises(arose.InputError, match="no text column"):
        arose.read(pa.table({"n": [1]}))
    with pytest.raises(TypeError, match="expected a path or an iterable of paths, got int"):
        arose.read(3)


def test_issue_30_temporary_files_go(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    list(arose.read(table(TEXTS[:10])))
    arose.dedup(TEXTS[:10])
    arose.passages(TEXTS[:10])
    for call in [arose.dedup, arose.passages, arose.read]:
        with pytest.raises(arose.InputError):
            call(pa.table({"n": [1]}))
    import gc

    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_issue_30_an_index_takes_arrays_and_iterators(tmp_path):
    with arose.Index.create(tmp_path / "seen") as index:
        index.add((f"d{i}" for i in range(9000)), (text for text in TEXTS[:9000]))
        index.add(pa.array(["a", "b"]), polars.Series(["one two three", "four five six"]))
        index.add(pandas.Series(["c"]), ["seven eight nine"])
        names = [*(f"d{i}" for i in range(9000)), "a", "b", "c"]
        assert len(index) == 9003 and list(index) == names
        assert [match.name for match in index.query_many(pa.array(["one two three"]))[0]] == ["a"]
        assert len(index.query_many(text for text in TEXTS[:8200])) == 8200
        with pytest.raises(TypeError, match="text 1 is None"):
            index.add(["x", "y"], ["x", None])
        with pytest.raises(ValueError, match="2 names for 1 texts"):
            index.add(iter(["x", "y"]), iter(["x"]))
        with pytest.raises(ValueError, match="3 names for 1 texts"):
            index.add(["x", "y", "z"], ["x"])
        with arose.Index.open(tmp_path / "seen", read_only=True) as beside:
            assert list(beside) == names
    with arose.Index.open(tmp_path / "seen", read_only=True) as reader:
        assert list(reader) == names


def test_issue_30_an_index_takes_hosts_in_batches(tmp_path):
    """The policy site asks whether two pages are of one site, so batches need their hosts."""
    words = [f"word{i}" for i in range(400)]
    # Enough in common for one site, too little for two.
    page, other = " ".join(words), " ".join(words[:395] + [f"other{i}" for i in range(395, 400)])
    for site, rule in [("same", "site-same"), ("different", None)]:
        assert arose.compare(page, other, policy="site", site=site).rule == rule
    with arose.Index.create(tmp_path / "one", policy="site") as one, arose.Index.create(
        tmp_path / "many", policy="site"
    ) as many:
        for name, host in [("a", "a.org"), ("b", "b.org"), ("c", None)]:
            one.insert(name, page, host=host)
        many.add(["a", "b", "c"], [page] * 3, hosts=["a.org", "b.org", None])
        assert [match.name for match in one.query(other, host="a.org")] == ["a"]
        for hosts in [["a.org", "b.org", None], iter(["a.org", "b.org", None]), pa.array(["a.org", "b.org", None])]:
            found = many.query_many([other] * 3, hosts=hosts)
            assert [[match.name for match in matches] for matches in found] == [
                [match.name for match in one.query(other, host=host)] for host in ["a.org", "b.org", None]
            ]
        assert [match.name for match in found[0]] == ["a"]
        many.add(pa.array(["d"]), [page], hosts=["d.org"])
        assert [match.name for match in many.query_many([other], hosts=["www.d.org"])[0]] == ["d"]
        for wrong in [["a.org"], iter(["a.org"]), pa.array(["a.org"])]:
            with pytest.raises(ValueError, match="texts|hosts"):
                many.add(["x", "y"], ["x", "y"], hosts=wrong)
            with pytest.raises(ValueError, match="texts|hosts"):
                many.query_many(["x", "y"], hosts=wrong)
        assert len(many) == 4


def test_issue_30_a_sketcher_goes_to_other_processes():
    import pickle

    for sketcher in [arose.Sketcher(w=3, samples=16, seed=5), arose.Sketcher("combined", cjk_w=4)]:
        copy = pickle.loads(pickle.dumps(sketcher))
        assert rows(copy.sketch(TEXTS[:20])) == rows(sketcher.sketch(TEXTS[:20]))
        assert repr(copy) == repr(sketcher)
    assert repr(arose.Sketcher(w=3)) == "arose.Sketcher(policy='jaccard', w=3, seed=1)"


def test_issue_30_search_is_that_of_the_command(pages, tmp_path, capfd):
    import subprocess
    import sys

    out = tmp_path / "out"
    arose.dedup(pages, out)
    for query, options, flags in [
        ("*", {}, []),
        ("ferobe tuke", {}, []),
        ("*", {"limit": 3, "offset": 2, "collapse": False}, ["--limit", "3", "--offset", "2", "--collapse", "none"]),
        ("bufe OR rose", {"sort": "newest", "kept": True, "per_site": 0}, ["--sort", "newest", "--kept", "--per-site", "0"]),
        ("nothinglikethis", {}, []),
    ]:
        found = arose.search(out, query, **options)
        command = [sys.executable, "-m", "arose", "search", str(out), query, "--json", *flags]
        there = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
        assert (found.n_documents, found.n_results, found.next) == (
            there["documents"], there["results"], there["next"])
        own = rows(found.hits)
        assert len(own) == len(there["hits"]) == len(found)
        for hit, other in zip(own, there["hits"]):
            other["snippet"] = "".join(part["text"] for part in other["snippet"]).strip()
            score, other_score = hit.pop("score"), other.pop("score")
            assert score == pytest.approx(other_score) and hit == other
    assert [hit["rank"] for hit in found] == []
    assert repr(arose.search(out, "*")) == "<arose.SearchResults: 10 of 225 results, 300 documents>"
    (hit,) = arose.search(out, "ferobe tuke", limit=1)
    assert hit["id"] == "p0" and hit["kept"] is True and hit["score"] > 0
    assert capfd.readouterr().out == ""
    elsewhere = tmp_path / "elsewhere"
    assert len(arose.search(out, "*", index=elsewhere, rebuild=True)) > 0
    assert any(elsewhere.iterdir())


def test_issue_25_search_knows_current_versions(tmp_path):
    archive = tmp_path / "pages.warc"
    with open(archive, "wb") as file:
        for day, words in [(1, "red rose"), (2, "blue rose")]:
            http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{words}</p>".encode()
            head = (
                f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x.org/\r\n"
                f"WARC-Date: 2026-01-0{day}T00:00:00Z\r\n"
                f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            file.write(head.encode() + http + b"\r\n\r\n")
    assert [arose.search(tmp_path, "rose", versions=which).n_documents for which in ["current", "all"]] == [1, 2]
    assert arose.search(tmp_path, "red").n_documents == 0
    assert arose.search(tmp_path, "blue").n_documents == 1
    with pytest.raises(arose.SettingError, match="versions"):
        arose.search(tmp_path, "rose", versions="old")


def test_issue_30_crawl_status_is_that_of_the_command(tmp_path):
    import subprocess
    import sys

    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "arose"]
    made = subprocess.run([*command, "demo", "-o", str(folder)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (crawl,) = [path.parent for path in folder.rglob("statistics.jsonl")]
    ran = subprocess.run([*command, "crawl", "status", str(crawl), "--json"], capture_output=True, text=True)
    status = arose.crawl_status(crawl)
    assert status == json.loads(ran.stdout) and status["counters"]["pages"] > 0
    course = arose.crawl_statistics(crawl)
    assert len(course) > 0 and course == [json.loads(line) for line in open(crawl / "statistics.jsonl")]
    # A crawl is a kind of input, and can be searched.
    assert arose.dedup(crawl).summary["counts"]["read"] > 0
    assert arose.passages(crawl).summary["counts"]["read"] > 0
    assert len(arose.search(crawl, "*")) > 0
