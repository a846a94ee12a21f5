"""Paths of examples, for tests and for the examples in docstrings."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch):
    """Paths in examples start at the root of the repository."""
    monkeypatch.chdir(ROOT)


@pytest.fixture
def pages():
    return os.fspath(ROOT / "examples" / "pages.jsonl")
