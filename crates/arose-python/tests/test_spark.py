"""Tests of the job on Spark, with two executors, against the local run, and with lost executors."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle

import arose
import arose.spark
import spark_support
from arose import cluster
from arose.spark import dedup
from test_cluster import corpus


cloudpickle.register_pickle_by_value(spark_support)


@pytest.fixture(scope="module")
def spark():
    session = spark_support.session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "corpus.jsonl"
    corpus(path, 400)
    return os.fspath(path)


def rows(folder, name, keys):
    table = pq.read_table(os.path.join(folder, f"{name}.parquet")).to_pylist()
    return sorted(table, key=lambda row: tuple(row[key] for key in keys))


def check(lines, out, **options):
    """The tables in `out` are those of the local run."""
    local = arose.dedup(files=lines, **options)
    assert rows(out, "documents", ["doc"]) == local.documents.to_pyarrow().to_pylist()
    assert rows(out, "pairs", ["a", "b"]) == local.pairs.to_pyarrow().to_pylist()
    summary = json.load(open(os.path.join(out, "summary.json")))
    for name, count in local.summary["counts"].items():
        # One machine tests a pair that shares several keys once, a cluster once for each key.
        if name == "tested":
            assert summary["counts"][name] >= count
        else:
            assert summary["counts"][name] == count, name
    assert summary["settings"] == local.summary["settings"]
    assert summary["cap"] == local.summary["cap"]
    assert summary["sites"] == local.summary["sites"]
    return summary


def kept(folder):
    """The kept documents, and their names."""
    folder = pathlib.Path(folder)
    files = [path for path in folder.glob("kept.*") if path.is_file()]
    files += [path for path in (folder / "kept.files").rglob("*") if path.is_file()]
    names = [os.fspath(path.relative_to(folder)) for path in sorted(files)]
    return names, b"".join(path.read_bytes() for path in sorted(files))


@pytest.mark.parametrize(
    ("policy", "partitions", "cap"),
    [
        ("content", 3, 10_000),
        ("content", 2, 5),
        ("jaccard", 3, 10_000),
        ("b", 2, 10_000),
        ("c", 1, 10_000),
        ("combined", 4, 5),
        ("site", 5, 6),
        ("contained", 3, 1024),
        ("url", 2, 1024),
    ],
)
def test_rows_are_those_of_the_local_run(spark, lines, tmp_path, policy, partitions, cap):
    out = os.fspath(tmp_path / "out")
    dedup(spark, [lines], out, policy=policy, partitions=partitions, cap=cap, input_bytes=20_000)
    check(lines, out, policy=policy, cap=cap)
    local = tmp_path / "local"
    arose.dedup(files=lines, output=local, policy=policy, cap=cap)
    names, content = kept(out)
    assert content == kept(local)[1]
    # The input was read in ranges.
    assert names[0] == "kept.files/corpus-00000.jsonl" and len(names) > 5


def test_issue_31_kept_documents_are_in_the_format_they_came_in(spark, lines, tmp_path):
    """Archives, tables, compressed files, records without text: as on one machine."""
    import gzip

    import pyarrow as pa

    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    records = [json.loads(line) for line in open(lines) if line.startswith("{")]
    pages = [{**record, "text": record["text"] or "none"} for record in records]
    pq.write_table(pa.Table.from_pylist(pages[:60]), folder / "table.parquet")
    (folder / "more" / "packed.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(page) + "\n" for page in pages[40:90]).encode())
    )
    nulls = [*pages[70:120], {"id": "null", "text": None}]
    (folder / "nulls.jsonl").write_text("".join(json.dumps(page) + "\n" for page in nulls))
    (folder / "pages.warc").write_bytes(b"".join(map(warc_record, pages[100:160])))
    out, local = os.fspath(tmp_path / "out"), tmp_path / "local"
    summary = dedup(spark, [os.fspath(folder)], out, partitions=2)
    there = arose.dedup(files=os.fspath(folder), output=local)
    check(os.fspath(folder), out)
    assert summary["kept_in"] == there.summary["kept_in"] == "kept.files"
    names, content = kept(out)
    assert names == kept(local)[0] and len(names) == 4
    tables = [pq.read_table(f"{of}/kept.files/table.parquet") for of in (out, local)]
    assert tables[0].equals(tables[1]) and 0 < len(tables[0]) < 60
    for name in names:
        if not name.endswith(".parquet"):
            assert pathlib.Path(out, name).read_bytes() == pathlib.Path(local, name).read_bytes()


def warc_record(page):
    body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{page['text']}".encode()
    url = page.get("url", "http://nowhere.example/")
    head = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
    head += f"WARC-Record-ID: <urn:uuid:{page.get('id', 'x')}-{len(body)}-{hash(page['text'])}>\r\n"
    head += "WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http;msgtype=response\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"


def test_issue_31_commands_open_results_of_spark(spark, lines, tmp_path, capfd):
    """Whether Spark or its workers wrote the tables."""
    from arose._arose import main

    outs = [os.fspath(tmp_path / "out"), os.fspath(tmp_path / "spark")]
    dedup(spark, [lines], outs[0], partitions=2, input_bytes=20_000, policy="combined")
    dedup(spark, [f"file://{lines}"], f"file://{outs[1]}", partitions=3, policy="combined")
    local = os.fspath(tmp_path / "local")
    arose.dedup(files=lines, output=local, policy="combined")
    found = arose.search(local, "word7").n_documents
    assert arose.search(outs[0], "word7").n_documents == found > 0
    said = []
    for out in [local, *outs]:
        assert main(["arose", "evaluate", "report", out, "--json"]) == 1
        said.append(json.loads(capfd.readouterr().out))
    assert said[0] == said[1] == said[2]
    for out in outs:
        check_served(out)


def check_served(out):
    """Pages about documents and pairs are served."""
    command = [sys.executable, "-m", "arose", "serve", out, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(server.stderr.readline, "")
        words = (word for line in lines for word in line.split())
        address = next(word for word in words if word.startswith("http://"))
        for page in ["clusters", "document/7", "ratings", "api/cluster/3"]:
            with urllib.request.urlopen(f"{address}{page}", timeout=60) as answer:
                assert answer.status == 200 and answer.read()
    finally:
        server.kill()
        server.communicate()


def test_relative_paths_are_those_of_the_driver(spark, lines, tmp_path, monkeypatch):
    """Executors have their own directories; names of documents contain the path as passed."""
    monkeypatch.chdir(os.path.dirname(lines))
    out = os.fspath(tmp_path / "out")
    dedup(spark, [os.path.basename(lines)], out, input_bytes=20_000)
    check(os.path.basename(lines), out)


@pytest.mark.parametrize(
    "steps",
    [
        ["read", "runs", "groups", "large", "stars"],
        ["keys", "candidates", "verify", "attach", "documents"],
        ["live", "fetch", "small", "decide", "list"],
        ["edges", "whole", "linked", "name", "tally"],
    ],
)
def test_executors_may_die_in_any_stage(spark, lines, tmp_path, monkeypatch, steps):
    """In the map stages, in every reduce, and in a round of components."""
    out = os.fspath(tmp_path / "out")
    if "whole" not in steps:
        monkeypatch.setattr(cluster, "MAX_EDGES", 0)
    runner = spark_support.killing(steps, os.fspath(tmp_path))
    # The steps are those of this policy.
    dedup(spark, [lines], out, partitions=3, input_bytes=20_000, runner=runner, policy="jaccard")
    assert all((tmp_path / f"killed-{step}").exists() for step in steps)
    check(lines, out, policy="jaccard")


def test_a_driver_that_dies_between_stages_goes_on(spark, lines, tmp_path, monkeypatch):
    out = os.fspath(tmp_path / "out")
    stages = []

    class Died(Exception):
        pass

    from arose.spark import Stages

    finish = Stages.finish

    def dying(self, name, note):
        finish(self, name, note)
        stages.append(name)
        raise Died(name)

    monkeypatch.setattr(Stages, "finish", dying)
    # Other executors may resume the run: stored and recomputed data must match.
    for partitions in [4, 7, 16, 3, 1, 5] * 4:
        try:
            dedup(spark, [lines], out, partitions=partitions, input_bytes=20_000)
            break
        except Died:
            assert len(stages) < 24
    assert len(stages) == len(set(stages)) >= 10
    check(lines, out)


def test_issue_31_errors_are_sentences(spark, lines, tmp_path, capfd):
    """Errors come immediately: S3 without its client, a missing server, a missing input."""
    with pytest.raises(arose.AroseError, match="^Spark has no client for s3a:// here; pass s3://"):
        dedup(spark, ["s3a://bucket/corpus.jsonl"], "s3a://bucket/out", partitions=2)
    with pytest.raises(arose.AroseError, match="^Spark has no client for nope:// here"):
        dedup(spark, [lines], "nope://bucket/out", partitions=2)
    with pytest.raises(arose.AroseError, match="^`file:/nowhere.jsonl` does not exist$"):
        dedup(spark, ["file:///nowhere.jsonl"], os.fspath(tmp_path / "out"), partitions=2)
    begin = time.monotonic()
    out = os.fspath(tmp_path / "out")
    assert arose.spark.main([lines, "-o", out, "--remote", "sc://127.0.0.1:1"]) == 2
    assert time.monotonic() - begin < 30
    assert "arose: no server answers at sc://127.0.0.1:1" in capfd.readouterr().err
    assert arose.spark.main([lines, "-o", out, "--pairs", "all"]) == 2
    assert "needs a single machine" in capfd.readouterr().err


def test_issue_31_workers_without_the_wheel_are_named(lines, tmp_path):
    """A session that is not ours starts whatever `python3` is."""
    import venv

    venv.create(tmp_path / "bare")
    bare = tmp_path / "bare" / "bin" / "python"
    program = f"""
