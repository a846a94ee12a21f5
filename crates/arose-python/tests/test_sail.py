"""The same plan on Sail, a Spark Connect server without a JVM. Experimental."""

import os

import pytest
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

import arose
from arose.spark import dedup
from test_cluster import corpus
from test_spark import check


@pytest.fixture(scope="module")
def sail():
    server = SparkConnectServer()
    server.start()
    _, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield session
    session.stop()
    server.stop()


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("sail") / "corpus.jsonl"
    corpus(path, 400)
    return os.fspath(path)


POLICIES = ["content", "jaccard", "b", "c", "combined", "site", "contained", "url"]


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_are_those_of_the_local_run(sail, lines, tmp_path, policy):
    out = os.fspath(tmp_path / "out")
    dedup(sail, [lines], out, policy=policy, partitions=3, input_bytes=20_000, gather=True)
    check(lines, out, policy=policy)


def test_its_order_is_not_relied_on(sail, lines, tmp_path):
    """Sail drops a sort that it considers unused. If this test fails, Sail has been fixed."""
    with pytest.raises(arose.AroseError, match="did not keep the order of a partition"):
        dedup(sail, [lines], os.fspath(tmp_path / "out"), partitions=3, input_bytes=20_000)
