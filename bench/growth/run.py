"""Measures `arose dedup` on a hundred thousand to a hundred million documents.

    python3 bench/growth/run.py --arose target/release/arose --dir DIR usual:1000000 template99:1000000

Each argument is a shape and a number of documents. The shapes are

    usual       planted documents of 60 words (`arose evaluate plant --words 60`)
    template76  pages of one template, similarity 0.76
    template80  pages of one template, similarity 0.80
    template99  pages of one template, similarity 0.99
    identical   one text
    one-key     half of the documents with a common key, the others different
    huge        a thousand small documents, and one with the given number of words
    one-site    texts of 100 words out of 20,000 (Zipf's law), on one site
    many-sites  the same, each on its own site
    items       pages on one site, 120 words of a template and 20 words of their own

Corpora are made once, compressed with zstd where a `zstd` command is found, and stay in DIR. Each run
has `--memory 2GiB` (or `--memory SIZE`) and the policy `jaccard` (or `--policy NAME`), and with `--ids-only` lists
the kept documents instead of copying them. A line of JSON per run goes to standard output: CPU seconds
(user and system), wall seconds, peak resident bytes (VmHWM), the maximum size of the work directory
in total and per document, and the counts of the run. Figures are only meaningful on an idle machine.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

#: Documents in a planted part; the generator holds a part in memory.
PART = 1_000_000

#: Shapes whose documents have a URL.
SITES = ("one-site", "many-sites", "items")


def main():
    options = parse()
    options.dir.mkdir(parents=True, exist_ok=True)
    for run in options.runs:
        shape, _, n_documents = run.partition(":")
        corpus = options.dir / f"{shape}-{n_documents}"
        if not corpus.exists():
            make(options.arose, shape, int(n_documents), corpus)
        print(json.dumps(measure(options, run, corpus, int(n_documents))), flush=True)


def parse():
    parser = argparse.ArgumentParser(description="Measure how arose dedup grows.")
    parser.add_argument("--arose", type=Path, required=True, help="the program, built for release")
    parser.add_argument("--dir", type=Path, required=True, help="where corpora and results go")
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--policy", default="jaccard")
    parser.add_argument("--ids-only", action="store_true", help="write no copies of kept documents")
    parser.add_argument("runs", nargs="+", metavar="SHAPE:N")
    return parser.parse_args()


def make(arose, shape, n_documents, corpus):
    """Writes a corpus into a directory that exists only if the corpus is complete."""
    partial = corpus.with_name(corpus.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    if shape == "usual":
        for number, start in enumerate(range(0, n_documents, PART)):
            n = min(PART, n_documents - start)
            planted = partial / "planted"
            command = [arose, "evaluate", "plant", "-o", planted, "--documents", str(n)]
            command += ["--words", "60", "--seed", str(number + 1)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            (planted / "documents.jsonl").rename(partial / f"part{number:03}.jsonl")
            shutil.rmtree(planted)
            compress(partial / f"part{number:03}.jsonl")
    else:
        path = partial / "part000.jsonl"
        with open(path, "w") as file:
            for number, text in enumerate(texts(shape, n_documents)):
                site = number if shape == "many-sites" else 1
                url = f'"url": "http://site{site}.example/{number}", ' if shape in SITES else ""
                file.write(f'{{{url}"text": "{text}"}}\n')
        # Equal texts compress so well that the reader would reject them as a decompression bomb.
        if shape != "identical":
            compress(path)
    partial.rename(corpus)


def texts(shape, n_documents):
    """Yields the texts of a shape. The similarity of two pages with t common shingles and m of their own
    is t / (t + 2 m)."""
    chance = random.Random(1)

    def own(n):
        return " ".join(f"own{chance.getrandbits(48):x}" for _ in range(n))

    def page(n_words, n_own):
        words = " ".join(f"word{i}" for i in range(n_words))
        return f"{words} {own(n_own)}"

    if shape in ("one-site", "many-sites"):
        return (" ".join(f"w{int(20_000 ** chance.random())}" for _ in range(100)) for _ in range(n_documents))
    templates = {"template76": (104, 16), "template80": (104, 12), "template99": (204, 1), "items": (120, 20)}
    if shape in templates:
        return (page(*templates[shape]) for _ in range(n_documents))
    if shape == "identical":
        return (page(60, 0).strip() for _ in range(n_documents))
    if shape == "one-key":
        return (page(60, 20) if i % 2 else own(60) for i in range(n_documents))
    if shape == "huge":
        return (own(n_documents if i == 500 else 60) for i in range(1001))
    sys.exit(f"there is no shape `{shape}`")


def compress(path):
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", "--rm", path], check=True)


def measure(options, run, corpus, n_documents):
    out = options.dir / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [options.arose, "dedup", corpus, "-o", out, "--memory", options.memory]
    command += ["--threads", options.threads, "--policy", options.policy]
    command += ["--ids-only"] if options.ids_only else []
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peaks = {"memory": 0, "disk": 0}
    watcher = threading.Thread(target=watch, args=(process, out / ".arose", peaks))
    watcher.start()
    code = process.wait()
    seconds = time.monotonic() - start
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        sys.exit(f"{run}: exit code {code}")
    summary = json.loads((out / "summary.json").read_text())
    counts = summary["counts"]
    return {
        "run": run,
        "policy": options.policy,
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "wall_seconds": round(seconds, 2),
        "peak_memory_bytes": max(peaks["memory"], summary["peak_memory_bytes"] or 0),
        "peak_disk_bytes": peaks["disk"],
        "disk_bytes_per_document": round(peaks["disk"] / max(1, counts["read"]), 1),
        "counts": {name: n for name, n in counts.items() if isinstance(n, int)},
        "recall": summary["recall"]["estimated"],
        "stages": {stage["name"]: stage["cpu_seconds"] for stage in summary["stages"]},
    }


def watch(process, work, peaks):
    """Samples memory and the size of the work directory ten times a second."""
    while process.poll() is None:
        peaks["memory"] = max(peaks["memory"], high_water(process.pid))
        peaks["disk"] = max(peaks["disk"], used(work))
        time.sleep(0.1)


def high_water(pid):
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0  # it has ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def used(work):
    """Returns the bytes on disk of the files in a directory, ignoring files removed meanwhile."""
    total = 0
    for folder, _, names in os.walk(work):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


if __name__ == "__main__":
    main()
