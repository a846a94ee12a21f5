#!/usr/bin/env bash
# Makes the pictures of the README: the report of a run, and the pages of `arose serve`.
#
#   docs/pictures/make.sh [AROSE]
#
# AROSE is the command, `arose` on the path by default. Needs chromium and python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
arose="${1:-arose}"
out="$(mktemp -d)"
served=
trap '[ -z "$served" ] || kill "$served"; rm -rf "$out"' EXIT

# A page as PNG: URL, file, width and height of the window.
picture() {
    chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
        --disable-background-networking --user-data-dir="$out/profile" \
        --screenshot="$PWD/docs/pictures/$2" --window-size="$3,$4" "$1" 2>/dev/null
}

"$arose" dedup examples/texts.jsonl -o "$out/run" 2>/dev/null
picture "file://$out/run/report.html" report.png 1100 1180

"$arose" serve "$out/run" --listen 127.0.0.1:0 >"$out/log" 2>&1 &
served=$!
for _ in $(seq 100); do
    address="$(grep -o 'http://127.0.0.1:[0-9]*' "$out/log" 2>/dev/null | head -1 || true)"
    [ -z "$address" ] || break
    sleep 0.1
done
# The least similar document of a cluster, beside the one that is kept for it.
pair="$(python3 - "$address" <<'END'
import json, sys, urllib.request

def ask(path):
    return json.load(urllib.request.urlopen(sys.argv[1] + path))

clusters = ask("/api/clusters")["shown"]
cluster = min(clusters, key=lambda cluster: cluster["lowest_similarity"])["cluster"]
dropped = [d for d in ask(f"/api/cluster/{cluster}")["members"] if d["doc"] != cluster]
print("a={}&b={}".format(cluster, min(dropped, key=lambda d: d["similarity"])["doc"]))
END
)"
picture "$address/pair?$pair" pair.png 1100 1180
ls -l docs/pictures/*.png
