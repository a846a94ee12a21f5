"""Puts the records of bench/ into the site, since pages of docs/ link to them."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
RECORDS = "bench/records"


def on_files(files, config):
    for record in sorted((ROOT / RECORDS).glob("*.md")):
        name = f"records/{record.name}"
        files.append(File.generated(config, name, content=record.read_text("utf-8")))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri.startswith("records/"):
        # Source files are not in the site.
        return re.sub(r"\[([^]]+)\]\(\.\./\.\./[^)]*\)", r"\1", markdown)
    return markdown.replace(f"](../{RECORDS}/", "](records/")