import os, sys
os.environ["PYSPARK_PYTHON"] = {os.fspath(bare)!r}
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
from arose.spark import main
raise SystemExit(main([{lines!r}, "-o", {os.fspath(tmp_path / "out")!r}, "--master", "local[1]",
                       "--conf", "spark.python.daemon.module=pyspark.daemon"]))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "arose: workers cannot import " in ran.stderr, ran.stderr[-2000:]


def test_issue_31_partitions_are_those_of_the_cluster(spark):
    from arose.spark import _cores, _default_partitions

    assert _cores(spark) == 2
    assert _default_partitions(spark, 1000) == 1
    assert _default_partitions(spark, 100 << 20) == 4
    assert _default_partitions(spark, 64 << 30) == 1024


def test_other_settings_and_changed_inputs_are_refused(spark, lines, tmp_path):
    copy = tmp_path / "copy.jsonl"
    copy.write_text(open(lines).read())
    out = os.fspath(tmp_path / "out")
    dedup(spark, [os.fspath(copy)], out, partitions=2)
    with pytest.raises(arose.AroseError, match="already contains a run with settings"):
        dedup(spark, [os.fspath(copy)], out, partitions=2, threshold=0.9)
    with open(copy, "a") as file:
        file.write('{"text": "one more"}\n')
    with pytest.raises(arose.InputError, match="has changed since it was read"):
        dedup(spark, [os.fspath(copy)], out, partitions=2)
    dedup(spark, [os.fspath(copy)], out, partitions=2, force=True)
    check(os.fspath(copy), out)


