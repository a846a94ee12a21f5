"""The Python code in the documentation runs as it is."""

import gzip
import re
from pathlib import Path

import pandas
import pyarrow
import pytest

import arose

ROOT = Path(__file__).resolve().parents[3]
PAGES = ["README.md", "docs/guide-python.md", "docs/python.md"]
# Its code is a program that reads standard input; the tests of the crawler run one like it.
OTHERS = {"docs/crawling.md"}


def blocks(page):
    """The blocks of Python code in a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def write_archive(path):
    """Write a web archive with one page."""
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>a rose is a rose"
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/\r\n"
        "WARC-Date: 2026-01-01T00:00:00Z\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(http)}\r\n\r\n"
    )
    path.parent.mkdir()
    path.write_bytes(gzip.compress(head.encode() + http + b"\r\n\r\n"))


@pytest.mark.parametrize("page", PAGES)
def test_issue_32_code_in_the_documentation_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    write_archive(tmp_path / "crawl" / "0.warc.gz")
    arose.Index.create("seen").close()
    texts = ["once upon a midnight dreary, while I pondered", "a rose is a rose is a rose"]
    names = {
        "arose": arose,
        "texts": texts,
        "text": texts[0],
        "frame": pandas.DataFrame({"review": texts}),
        "arrow_texts": pyarrow.array(texts),
    }
    found = blocks(page)
    assert found
    for code in found:
        exec(compile(code, page, "exec"), names)  # noqa: S102


def test_issue_32_every_page_with_code_is_run():
    pages = {"README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))}
    assert {page for page in pages if blocks(page)} == {*PAGES, *OTHERS}
