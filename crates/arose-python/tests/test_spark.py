"""The job on Spark, with two executors, beside the local run; and with executors lost."""

import json
import os
import signal
import subprocess
import sys

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
        assert summary["counts"][name] == count, name
    assert summary["settings"] == local.summary["settings"]
    assert summary["cap"] == local.summary["cap"]
    return summary


@pytest.mark.parametrize(
    ("policy", "partitions", "cap"),
    [("jaccard", 3, 10_000), ("b", 2, 10_000), ("c", 1, 10_000), ("combined", 4, 5), ("site", 5, 6)],
)
def test_rows_are_those_of_the_local_run(spark, lines, tmp_path, policy, partitions, cap):
    out = os.fspath(tmp_path / "out")
    dedup(spark, [lines], out, policy=policy, partitions=partitions, cap=cap, input_bytes=20_000)
    check(lines, out, policy=policy, cap=cap)


def test_relative_paths_are_those_of_the_driver(spark, lines, tmp_path, monkeypatch):
    """Executors work in folders of their own; names of documents hold the path as it was given."""
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
    dedup(spark, [lines], out, partitions=3, input_bytes=20_000, runner=runner)
    assert all((tmp_path / f"killed-{step}").exists() for step in steps)
    check(lines, out)


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
    while True:
        try:
            dedup(spark, [lines], out, partitions=2)
            break
        except Died:
            assert len(stages) < 20
    assert len(stages) == len(set(stages)) >= 9
    check(lines, out)


def test_other_settings_and_changed_inputs_are_refused(spark, lines, tmp_path):
    copy = tmp_path / "copy.jsonl"
    copy.write_text(open(lines).read())
    out = os.fspath(tmp_path / "out")
    dedup(spark, [os.fspath(copy)], out, partitions=2)
    with pytest.raises(arose.AroseError, match="a run with another settings"):
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
    # The output lies in the input, and ranges of c.jsonl have no readable record.
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
    """Addresses take the way of s3a."""
    out = f"file://{tmp_path}/out"
    dedup(spark, [f"file://{lines}"], out, partitions=2)
    local = arose.dedup(lines).documents.to_pyarrow()
    there = rows(os.fspath(tmp_path / "out"), "documents", ["doc"])
    assert [row["kept_doc"] for row in there] == local["kept_doc"].to_pylist()
    assert [row["position"] for row in there] == local["position"].to_pylist()


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


def test_issue_30_a_frame_comes_back_with_every_row(spark, lines, tmp_path):
    texts = arose.read(lines).read_all().to_pyarrow()["text"].to_pylist()[:60]
    rows = [(i, text) for i, text in enumerate([None, *texts])]
    df = spark.createDataFrame(rows, "key long, review string").coalesce(1)
    with pytest.raises(arose.InputError, match="text='txet': no such column.*review"):
        dedup(df, text="txet")
    found = dedup(df, text="review", id="key", directory=os.fspath(tmp_path / "frame"), partitions=2)
    assert found.columns[:2] == ["key", "review"]
    got = {row["key"]: row for row in found.collect()}
    local = arose.dedup([text for _, text in rows]).documents.to_pyarrow().to_pylist()
    assert len(got) == len(rows)
    for row in local:
        assert got[row["row"]]["kept"] == row["kept"]
        assert got[row["row"]]["kept_id"] == row["kept_row"]
        assert got[row["row"]]["rule"] == row["rule"]
