#!/usr/bin/env bash
# Prints docs/commands.md: every command and option, as the command itself explains them.
#
#   docs/commands.sh [AROSE] > docs/commands.md
#
# AROSE is the command, `arose` on the path by default. The tests run the result like any other
# transcript, so `TRYCMD=overwrite cargo test -p arose-cli golden` keeps it true as well.
set -euo pipefail
arose="${1:-arose}"

# The names of the commands below a command, `help` left out.
commands() {
    "$arose" "$@" -h | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p' | grep -vx help || true
}

# A section: its level and its command, or `help TOPIC`. The tests read a backslash in output as a
# slash, so help with one is text and not a transcript; tests/golden/estimate.md has these too.
section() {
    local help kind=console
    # shellcheck disable=SC2086
    help="$("$arose" help ${2#help })"
    case "$help" in *\\*) kind=text ;; esac
    printf '\n%s `arose %s`\n\n```%s\n$ arose help %s\n%s\n\n```\n' "$1" "$2" "$kind" "${2#help }" "$help"
}

cat <<'END'
# Commands and options

This is the output of `arose help COMMAND`, for every command; `arose COMMAND --help` prints a line per option. `docs/commands.sh`
makes the page, and the tests compare it with the command. `arose man DIR` writes the same text as man pages, and `arose completions SHELL` prints completions for a shell.
[Output files](files.md) lists what the commands write. Defaults can be set in a
[configuration file](configuration.md).
END
for command in $(commands); do
    section '##' "$command"
    for part in $(commands "$command"); do
        section '###' "$command $part"
    done
done

printf '\n## Topics\n'
for topic in exit-codes policies queries units; do
    section '###' "help $topic"
done
