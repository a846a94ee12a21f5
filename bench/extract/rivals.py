#!/usr/bin/env python3
"""Times Python extractors over a list of HTML files, one path per line.

    python3 rivals.py selectolax|trafilatura LIST [EVERY]

Processor seconds of one process, pages read and decoded beforehand. EVERY takes each n-th page only:
trafilatura needs minutes for thousands. Needs selectolax, or trafilatura and lxml_html_clean.
"""
import sys
import time


def selectolax(html):
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for name in ("script", "style", "noscript", "template"):
        for node in tree.css(name):
            node.decompose()
    links = [node.attributes.get("href") for node in tree.css("a[href]")]
    return len(tree.body.text(separator=" ") if tree.body else "") + len(links)


def trafilatura(html):
    from trafilatura import extract

    return len(extract(html) or "")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("selectolax", "trafilatura"):
        sys.exit(__doc__)
    run = globals()[sys.argv[1]]
    paths = open(sys.argv[2]).read().split("\n")[:-1][:: int(sys.argv[3]) if len(sys.argv) > 3 else 1]
    pages = [open(path, "rb").read().decode("utf-8", "replace") for path in paths]
    megabytes = sum(len(page.encode()) for page in pages) / 1e6
    run("<p>imports are not timed</p>")
    start = time.process_time()
    result = sum(map(run, pages))
    seconds = time.process_time() - start
    print(f"{sys.argv[1]}: {len(pages)} pages, {megabytes:.1f} MB, {megabytes / seconds:.2f} MB/s, "
          f"{1e6 * seconds / len(pages):.0f} us/page ({result})")
