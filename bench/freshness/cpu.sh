#!/usr/bin/env bash
# Compares the CPU time of a first crawl with that of visiting every page again.
#
# cpu.sh AROSE TESTWEB [ROUNDS]
#   AROSE, TESTWEB  release binaries
#   ROUNDS          first crawls and visits, each measured in turn; default: 5
#
# Prints microseconds of CPU time (user and system, the crawler alone) per page: for a first crawl,
# and for visits of unchanged pages, with and without validators.
set -euo pipefail
arose="$(realpath "$1")" testweb="$(realpath "$2")" rounds="${3:-5}"
work="$(mktemp -d)" server=""
trap '[ -z "$server" ] || kill $server 2>/dev/null; rm -rf "$work"' EXIT
cat > "$work/settings.toml" <<TOML
[scope]
reach = "web"
[polite]
delay = 0.0
address_delay = 0.0
factor = 0.0
[network]
allow_private = true
[duplicates]
stale_after = 0
[budget]
pages = 1000000
TOML

measured() { # microseconds of CPU time per unit of the counter
    local counter="$1"
    shift
    TIMEFORMAT='%U %S'
    { time "$@" --json > "$work/summary.json" 2> /dev/null; } 2> "$work/time"
    python3 - "$work/summary.json" "$work/time" "$counter" <<'PY'
import json, pathlib, sys
n = json.load(open(sys.argv[1]))["counters"][sys.argv[3]]
user, system = map(float, open(sys.argv[2]).read().split())
print(f"{1e6 * (user + system) / n:.0f} {n}")
PY
}

for validators in with without; do
    option=""
    [ $validators = with ] || option=--no-validators
    "$testweb" serve --hosts 40 --pages 250 --mixture plain --port 0 $option > "$work/ready" &
    server=$!
    until [ -s "$work/ready" ]; do sleep 0.1; done
    read -r home dns < <(python3 -c 'import json,sys; r=json.load(open(sys.argv[1])); print(r["home"], r["dns"])' "$work/ready")
    for round in $(seq "$rounds"); do
        rm -rf "$work/crawl"
        first="$(measured pages "$arose" crawl "$home" -o "$work/crawl" --settings "$work/settings.toml" --name-server "$dns")"
        "$arose" crawl refresh "$work/crawl" 'http*' > /dev/null
        again="$(measured revisits "$arose" crawl -o "$work/crawl" --name-server "$dns")"
        echo "$validators validators: first $first, again $again" | tee -a "$work/rows"
    done
    kill $server
    wait $server 2>/dev/null || true
    : > "$work/ready"
done
python3 - "$work/rows" <<'PY'
import re, statistics, sys
rows = [re.findall(r"\d+", line) for line in open(sys.argv[1])]
names = [line.split()[0] for line in open(sys.argv[1])]
for name in dict.fromkeys(names):
    of = [row for row, other in zip(rows, names) if other == name]
    first, again = (statistics.median(int(row[i]) for row in of) for i in (0, 2))
    print(f"{name} validators, medians: first {first:.0f} us, again {again:.0f} us, ratio {again / first:.3f}")
PY
