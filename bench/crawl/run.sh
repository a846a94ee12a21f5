#!/usr/bin/env bash
# Runs arose on the loopback web of a rig for crawlers, and beside it wget2.
#
# run.sh RIG BENCH AROSE TESTWEB [STEP...]
#   RIG      directory of the rig: make_web.py, nginx.conf.in, run.py
#   BENCH    directory for the webs and the results; a few GB
#   AROSE, TESTWEB  release binaries
#   STEP     web, docs-web, many, orders, docs, whole, polite; default: web many polite
#
# Needs root (a network namespace without a route), nginx and wget2. `docs-web` downloads and unpacks
# Debian's documentation packages. Results: BENCH/results.jsonl, and the judge's lines on the terminal.
set -euo pipefail
rig="$(realpath "$1")" arose="$(realpath "$3")" testweb="$(realpath "$4")"
mkdir -p "$2/logs" "$2/out" "$2/run"
bench="$(realpath "$2")"
shift 4
[ $# -gt 0 ] || set -- web many polite
namespace=crawlbench

settings() { # the output, and further lines of a section
    cat > "$1" <<TOML
[scope]
reach = "web"
$2
[polite]
delay = 0.0
address_delay = 0.0
factor = 0.0
[network]
allow_private = true
[duplicates]
links = "first"
stale_after = 0
[budget]
max_pages = 1000000
pages = 1000000
[machine]
threads = 0
TOML
}

start_server() {
    ip netns list | grep -q "^$namespace" || { ip netns add "$namespace"; ip -n "$namespace" link set lo up; }
    [ ! -s "$bench/run/nginx.pid" ] || kill "$(cat "$bench/run/nginx.pid")" 2>/dev/null || true
    sleep 1
    sed "s#@OUT@#$bench#g" "$rig/nginx.conf.in" > "$bench/run/nginx.conf"
    ip netns exec "$namespace" nginx -c "$bench/run/nginx.conf"
}

rig_run() { # name, web, command
    python3 "$rig/run.py" "$bench" "$1" "$2" --cap 120 -- "${@:3}"
}

crawl() { # web, name of the row
    rm -rf "$bench/out/arose"
    rig_run "${2:-arose}" "$1" "$arose" crawl "$bench/$1_seeds.txt" -o "$bench/out/arose" --settings "$bench/$1.toml"
}

wget2_run() { # web, further options
    rm -rf "$bench/out/wget2"
    rig_run wget2_64 "$1" wget2 -q -r -l inf -H --http2=off --tries=1 --user-agent=benchbot/0.1 \
        --max-threads=64 -P "$bench/out/wget2" "${@:2}" -i "$bench/$1_seeds.txt"
}

for step in "$@"; do
    case $step in
    web)
        mkdir -p "$bench/packages"
        python3 "$rig/make_web.py" "$bench/packages" "$bench"
        start_server ;;
    docs-web)
        mkdir -p "$bench/packages"
        packages="$(sed -n '/^DOCS = """/,/"""/p' "$rig/make_web.py" | tr -d '"' | sed 's/.*= //; s/\.split()//')"
        for package in $packages; do
            [ ! -d "$bench/packages/$package" ] || continue
            (cd "$bench/packages" && apt-get download "$package" && dpkg -x "$package"_*.deb "$package" && rm "$package"_*.deb) \
                || echo "no package $package here"
        done
        python3 "$rig/make_web.py" "$bench/packages" "$bench"
        start_server ;;
    many)
        settings "$bench/many.toml" ""
        crawl many
        wget2_run many
        crawl many ;;
    orders) # the same crawl by both orders, in turn
        for order in opic breadth opic breadth; do
            settings "$bench/many.toml" "[crawl]
order = \"$order\""
            crawl many "arose_$order"
        done ;;
    docs)
        hosts="$(cut -f1 "$bench/docs_hosts.tsv" | sed 's/.*/"&"/' | paste -sd,)"
        endings='png|gif|jpe?g|svg|css|js|pdf|gz|zip|txt|map|inv|woff2?|ttf|ico|xml|json|dot|mp4|webp|md5|tag|tar|c|cpp|h|hpp|py'
        settings "$bench/docs.toml" "hosts = [$hosts]
exclude = ['\\.($endings)\$']"
        crawl docs
        wget2_run docs -D "$(cut -f1 "$bench/docs_hosts.tsv" | paste -sd,)" \
            -R '*.png,*.gif,*.jpg,*.jpeg,*.svg,*.css,*.js,*.pdf,*.gz,*.zip,*.txt,*.map,*.inv,*.woff,*.woff2,*.ttf,*.ico,*.xml,*.json'
        crawl docs ;;
    whole) # after docs: do the defaults for duplicates lose a page?
        sed -i '/^\[duplicates\]/,/^stale_after/d' "$bench/docs.toml"
        crawl docs arose_defaults ;;
    polite)
        rm -rf "$bench/out/polite" "$bench/requests.tsv"
        web=(--hosts 7000 --mixture plain --pages 50 --port 8090)
        "$testweb" truth "${web[@]}" | grep -oE '"url":"[^"]*:8090/"' | cut -d'"' -f4 > "$bench/polite_seeds.txt"
        "$testweb" serve "${web[@]}" --dns 5390 --for 150 --log "$bench/requests.tsv" &
        server=$!
        sleep 3
        cat > "$bench/polite.toml" <<TOML
[scope]
reach = "web"
[network]
allow_private = true
dns_servers = ["127.0.0.1:5390"]
[duplicates]
links = "first"
stale_after = 0
[budget]
max_pages = 1000000
pages = 1000000
[fetch]
in_flight = 2000
idle_connections = 9000
TOML
        time "$arose" crawl "$bench/polite_seeds.txt" -o "$bench/out/polite" --settings "$bench/polite.toml" --seconds 130
        wait "$server"
        "$testweb" judge "$bench/requests.tsv" "${web[@]}" --delay 1 ;;
    *) echo "no step $step" >&2; exit 2 ;;
    esac
done
tail -n 6 "$bench/results.jsonl" 2>/dev/null || true
