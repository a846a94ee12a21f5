"""The command line of arose: `arose` and `python -m arose`."""

from __future__ import annotations

import signal
import sys

from . import _arose


def main() -> int:
    """Run the command with the arguments of the process and return its exit code."""
    # Ctrl-C ends a command, as it ends the binary. Python would only record the signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _arose.main(["arose", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
