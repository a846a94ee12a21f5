"""Estimates from real text with known sizes: 4,598 articles in three search engines on loopback.

usage: run.py ARTICLES.jsonl.zst AROSE FOLDER

Two engines are `arose serve`, one is Xapian Omega behind Python's CGI server. Runs `arose estimate study` with 1,000 pages
per engine, then estimates the sizes of two engines with six seeds, and prints every figure with its true value.
"""

import http.server
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse

OMEGA = "/usr/lib/cgi-bin/omega/omega"
SHARES = {"a": 0.6, "b": 0.45, "omega": 0.3}


def articles(path):
    lines = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    rows = map(json.loads, lines.splitlines())
    return [("http://wiki.example/" + row["title"], row["text"]) for row in rows]


def write_jsonl(path, pages):
    with open(path, "w") as out:
        for url, text in pages:
            out.write(json.dumps({"url": url, "text": text}) + "\n")


def index_omega(folder, pages):
    os.makedirs(folder + "/db", exist_ok=True)
    with open(folder + "/pages.script", "w") as out:
        out.write("url : field=url boolean=Q unique=Q\ntext : index\n")
    records = "".join(f"url={url}\ntext={' '.join(text.split())}\n\n" for url, text in pages)
    command = ["scriptindex", folder + "/db/pages", folder + "/pages.script"]
    subprocess.run(command, input=records.encode(), check=True, capture_output=True)
    with open(folder + "/omega.conf", "w") as out:
        out.write(f"database_dir {folder}/db\ntemplate_dir /var/lib/xapian-omega/templates\n")
        out.write(f"log_dir {folder}\ncdb_dir {folder}\n")


def serve_omega(folder, pages):
    texts = dict(pages)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body at once: Nagle's algorithm would delay the second of two small packets

        def log_message(self, *_):
            pass

        def do_GET(self):
            path, _, query = self.path.partition("?")
            if path == "/text":
                url = urllib.parse.parse_qs(query)["url"][0]
                body, kind = texts[url].encode(), "text/plain; charset=utf-8"
            else:
                env = {"OMEGA_CONFIG_FILE": folder + "/omega.conf", "REQUEST_METHOD": "GET", "QUERY_STRING": query}
                out = subprocess.run([OMEGA], env=env, capture_output=True, check=True).stdout
                body, kind = out.partition(b"\n\n")[2], "application/xml; charset=utf-8"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def serve_arose(arose, folder):
    command = [arose, "serve", folder, "--listen", "127.0.0.1:0"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if "open http" in line:
            threading.Thread(target=child.stderr.read, daemon=True).start()
            return child, line.split("open ")[1].strip().rstrip("/")
    raise SystemExit("arose serve did not start")


def timed(command):
    start, before = time.time(), os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{' '.join(command[1:4])}: {time.time() - start:.1f} s, {cpu:.1f} s of CPU time (clients and CGI)")
    return done.stdout


def figures(found):
    return {figure["name"]: figure for figure in found["figures"]}


def show(name, figure, truth):
    value, interval = figure["value"], figure["interval"]
    error = 100 * (value / truth - 1)
    ends = "-" if interval is None else f"{interval[0]:.4g} to {interval[1]:.4g}"
    print(f"  {name:45} {value:10.4g}  truth {truth:10.4g}  error {error:+6.1f} %  interval {ends}")


def main(path, arose, folder):
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    pages, draw = articles(path), random.Random(1)
    held = {name: [page for page in pages if draw.random() < share] for name, share in SHARES.items()}
    write_jsonl(folder + "/all.jsonl", pages)
    children, study = [], ["samples = 1000\nsize_queries = 0\nlexicon = ['all.jsonl']\n"]
    for name in ("a", "b"):
        write_jsonl(f"{folder}/{name}.jsonl", held[name])
        command = [arose, "dedup", f"{folder}/{name}.jsonl", "-o", f"{folder}/{name}", "--force"]
        subprocess.run([*command, "--policy", "jaccard"], check=True, capture_output=True)
        child, url = serve_arose(arose, f"{folder}/{name}")
        children.append(child)
        study.append(f"[[engine]]\nname = '{name}'\npreset = 'arose'\nurl = '{url}'\ndelay = 0\n")
    index_omega(folder, held["omega"])
    port = serve_omega(folder, held["omega"])
    study.append(
        f"[[engine]]\nname = 'omega'\npreset = 'omega'\nurl = 'http://127.0.0.1:{port}/omega?DB=pages'\n"
        f"document = 'http://127.0.0.1:{port}/text?url={{address}}'\ndelay = 0\n"
    )
    with open(folder + "/study.toml", "w") as out:
        out.write("".join(study))
    try:
        timed([arose, "estimate", "study", folder + "/study.toml", "-o", folder + "/results", "--print", "none"])
        with open(folder + "/results/estimates.json") as file:
            found = json.load(file)
        overlap = figures(next(one for one in found["findings"] if one["method"] == "overlap"))
        union = len({url for own in held.values() for url, _ in own})
        for name, own in held.items():
            if name != "a":
                show(f"{name} / a", overlap[f"{name} / a"], len(own) / len(held["a"]))
            show(f"{name} / union", overlap[f"{name} / union"], len(own) / union)
        show("union / a", overlap["union / a"], union / len(held["a"]))
        print("  warnings:", next(one for one in found["findings"] if one["method"] == "overlap")["warnings"])
        with open(folder + "/omega.toml", "w") as out:
            out.write(study[-1].replace("[[engine]]\n", ""))
        for seed in map(str, range(1, 7)):
            size = [arose, "estimate", "corpus-size", folder + "/omega.toml", "--lexicon", folder + "/all.jsonl", "-n", "800", "--json", "--seed", seed]
            show("pages of omega", figures(json.loads(timed(size)))["pages matched by the pool"], len(held["omega"]))
            size = [arose, "estimate", "corpus-size", folder + "/a", "-n", "800", "--json", "--seed", seed]
            show("pages of a", figures(json.loads(timed(size)))["pages matched by the pool"], len(held["a"]))
    finally:
        for child in children:
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
