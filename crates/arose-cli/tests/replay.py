"""Serve the archive of a crawl with pywb, and check it with warcio and cdxj-indexer.

replay.py CRAWL INDEX ROOT: the directory of a crawl, its exported index, and an empty directory for
pywb's collection. Prints one line of JSON: the number of records served, and the errors. If
AROSE_PLAYWRIGHT is set to a browser module, each HTML page with status 200 is opened there too.
"""

import base64
import glob
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from cdxj_indexer.main import CDXJIndexer

crawl, index, root = sys.argv[1:]
archives = sorted(glob.glob(crawl + "/archive/*.warc.gz"))
lines = [line.rstrip("\n") for line in open(index)]
problems = []


def parsed(line):
    key, date, record = line.split(" ", 2)
    return key, date, json.loads(record)


def check_index():
    """Check that the exported index has the lines of cdxj-indexer, in the same order."""
    out = io.StringIO()
    CDXJIndexer(output=out, inputs=archives, sort=True).process_all()
    theirs = [parsed(line) for line in out.getvalue().splitlines()]
    ours = [parsed(line) for line in lines]
    order = lambda entry: (entry[0], entry[1], entry[2]["filename"], int(entry[2]["offset"]))
    for ours_one, theirs_one in zip(sorted(ours, key=order), sorted(theirs, key=order)):
        if ours_one != theirs_one:
            problems.append(f"index: {ours_one} beside {theirs_one}")
    if len(ours) != len(theirs):
        problems.append(f"index: {len(ours)} lines beside {len(theirs)}")
    if lines != sorted(lines):
        problems.append("index: the lines are not sorted")


def check_archives():
    """Check that warcio finds every digest correct."""
    command = [sys.executable, "-c", "from warcio.cli import main; main()", "check", *archives]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        problems.append(f"warcio check: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(port):
    collection = os.path.join(root, "collections", "crawl")
    os.makedirs(collection + "/archive")
    os.makedirs(collection + "/indexes")
    for path in archives:
        os.symlink(os.path.abspath(path), f"{collection}/archive/{os.path.basename(path)}")
    os.symlink(os.path.abspath(index), collection + "/indexes/index.cdxj")
    program = "from pywb.apps.cli import wayback; wayback()"
    command = [sys.executable, "-c", program, "-b", "127.0.0.1", "-p", str(port), "-d", root]
    log = open(os.path.join(root, "pywb.log"), "w")
    return subprocess.Popen(command, stdout=log, stderr=log)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect, urllib.request.ProxyHandler({}))


def ask(port, date, url):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/crawl/{date}id_/{url}")
    # A payload with a content coding is served as it was archived.
    request.add_header("Accept-Encoding", "gzip, deflate, br")
    try:
        response = opener.open(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    return response.status, response.read()


def wait_for(server, port):
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit("pywb ended: " + open(os.path.join(root, "pywb.log")).read()[-4000:])
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("pywb did not start")


def check_replay():
    """Check that pywb serves every record of the index with its status and its payload."""
    port = free_port()
    server = start(port)
    n_served = 0
    # pywb looks up captures by SURT keys, which ignore case: URLs that differ only in case share a
    # key, and pywb serves either of them.
    captures = {}
    for line in lines:
        key, _, record = parsed(line)
        captures.setdefault(key, set()).add((record["status"], record["digest"]))
    try:
        wait_for(server, port)
        for line in lines:
            key, date, record = parsed(line)
            status, body = ask(port, date, record["url"])
            digest = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
            if record["status"].startswith("3") and status == 400 and b"Self Redirect" in body:
                n_served += 1  # pywb reports a redirect to the same URL and does not follow it.
            elif (str(status), digest) in captures[key]:
                n_served += 1
            else:
                problems.append(f"{record['url']}: {status} {digest}, not {record['status']} {record['digest']}")
        shown = check_browser(port)
    finally:
        server.kill()
        server.wait()
    return n_served, shown


def payload_of(port, date, url):
    return ask(port, date, url)[1]


def check_browser(port):
    """Check that a real browser shows every page, with the styles that it links to."""
    if "AROSE_PLAYWRIGHT" not in os.environ:
        return None
    urls = {parsed(line)[2]["url"] for line in lines}
    pages = []
    for line in lines:
        _, date, record = parsed(line)
        if record.get("mime") == "text/html" and record["status"] == "200":
            body = payload_of(port, date, record["url"])
            has_style = any(url.endswith(".css") for url in urls) and b"rel=\"stylesheet\"" in body
            pages.append([date, record["url"], has_style])
    path = os.path.join(root, "pages.json")
    with open(path, "w") as out:
        json.dump(pages, out)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.mjs")
    command = ["node", script, f"http://127.0.0.1:{port}/crawl", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        problems.append(f"browser: {done.stderr[-2000:]}")
        return None
    found = json.loads(done.stdout)
    problems.extend(found["problems"])
    return {"pages": len(pages), "shown": found["shown"], "styled": found["styled"]}


check_archives()
check_index()
n_served, browser = check_replay()
print(json.dumps({"lines": len(lines), "served": n_served, "browser": browser, "problems": problems[:20]}))