def test_damage_is_skipped_or_refused(spark, lines, tmp_path):
    import gzip

    packed = gzip.compress(open(lines, "rb").read())
    bad = tmp_path / "bad.jsonl.gz"
    bad.write_bytes(packed[: len(packed) // 2])
    out = os.fspath(tmp_path / "out")
    summary = dedup(spark, [lines, os.fspath(bad)], out, partitions=2)
    assert any("bad.jsonl.gz" in warning for warning in summary["warnings"])
    local = arose.dedup(files=[lines, os.fspath(bad)])
    assert summary["incomplete_files"] == local.incomplete_files
    assert summary["counts"]["incomplete_files"] == 1
    check([lines, os.fspath(bad)], out)
    with pytest.raises(arose.InputLost, match="1 file cannot be read, first .*bad.jsonl.gz"):
        dedup(spark, [os.fspath(bad)], out + "2", partitions=2, strict=True)


def test_the_command_tells_losses_by_its_exit_code(spark, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(arose.spark, "session", lambda *_, **__: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    bad = tmp_path / "bad.csv"
    bad.write_text("id,words\n1,one\n")
    out = os.fspath(tmp_path / "out")
    assert arose.spark.main([lines, os.fspath(bad), "-o", out]) == 3
    said = capsys.readouterr()
    assert f"arose: {bad}:0: no text field" in said.err
    assert "arose: 1 file could not be read completely; everything else is done\n" in said.err
    assert f"incomplete                 1\n  {bad}:0: no text field" in said.out
    assert arose.spark.main([lines, os.fspath(bad), "-o", out + "2", "--strict"]) == 2
    assert "arose: the input is incomplete: 1 file" in capsys.readouterr().err
    assert arose.spark.main([lines, "-o", out + "3"]) == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    assert arose.spark.main([os.fspath(empty), "-o", out + "4"]) == 1


def test_files_are_chosen_and_counted_alike(spark, lines, tmp_path):
    folder = tmp_path / "in"
    (folder / ".hidden").mkdir(parents=True)
    text = open(lines).read()
    (folder / "a.jsonl").write_text(text)
    (folder / "b.jsonl").write_text('{"words": "one"}\n' * 5000)
    (folder / "c.jsonl").write_text('{"words": "one"}\n' * 5000 + text)
    (folder / "d.jsonl").write_text('{"text": null}\n{"text": "one"}\n')
    (folder / "e.py").write_text("print()")
    (folder / ".hidden" / "f.jsonl").write_text(text)
    # The output is inside the input, and ranges of c.jsonl have no readable record.
    out = os.fspath(folder / "out")
    options = {"exclude": "a.*"}
    # The local run comes first: it would read the results of the other as input.
    local = arose.dedup(os.fspath(folder), tmp_path / "local", **options).summary
    summary = dedup(spark, [os.fspath(folder)], out, partitions=2, input_bytes=9000, **options)
    assert summary["incomplete_files"] == local["incomplete_files"]
    assert [os.path.basename(f["path"]) for f in local["incomplete_files"]] == ["b.jsonl"]
    assert summary["unknown_files"] == {".py": 1}
    for name in ["read", "null_text", "damaged_records", "incomplete_files", "skipped"]:
        assert summary["counts"][name] == local["counts"][name], name


def test_files_that_spark_brings(spark, lines, tmp_path):
    """URLs are read through s3a."""
    out = f"file://{tmp_path}/out"
    dedup(spark, [f"file://{lines}"], out, partitions=2)
    local = arose.dedup(lines).documents.to_pyarrow()
    there = rows(os.fspath(tmp_path / "out"), "documents", ["doc"])
    assert [row["kept_doc"] for row in there] == local["kept_doc"].to_pylist()
    assert [row["position"] for row in there] == local["position"].to_pylist()
    copy = tmp_path / "copy.jsonl"
    copy.write_text(open(lines).read())
    dedup(spark, [f"file://{copy}"], out + "2", partitions=2)
    with open(copy, "a") as file:
        file.write('{"text": "one more"}\n')
    with pytest.raises(arose.InputError, match="copy.jsonl` has changed since it was read"):
        dedup(spark, [f"file://{copy}"], out + "2", partitions=2)


def test_an_executor_with_another_wheel_is_refused(spark, lines, tmp_path, monkeypatch):
    from arose import _arose

    monkeypatch.setattr(_arose, "__version__", "9.9.9")
    with pytest.raises(arose.AroseError, match="the driver runs arose 9.9.9 and this executor"):
        dedup(spark, [lines], os.fspath(tmp_path / "out"), partitions=2)


def test_a_driver_that_was_killed_is_started_again(lines, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "arose.spark", lines, "-o", out, "--master", "local[2]"]
    command += ["--partitions", "2", "--policy", "combined"]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for line in first.stderr:
        if line == "arose: verify\n":
            os.killpg(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    assert not (out / "summary.json").exists()
    # Somewhere else, with other executors and other parts.
    command = [{"local[2]": "local[3]", "2": "5"}.get(word, word) for word in command]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr[-2000:]
    stages = [line for line in again.stderr.splitlines() if line.startswith("arose: ")]
    assert stages[0] == "arose: verify"
    assert "dropped_near" in again.stdout
    check(lines, os.fspath(out), policy="combined")


def test_issue_30_the_session_of_the_caller_stays_as_it_is(spark, lines, tmp_path):
    from arose.spark import SETTINGS

    spark.conf.set("spark.sql.adaptive.enabled", "true")
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    dedup(spark, [lines], os.fspath(tmp_path / "out"), partitions=2)
    assert {name: spark.conf.get(name, None) for name in SETTINGS} == before


def test_issue_30_a_frame_may_have_any_columns(spark, tmp_path):
    """Names with dots and quotes, columns without a type, intervals."""
    from pyspark.sql import functions as f

    rows = [(1, "a rose", 0.5), (2, "a  rose", 1.5), (3, "a tulip", 2.5)]
    df = spark.createDataFrame(rows, "`doc.id` long, `the text` string, `a``b` double")
    df = df.withColumn("nothing", f.lit(None)).withColumn("later", f.expr("interval 3 days")).coalesce(1)
    found = dedup(df, text="the text", id="doc.id", directory=os.fspath(tmp_path / "frame"), partitions=1)
    assert found.columns[:5] == df.columns
    got = {row["doc.id"]: row for row in found.collect()}
    assert [got[n]["kept"] for n in (1, 2, 3)] == [True, False, True]
    assert got[2]["kept_id"] == 1 and got[2]["a`b"] == 1.5 and got[2]["nothing"] is None
    with pytest.raises(arose.InputError, match="`Kept` is a column of the result"):
        dedup(df.withColumn("Kept", f.lit(1)), text="the text")


def test_issue_30_a_frame_comes_back_with_every_row(spark, lines, tmp_path, monkeypatch):
    from arose import _frames
    from arose.spark import SETTINGS

    texts = arose.read(lines).read_all().to_pyarrow()["text"].to_pylist()[:60]
    rows = [(i, text) for i, text in enumerate([None, *texts, None])]
    # Three partitions: the order of rows is that of the partitions.
    df = spark.createDataFrame(rows, "key long, review string").repartitionByRange(3, "key")
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for wrong, said in [
        ({"text": "txet"}, "text='txet': no such column.*review"),
        ({"text": "review", "id": "k"}, "id='k': no such column"),
        ({"text": "key"}, "text='key': the column has type bigint, expected string"),
        ({"text_field": "review"}, "text_field is for files.*pass text"),
        ({"text": "review", "output": "out"}, "output is for files.*directory"),
        ({"text": "review", "against": "seen"}, "against needs a single machine"),
    ]:
        with pytest.raises(arose.AroseError, match=said):
            dedup(df, **wrong)
    with pytest.raises(arose.InputError, match="`kept` is a column of the result"):
        dedup(df.withColumnRenamed("key", "kept"), text="review")
    found = dedup(df, text="review", id="key", directory=os.fspath(tmp_path / "frame"), partitions=2)
    assert {name: spark.conf.get(name, None) for name in SETTINGS} == before
    assert found.columns[:2] == ["key", "review"] and found.isStreaming is False
    got = {row["key"]: row for row in found.collect()}
    local = arose.dedup([text for _, text in rows]).documents.to_pyarrow().to_pylist()
    assert len(got) == len(rows) and 0 < sum(not row["kept"] for row in local)
    number = {got[key]["arose_row"]: key for key in got}
    for row in local:
        own = got[row["row"]]
        assert (own["key"], own["review"]) == rows[row["row"]]
        assert (own["kept"], own["rule"]) == (row["kept"], row["rule"])
        assert own["kept_id"] == row["kept_row"] == number.get(own["kept_row"])
        assert number.get(own["cluster"]) == row["cluster"]
    # It is a table like any other: it is computed when it is used, and can be joined.
    kept = found.where("kept").join(df, "key").select("key")
    assert {row["key"] for row in kept.collect()} == {row["row"] for row in local if row["kept"]}
    removed = []
    monkeypatch.setattr(_frames.atexit, "register", lambda *call, **_: removed.append(call[1]))
    again = dedup(df, text="review", partitions=2)
    assert again.columns == ["key", "review", *_frames.FOUND] and again.count() == len(rows)
    assert len(removed) == 1 and os.path.isdir(removed[0])
