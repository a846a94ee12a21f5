#!/usr/bin/env python3
"""Measures how fast arose and other parsers read HTML pages and JSON lines, in one interleaved run.

    ./pages.sh DIR
    python3 -m venv VENV && VENV/bin/pip install selectolax==1.0.2 trafilatura==2.3.1 lxml_html_clean
    VENV/bin/python speed.py DIR [--pages 24000] [--sample 400] [--rounds 5]

Pages are drawn by a fixed seed from all HTML files below 2 MB and decoded before anything is timed.
All engines read the same pages; trafilatura, which takes about 25 ms per page, and `content` read a
sample of them. Each round runs every engine once, one after the other, on one thread; figures are
medians of CPU seconds over the rounds. The results of the engines are compared on the sample
first, word by word. Prints a table and writes it to ../records.
"""
import argparse
import datetime
import importlib.metadata
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORD = re.compile(r"\w+")
LARGEST = 2_000_000


def selectolax(html):
    """Returns the visible text, and the targets of links as written."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for name in ("script", "style", "noscript", "template"):
        for node in tree.css(name):
            node.decompose()
    links = [node.attributes.get("href") for node in tree.css("a[href]")]
    return (tree.body.text(separator=" ") if tree.body else ""), links


def trafilatura(html):
    from trafilatura import extract

    return extract(html) or ""


class Ours:
    """The example `html_speed`, which answers one line per command."""

    def __init__(self, pages, sample):
        build = ["cargo", "build", "--release", "--quiet", "-p", "arose-corpus", "--example", "html_speed"]
        subprocess.run(build, cwd=ROOT, check=True)
        metadata = ["cargo", "metadata", "--format-version=1", "--no-deps"]
        metadata = json.loads(subprocess.run(metadata, cwd=ROOT, check=True, capture_output=True).stdout)
        program = pathlib.Path(metadata["target_directory"], "release/examples/html_speed")
        self.process = subprocess.Popen([program, pages, sample], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, command):
        """Seconds and bytes."""
        print(command, file=self.process.stdin, flush=True)
        seconds, n_bytes = self.process.stdout.readline().split()
        return float(seconds), int(n_bytes)


def timed(function, inputs):
    start = time.process_time()
    for one in inputs:
        function(one)
    return time.process_time() - start, sum(len(one.encode()) for one in inputs)


def choose(folder, n_pages, n_sample):
    paths = sorted(path for pattern in ("*.html", "*.htm") for path in pathlib.Path(folder).resolve().rglob(pattern)
                   if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size < LARGEST)
    draw = random.Random(20260101)
    pages = draw.sample(paths, min(n_pages, len(paths)))
    return pages, draw.sample(pages, min(n_sample, len(pages))), len(paths)


def words(text):
    return Counter(WORD.findall(text.lower()))


def found(ours, theirs):
    """Returns the share of the words of the second text that are in the first."""
    hits = total = 0
    for ours, theirs in zip(ours, theirs):
        ours, theirs = words(ours), words(theirs)
        hits += sum((ours & theirs).values())
        total += sum(theirs.values())
    return hits / max(total, 1)


def write_lines(file, texts, n_bytes, ascii_only):
    """Writes JSON lines with Python's json module, repeated up to a sufficient size."""
    written = n = 0
    with open(file, "w", encoding="utf-8") as out:
        while written < n_bytes:
            for text in texts:
                row = {"id": n, "url": f"https://docs.example.org/{n}", "text": text}
                line = json.dumps(row, ensure_ascii=ascii_only) + "\n"
                out.write(line)
                written += len(line.encode())
                n += 1


def compare(dumped, pages):
    """Compares the texts that the engines extract from the sample."""
    rows = [json.loads(line) for line in open(dumped, encoding="utf-8")]
    all_text, content = [row["text"] for row in rows], [row["content"] for row in rows]
    by_selectolax = [selectolax(page) for page in pages]
    by_trafilatura = [trafilatura(page) for page in pages]
    everything = [text for text, _ in by_selectolax]
    n_links = sum(len(links) for _, links in by_selectolax)
    return [
        ("words of selectolax that `henzinger` has", found(all_text, everything)),
        ("links of `henzinger` by those of selectolax", sum(row["links"] for row in rows) / max(n_links, 1)),
        ("words of trafilatura that `content` has", found(content, by_trafilatura)),
        ("words of `content` that trafilatura has", found(by_trafilatura, content)),
    ]


