"""Tests of the progress display during a run."""

import sys

import pytest

import arose

TEXTS = [f"text number {i}" for i in range(3000)]


def test_issue_30_a_bar_is_shown_if_it_is_asked_for(capsys, monkeypatch):
    arose.dedup(TEXTS, progress=False)
    arose.dedup(TEXTS)
    assert capsys.readouterr().err == "", "nobody watches"
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    arose.dedup(TEXTS, progress=True)
    shown = capsys.readouterr().err
    assert "\rarose: write" in shown and shown.endswith("\n") and "100%" in shown.splitlines()[-1]


def test_issue_30_the_bar_of_tqdm_ends_at_its_total(capsys, monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto")
    bars = []

    class Bar(tqdm.tqdm):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            bars.append(self)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    arose.passages(TEXTS, progress=True)
    assert bars and all(bar.n <= (bar.total or bar.n) for bar in bars)
    assert "3.00/" not in capsys.readouterr().err
    assert bars[-1].n == bars[-1].total and bars[-1].desc.startswith("arose: ")


def test_issue_30_a_terminal_has_a_bar(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    arose.dedup(TEXTS)
    assert "arose: " in capsys.readouterr().err


def test_issue_30_a_function_is_told_every_stage_of_passages():
    calls = []
    arose.passages(TEXTS, progress=lambda *call: calls.append(call))
    stage, done, total = calls[-1]
    assert done == total and total is not None
    with pytest.raises(RuntimeError, match="enough"):
        def stop(*_):
            raise RuntimeError("enough")

        arose.passages(TEXTS, progress=stop)


def test_issue_30_rows_are_counted_while_they_are_loaded():
    """Before a run reads anything, the rows of a stream must arrive."""
    import pyarrow as pa

    texts = TEXTS * 20
    for call in [arose.dedup, arose.passages]:
        for data, n_expected in [(texts, 60_000), ((text for text in texts), None), (pa.array(texts), 60_000)]:
            calls = []
            call(data, progress=lambda *told: calls.append(told))
            loaded = [(done, total) for stage, done, total in calls if stage == "load"]
            assert loaded[-1] == (60_000, 60_000) and loaded[0][1] == n_expected
            counts = [done for done, _ in loaded]
            assert 0 < counts[0] < 60_000 and counts == sorted(counts)
            assert "load" not in [stage for stage, *_ in calls[len(loaded) :]]

    def stop(stage, done, total):
        raise RuntimeError("enough")

    taken = [0]

    def endless():
        while True:
            taken[0] += 1
            yield "a text"

    with pytest.raises(RuntimeError, match="enough"):
        arose.dedup(endless(), progress=stop)
    assert taken[0] < 20_000
