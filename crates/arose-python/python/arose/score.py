"""Scores pages of a crawl with a Python function.

``arose crawl --topic FILE`` runs this module as its scorer::

    scorer = "command"
    command = ["python3", "-m", "arose.score", "mymodule:myfunction"]

The function takes a page, a dict with ``url``, ``title`` and ``text``, and returns a number from 0 to
1. The module is searched for in the current directory first. If the function raises, the page has no
score and the traceback goes to standard error.
"""

import importlib
import json
import os
import sys
import traceback


def main() -> int:
    """Write a line with a score for each line of standard input."""
    if len(sys.argv) != 2 or ":" not in sys.argv[1]:
        print("usage: python -m arose.score MODULE:FUNCTION", file=sys.stderr)
        return 2
    module, _, function = sys.argv[1].partition(":")
    sys.path.insert(0, os.getcwd())
    score = getattr(importlib.import_module(module), function)
    # Output of the function must not be taken for a response.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        page = json.loads(line)
        try:
            found = float(score(page))
        except Exception:
            traceback.print_exc()
            found = float("nan")
        # NaN is not valid JSON, so null is written.
        value = found if found == found else None
        print(json.dumps({"id": page["id"], "score": value}), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