def machine():
    model = re.search(r"model name\s*: (.*)", open("/proc/cpuinfo").read())
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("selectolax", "trafilatura"))
    python = sys.version.split()[0]
    return f"{model[1] if model else 'unknown processor'}; rustc {rustc}, Python {python}, {versions}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--pages", type=int, default=24_000)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jsonl-bytes", type=int, default=300_000_000)
    options = parser.parse_args()

    paths, sample, n_paths = choose(options.folder, options.pages, options.sample)
    read = lambda paths: [path.read_bytes().decode("utf-8", "replace") for path in paths]
    pages, sample_pages = read(paths), read(sample)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, some in (("all", paths), ("sample", sample)):
            (work / name).write_text("".join(f"{path}\n" for path in some))
        ours = Ours(work / "all", work / "sample")
        ours(f"dump {work / 'dump'}")
        quality = compare(work / "dump", sample_pages)
        texts = [json.loads(line)["text"] for line in open(work / "dump", encoding="utf-8")]
        # One letter in eight becomes a non-ASCII letter.
        foreign = [text.translate({ord("e"): "é", ord("t"): "т"}) for text in texts]
        files = {"as they are": (texts, False), "in ASCII": (texts, True),
                 "a letter in six foreign, in ASCII": (foreign, True)}
        for n, (lines, ascii_only) in enumerate(files.values()):
            write_lines(work / f"{n}.jsonl", lines, options.jsonl_bytes, ascii_only)
        engines = {
            "`henzinger`, text": lambda: ours("text"),
            "`henzinger`, text and links": lambda: ours("links"),
            "selectolax, text and links": lambda: timed(selectolax, pages),
            "`content`, all pages": lambda: ours("all content"),
            "`content`, the sample": lambda: ours("content"),
            "trafilatura, the sample": lambda: timed(trafilatura, sample_pages),
        }
        for n, name in enumerate(files):
            engines[f"JSON lines, {name}"] = lambda n=n: ours(f"jsonl {work / f'{n}.jsonl'}")
        seconds = {name: [] for name in engines}
        sizes = {}
        for round_ in range(options.rounds):
            for name, run in engines.items():
                took, sizes[name] = run()
                seconds[name].append(took)
                print(f"round {round_ + 1}: {name}: {sizes[name] / took / 1e6:.1f} MB/s", file=sys.stderr)
        ours.process.stdin.close()
        ours.process.wait()
    speed = {name: sizes[name] / statistics.median(seconds[name]) / 1e6 for name in engines}
    report(options, paths, n_paths, sample, quality, seconds, sizes, speed)


def report(options, paths, n_paths, sample, quality, seconds, sizes, speed):
    today = datetime.date.today().isoformat()
    megabytes = sizes["`henzinger`, text"] / 1e6
    lines = [
        f"# HTML and JSON lines, {today}", "",
        f"Command: `speed.py DIR --pages {options.pages} --sample {options.sample} --rounds {options.rounds}`, "
        "in `bench/html`, DIR made by `pages.sh`.", "",
        f"Machine: {machine()}. CPU time, medians of {options.rounds} interleaved rounds, one thread.", "",
        f"{len(paths)} pages of {n_paths}, {megabytes:.0f} MB; sample of {len(sample)} pages, "
        f"{sizes['trafilatura, the sample'] / 1e6:.1f} MB.", "",
        "| engine | MB/s | slowest and fastest round |", "|---|---|---|",
    ]
    for name, took in seconds.items():
        rounds = f"{sizes[name] / max(took) / 1e6:.1f} to {sizes[name] / min(took) / 1e6:.1f}"
        lines.append(f"| {name} | {speed[name]:.1f} | {rounds} |")
    links, content = speed["`henzinger`, text and links"], speed["`content`, the sample"]
    ratios = [
        ("`henzinger` with links to selectolax", links / speed["selectolax, text and links"]),
        ("`henzinger` with links to trafilatura", links / speed["trafilatura, the sample"]),
        ("`content` to trafilatura, same pages", content / speed["trafilatura, the sample"]),
    ]
    lines += ["", "| ratio | times |", "|---|---|"] + [f"| {name} | {ratio:.1f} |" for name, ratio in ratios]
    lines += ["", "| on the sample | share |", "|---|---|"] + [f"| {name} | {share:.3f} |" for name, share in quality]
    text = "\n".join(lines) + "\n"
    print(text)
    (HERE.parent / "records" / f"{today}-html.md").write_text(text)


if __name__ == "__main__":
    main()
