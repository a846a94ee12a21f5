"""A progress bar in terminals and notebooks: `tqdm` if it is installed, a plain line otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ._arose import SettingError

Callback = Callable[[str, int, "int | None"], Any]


class Bar:
    """One bar per stage; called with stage, processed records and total records."""

    def __init__(self) -> None:
        self._stage = ""
        self._bar: Any = None
        self._width = 0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._stage:
            self.close()
            self._stage = stage
            self._bar = _tqdm(stage, total)
        if self._bar is None:
            self._write(stage, done, total)
            return
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def _write(self, stage: str, done: int, total: int | None) -> None:
        share = f" {done / total:4.0%}" if total else ""
        count = f"{done:,} of {total:,}" if total else f"{done:,}"
        line = f"arose: {stage}{share} {count}"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def close(self) -> None:
        """End the line of the current stage."""
        if self._bar is not None:
            self._bar.close()
        elif self._width:
            print(file=sys.stderr, flush=True)
        self._bar, self._width = None, 0


def _tqdm(stage: str, total: int | None) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    is_large = total is None or total >= 10_000
    name = f"arose: {stage}"
    return tqdm(total=total, desc=name, file=sys.stderr, unit="rec", unit_scale=is_large)


def is_interactive() -> bool:
    """Return whether the output is a terminal or a notebook."""
    if "ipykernel" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


def callback_of(progress: Any) -> Callback | None:
    """Return the function to call during a run."""
    if progress is None:
        return Bar() if is_interactive() else None
    if isinstance(progress, bool):
        return Bar() if progress else None
    if callable(progress):
        callback: Callback = progress
        return callback
    raise SettingError(f"progress={progress!r}, expected True, False, None or a function")


def close(callback: Callback | None) -> None:
    """End a bar, also after an error."""
    if isinstance(callback, Bar):
        callback.close()
