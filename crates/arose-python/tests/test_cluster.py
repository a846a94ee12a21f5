"""Tests that the stages give the rows of the local run for any distribution of messages."""

import json
import os
import tempfile

import pyarrow as pa
import pytest

import arose
from arose import _arose, cluster
from arose._stages import Stages, StoreFiles
from arose._store import Store
from arose.cluster import KINDS, ORDER, Plan, in_order, merge_notes, put_in_order, write_rows
from arose.spark import REFUSED, _options
from local_engine import MESSAGES, LocalEngine, Memory
from test_errors import FOREIGN

WORDS = [f"word{i}" for i in range(400)]


def corpus(path, n=240):
    """Chains, cliques, exact duplicates, templates, short and empty texts, several sites."""
    import random

    rng = random.Random(5)
    base = [[rng.choice(WORDS) for _ in range(90)] for _ in range(n // 8)]
    template = [rng.choice(WORDS) for _ in range(150)]
    with open(path, "w") as out:
        for i in range(n):
            words = list(base[rng.randrange(len(base))])
            kind = i % 6
            if kind == 1:
                words[rng.randrange(90)] = f"changed{i}"
            elif kind == 2:
                at = rng.randrange(60)
                words[at : at + rng.randrange(12)] = [f"other{i}"]
            elif kind == 3:
                words = template + [f"page{i}", f"of{i}"]
            elif kind == 4 and i % 5 == 0:
                words = words[: rng.randrange(4)]
            elif kind == 5:
                words = [rng.choice(WORDS) for _ in range(rng.randrange(200))]
            document = {
                "id": f"d{i}",
                "text": " ".join(words),
                "url": f"http://site{i % 9}.example/{i}",
                "date": 1_000_000 + (i * 7919) % 1000,
                "score": (i * 31) % 17,
            }
            if i % 10 == 0:
                del document["url"]
            if i % 11 == 0:
                del document["id"], document["date"]
            out.write(json.dumps(document) + "\n")
        out.write("not an object\n")


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("cluster") / "corpus.jsonl"
    corpus(path)
    return os.fspath(path)


def run(lines, n_partitions, shuffle_seed, input_bytes, chunk_folder=None, **given):
    options = _options(dict(given))
    engine = LocalEngine(options, n_partitions, shuffle_seed, chunk_folder)
    parts, _ = _arose.cut_input([lines], input_bytes, json.dumps(options))
    engine.read(parts)
    found = plan(engine, Memory(), options, n_partitions).run()
    return engine, found


def plan(engine, memory, options, n_parts=2):
    _, sizes = _arose.settings(json.dumps(options))
    return Plan(engine, memory, options, n_parts, json.loads(sizes))


def by_doc(rows):
    return sorted(rows, key=lambda row: row["doc"])


def by_pair(rows):
    return sorted(rows, key=lambda row: (row["a"], row["b"]))


def check(lines, **options):
    local = arose.dedup(lines, **options)
    with tempfile.TemporaryDirectory() as chunk_folder:
        check_run(lines, local, (1, 0, 1 << 30), options)
        check_run(lines, local, (3, 1, 9_000, chunk_folder), options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "MAX_EDGES", 0)
            check_run(lines, local, (7, 2, 40_000), options)


def check_run(lines, local, spread, options):
    documents = local.documents.to_pyarrow().to_pylist()
    pairs = local.pairs.to_pyarrow().to_pylist()
    assert len(pairs) > 20
    engine, found = run(lines, *spread, **options)
    assert by_doc(engine.rows["documents"]) == documents, (spread, options)
    assert by_pair(engine.rows["pairs"]) == pairs, (spread, options)
    counts, cap = local.summary["counts"], local.summary["cap"]
    assert found["groups"]["candidates"] == counts["candidates"]
    # One machine tests a pair that shares several keys once, a cluster once for each key.
    assert found["candidates"]["tested"] >= counts["tested"]
    assert found["pairs"]["clusters"] == counts["clusters"]
    assert found["pairs"]["members"] == counts["clustered_documents"]
    assert found["pairs"]["max_cluster"] == counts["largest_cluster"]
    assert found["candidates"]["capped"] == cap["runs"]
    assert found["candidates"]["unled"] == cap["documents"]
    assert found["candidates"]["max_capped"] == cap["longest"]
    assert found["candidates"]["untested"] == cap["pairs_not_compared"]
    read = merge_notes(engine.notes("read"))
    assert read["docs"] == counts["read"] and read["damaged"] == 1
    assert kept_lines(engine, options) == kept_ids(lines, documents)


def excerpts(path):
    """Documents, excerpts of them and of each other, equal ones, and ones too short to judge."""
    import random

    rng = random.Random(8)
    texts = [[rng.choice(WORDS) for _ in range(rng.randrange(60, 240))] for _ in range(60)]
    for i in range(180):
        whole = rng.choice(texts)
        at = rng.randrange(len(whole) // 3)
        part = whole[at : at + rng.randrange(30, max(31, len(whole) * 2 // 3))]
        if i % 4 == 0:
            part = part[:10] + [f"changed{i}"] + part[11:]
        texts.append(part if i % 5 else list(whole))
    texts += [["too", "short"], [], []]
    rng.shuffle(texts)
    with open(path, "w") as out:
        for i, words in enumerate(texts):
            document = {"id": f"d{i}", "text": " ".join(words), "date": 1000 + (i * 7919) % 1000}
            document["url"] = f"http://site.example/{i % 50}" if i % 3 else None
            out.write(json.dumps(document) + "\n")
        out.write("not an object\n")


@pytest.mark.parametrize("keep", ["first", "newest", "longest"])
@pytest.mark.parametrize("policy", ["contained", "url"])
def test_issue_31_policies_of_excerpts_and_urls(tmp_path, monkeypatch, policy, keep):
    lines = os.fspath(tmp_path / "excerpts.jsonl")
    excerpts(lines)
    options = {"policy": policy, "keep": keep}
    local = arose.dedup(lines, **options)
    documents = local.documents.to_pyarrow().to_pylist()
    pairs = local.pairs.to_pyarrow().to_pylist()
    counts = local.summary["counts"]
    assert counts["dropped_near"] > 50 and len(pairs) >= counts["dropped_near"]
    context = Plan.context
    tight = lambda self, *given, **more: context(self, *given, sort_bytes=1 << 12, **more)
    folder = os.fspath(tmp_path / "chunks")
    for spread in [(1, 0, 1 << 30), (3, 1, 9_000, folder), (7, 2, 4_000)]:
        engine, found = run(lines, *spread, **options)
        assert by_doc(engine.rows["documents"]) == documents, spread
        assert by_pair(engine.rows["pairs"]) == pairs, spread
        assert found["pairs"]["clusters"] == counts["clusters"]
        assert found["pairs"]["max_cluster"] == counts["largest_cluster"]
        assert found["verify"].get("not_judged", 0) == counts["not_judged"]
        assert kept_lines(engine, options) == kept_ids(lines, documents)
        # Once more with almost no memory.
        monkeypatch.setattr(Plan, "context", tight)


def kept_ids(lines, documents):
    """The kept lines according to the table."""
    offsets = [int(row["position"].split("+")[0]) for row in documents if row["kept"]]
    with open(lines, "rb") as file:
        text = file.read()
    return [text[at : text.index(b"\n", at) + 1] for at in sorted(offsets)]


def kept_lines(engine, options):
    """The lines of the copies."""
    found = []
    for source, rows in engine.kept.items():
        for row in sorted(rows, key=lambda row: row["part"]):
            with tempfile.NamedTemporaryFile() as copy:
                places = row["kept"], row["dropped"]
                assert _arose.copy_kept(source, *places, engine.options, copy.name) is None
                found += copy.readlines()
    return found


@pytest.mark.parametrize("policy", ["content", "jaccard", "b", "c", "combined", "site"])
@pytest.mark.parametrize("cap", [4096, 2])
def test_every_policy(lines, policy, cap):
    check(lines, policy=policy, cap=cap)


@pytest.mark.parametrize("remove", ["same", "content"])
@pytest.mark.parametrize("site_counts", ["exact", "sampled"])
@pytest.mark.parametrize("keep", ["first", "newest"])
def test_issue_24_contents(lines, remove, site_counts, keep):
    """Templates, versions, copies on other sites, and documents without a URL."""
    check(lines, policy="content", remove=remove, site_counts=site_counts, keep=keep)
    local = arose.dedup(lines, policy="content", remove=remove, site_counts=site_counts)
    engine, found = run(lines, 3, 1, 9_000, policy="content", remove=remove, site_counts=site_counts)
    counts, sites = local.summary["counts"], local.summary["sites"]
    for name in ["version_groups", "versions"]:
        assert found.get("versions", {}).get(name, 0) == counts[name], name
    assert sites["sites"] > 3 and found["pages"] == {k: sites[k] for k in ["sites", "pages"]}
    assert found["counts"] == {"framed": sites["framed_word_pairs"]}
    assert sites["framed_word_pairs"] > (100 if site_counts == "exact" else 5)
    assert len(engine.rows["repeats"]) == sites["framed_word_pairs"]


@pytest.mark.parametrize("keep", ["longest", "newest", "copies", "priority"])
def test_every_keeper(lines, keep):
    field = {"priority_field": "score"} if keep == "priority" else {}
    check(lines, keep=keep, **field)


@pytest.mark.parametrize("verify", ["sketch", "none"])
@pytest.mark.parametrize("policy", ["jaccard", "combined", "site"])
def test_every_verification(lines, verify, policy):
    check(lines, verify=verify, policy=policy)


def test_other_settings(lines):
    check(lines, threshold=0.5, w=2, short="any", seed=7)
    check(lines, threshold=0.6, cap=3, cjk_w=3)


def test_sketches_are_sent_where_there_are_too_many_to_read(lines, tmp_path, monkeypatch):
    local = arose.dedup(lines, cap=5)
    monkeypatch.setattr(cluster, "MAX_READ", 0)
    monkeypatch.setattr(LocalEngine, "places", None)
    check_run(lines, local, (3, 1, 9_000, os.fspath(tmp_path)), {"cap": 5})


def test_all_pairs_are_refused():
    with pytest.raises(arose.SettingError, match="needs a single machine"):
        _options({"pairs": "all"})


def test_results_take_the_place_of_a_local_run(tmp_path):
    files = StoreFiles(os.fspath(tmp_path / "out" / ".arose-spark"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "pairs.parquet").write_text("a file")
    files.publish("pairs", [])
    assert files.count("pairs", "rule") == {}


def test_a_table_is_what_its_list_says(tmp_path):
    """Files of failed attempts, or of a replaced driver, are not part of it."""
    files = StoreFiles(os.fspath(tmp_path))
    batch = pa.record_batch([[1], [-1], [0], [b"{}"], [None]], schema=MESSAGES)
    names = [row for _ in range(3) for row in cluster.keep(iter([batch]), files.store, "runs")]
    names = [name for row in names for name in row.column(0).to_pylist()]
    files.keep("runs", names[:2])
    stray = cluster.keep(iter([batch]), files.store, "runs")
    assert len(list(stray)) == 1
    assert sorted(files.kept("runs", -1)) == sorted(names[:2])
    assert len(list(files.rows("runs", -1, ["bytes"]))) == 2
    files.store.remove(names[0])
    with pytest.raises(arose.AroseError, match="a file of an earlier stage is missing"):
        list(files.rows("runs", -1, ["bytes"]))


def test_rows_that_follow_each_other_make_a_file(tmp_path):
    def batch(*numbers):
        return pa.record_batch([pa.array(numbers)], ["doc"])

    store = Store(os.fspath(tmp_path))
    batches = [batch(5, 6), batch(), batch(7), batch(20, 21), batch(1, 2)]
    (names,) = write_rows(iter(batches), store, "documents", True)
    names = sorted(names.column(0).to_pylist())
    import pyarrow.parquet as pq

    found = [pq.read_table(store.path(name))["doc"].to_pylist() for name in names]
    assert found == [[1, 2], [5, 6, 7], [20, 21]]
    assert len(next(write_rows(iter(batches), store, "pairs", False))) == 1
    assert list(write_rows(iter([]), store, "pairs", False)) == []


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_issue_31_options_that_need_a_single_machine_are_refused_by_name(name):
    with pytest.raises(arose.SettingError, match=f"^{name} (needs|has|is) ") as raised:
        _options({name: "/nowhere"})
    assert not FOREIGN.search(str(raised.value))


def test_issue_31_unknown_options_are_refused_by_name():
    with pytest.raises(arose.SettingError, match="there is no option `damaged`"):
        _options({"damaged": "explode"})
    with pytest.raises(arose.SettingError, match="cap='many', expected a whole number"):
        _options({"cap": "many"})
    for policy in ["contained", "url"]:
        with pytest.raises(arose.SettingError, match=policy):
            _options({"policy": policy, "verify": "none"})
    with pytest.raises(arose.SettingError, match="^passages needs a single machine"):
        arose.spark.passages(["corpus.jsonl"], "out")


def test_issue_31_what_does_not_fit_is_an_error(lines):
    """A decision on a document that does not exist, and a pair without a component."""
    options = _options({})
    engine = LocalEngine(options, 1, 0)
    engine.read(_arose.cut_input([lines], 1 << 20, json.dumps(options))[0])
    context = plan(engine, Memory(), options).context()
    docs = engine.chunks(KINDS["DOCS"], "docs")
    part = docs[0][0]
    for doc in [[1_000_000], [3, 3]]:
        verdicts = b"".join(number.to_bytes(4, "little") + bytes(36) for number in doc)
        verdict = [(part, KINDS["VERDICT"], 0, verdicts, None)]
        for step in ["documents", "spans", "name"]:
            with pytest.raises(arose.AroseError, match="a decision of document .* does not match"):
                engine.reduce([docs, verdict], step, context)
    link = [(0, KINDS["LINK"], 0, bytes(72), None)]
    with pytest.raises(arose.AroseError, match="a pair of document 0 does not match"):
        engine.reduce([link], "attach", context)
    want = [(part, KINDS["WANT"], 0, bytes(8) + (10**6).to_bytes(8, "little"), None)]
    docs = engine.chunks(KINDS["DOCS"], "docs", "vectors")
    with pytest.raises(arose.AroseError, match="a candidate of document 1000000 does not match"):
        engine.reduce([docs, want], "fetch", context)


def test_issue_31_parts_are_sorted_in_files(lines, monkeypatch):
    """A part may be larger than memory: the rows are the same with almost no memory."""
    context = Plan.context
    tight = lambda self, *given, **more: context(self, *given, sort_bytes=1, **more)
    monkeypatch.setattr(Plan, "context", tight)
    check_run(lines, arose.dedup(lines, cap=3), (1, 0, 1 << 30), {"cap": 3})
    monkeypatch.setattr(cluster, "MAX_EDGES", 0)
    check_run(lines, arose.dedup(lines, keep="copies"), (2, 0, 40_000), {"keep": "copies"})


def test_issue_31_a_driver_that_was_replaced_stops(tmp_path):
    files = StoreFiles(os.fspath(tmp_path))
    first = Stages(files, {"version": "1"}, False)
    first.finish("read", {})
    second = Stages(files, {"version": "1"}, False)
    assert second.done("read") == {}
    with pytest.raises(arose.AroseError, match="another driver was started on this output"):
        first.finish("runs", {})
    second.finish("runs", {})


def test_stages_that_are_done_are_not_done_again(lines):
    options = _options({})
    engine, memory = LocalEngine(options, 2, 0), Memory()
    engine.read(_arose.cut_input([lines], 1 << 20, json.dumps(options))[0])
    found = plan(engine, memory, options).run()
    engine.reduce = engine.map = None
    assert plan(engine, memory, options).run() == found


def test_another_version_is_refused():
    context = json.dumps({"version": "0.0.9"})
    with pytest.raises(arose.AroseError, match="the driver runs arose 0.0.9 and this executor"):
        _arose.Worker("runs", "{}", context)
    with pytest.raises(arose.AroseError, match="install the same wheel"):
        _arose.read_part(0, '{"files": [], "range": null}', "{}", "0.0.9", None)


def test_torn_messages_are_errors(lines):
    options = _options({})
    engine = LocalEngine(options, 1, 0)
    engine.read(_arose.cut_input([lines], 1 << 20, json.dumps(options))[0])
    context = plan(engine, Memory(), options).context()
    for step, kind in [("runs", 3), ("groups", 7), ("verify", 9), ("stars", 12), ("decide", 2)]:
        with pytest.raises(arose.AroseError, match="a record is incomplete"):
            engine.reduce([[(0, kind, 0, b"\x01" * 13, None)]], step, context)


def test_lost_chunks_are_named(lines, tmp_path):
    options = _options({})
    engine = LocalEngine(options, 1, 0, os.fspath(tmp_path))
    engine.read(_arose.cut_input([lines], 1 << 20, json.dumps(options))[0])
    assert [path.name for path in tmp_path.iterdir()] == ["0.chunks"]
    assert max(len(chunk["tokens"]) for chunk in engine.tables["read"]) == 16
    (tmp_path / "0.chunks").unlink()
    with pytest.raises(arose.AroseError, match=r"cannot open `.*0\.chunks`"):
        plan(engine, Memory(), options).run()


def test_messages_out_of_order_are_refused_or_sorted():
    messages = [(2, 1, 0), (1, 3, 5), (1, 3, 4), (-1, -1, 0), (1, 2, 9)]
    rows = [dict(zip(ORDER, message), bytes=b"x", more=None) for message in messages]

    def batches(rows):
        return iter(pa.Table.from_pylist(rows, MESSAGES).to_batches(2))

    def order(batches):
        return [tuple(row[name] for name in ORDER) for b in batches for row in b.to_pylist()]

    with pytest.raises(arose.AroseError, match="did not keep the order of a partition"):
        list(in_order(batches(rows)))
    assert order(put_in_order(batches(rows))) == sorted(messages)
    assert order(in_order(put_in_order(batches(rows)))) == sorted(messages)
    assert list(put_in_order(iter([]))) == []
