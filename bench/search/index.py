"""Indexes pages with arose and with omindex; prints CPU seconds and megabytes of text per CPU second."""

import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile


def cpu(command):
    """Runs a command and returns its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", help="the output of `arose dedup` over the pages")
    parser.add_argument("pages", help="JSON lines")
    parser.add_argument("--pages", type=int, default=20000, dest="n", help="pages for omindex")
    parser.add_argument("--arose", default="arose")
    options = parser.parse_args()
    megabytes = json.load(open(f"{options.out}/summary.json"))["counts"]["text_bytes"] / 1e6
    shutil.rmtree(f"{options.out}/search-1", ignore_errors=True)
    seconds = cpu([options.arose, "search", options.out, "a"])
    print(f"arose    {megabytes:8.0f} MB {seconds:8.1f} CPU s {megabytes / seconds:7.1f} MB/s a core")
    if not shutil.which("omindex"):
        return print("omindex is not installed")
    with tempfile.TemporaryDirectory() as folder:
        n_bytes = 0
        with open(options.pages, encoding="utf-8") as lines:
            for i, line in zip(range(options.n), lines):
                text = json.loads(line)["text"].encode()
                n_bytes += len(text)
                page = pathlib.Path(folder, "pages", f"{i // 1000}", f"{i}.txt")
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_bytes(text)
        megabytes = n_bytes / 1e6
        command = ["omindex", "--db", os.path.join(folder, "db"), "--url", "/", os.path.join(folder, "pages")]
        seconds = cpu(command)
        print(f"omindex  {megabytes:8.0f} MB {seconds:8.1f} CPU s {megabytes / seconds:7.1f} MB/s a core")


main()
