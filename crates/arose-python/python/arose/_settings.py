"""Parameters, checked before anything runs: what Python passes, in the shape of the compiled part."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ._arose import SettingError

POLICIES = ("exact", "jaccard", "b", "c", "combined", "site", "site-union")
CHOICES = {
    "policy": POLICIES,
    "mode": ("henzinger", "content", "plain"),
    "verify": ("text", "sketch", "none"),
    "keep": ("first", "longest", "newest", "copies", "priority"),
    "exact": ("text", "bytes"),
    "short": ("exact", "any"),
    "site": ("registrable", "henzinger"),
    "pairs": ("verified", "all"),
}
#: Parameters that are whole numbers, with the smallest value.
WHOLE = {"w": 1, "cjk_w": 1, "cap": 1, "seed": 0, "memory": 0, "threads": 1, "samples": 1}
#: Parameters that are numbers above 0, up to 1.
SHARES = ("threshold", "recall")
FLAGS = ("drop_empty", "update_index", "success", "all_text", "strict", "force")


def checked(options: dict[str, Any]) -> dict[str, Any]:
    """The same options as plain Python values; an error names the parameter and what it expects."""
    return {name: _checked(name, value) for name, value in options.items()}


def _checked(name: str, value: Any) -> Any:
    if name in FLAGS:
        return _flag(name, value)
    if value is None:
        return None
    if name in CHOICES:
        return _choice(name, value, CHOICES[name])
    if name in WHOLE:
        return _whole(name, value, WHOLE[name])
    if name in SHARES:
        return _share(name, value)
    return value


def _choice(name: str, value: Any, choices: Sequence[str]) -> str:
    if isinstance(value, str) and value in choices:
        return value
    expected = ", ".join(repr(choice) for choice in choices[:-1])
    raise SettingError(f"{name}={value!r}, expected {expected} or {choices[-1]!r}")


def _whole(name: str, value: Any, least: int) -> int:
    try:
        # NumPy's integers are numbers, too; booleans are none.
        number = operator.index(value) if not isinstance(value, bool) else None
    except TypeError:
        number = None
    if number is None or number < least:
        raise SettingError(f"{name}={value!r}, expected a whole number of at least {least}")
    return number


def _share(name: str, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, (bool, str)) else None
    except (TypeError, ValueError):
        number = None
    if number is None or not 0 < number <= 1:
        raise SettingError(f"{name}={value!r}, expected a number above 0, up to 1")
    return number


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise SettingError(f"{name}={value!r}, expected True or False")


def names(parameter: str, field: str | Sequence[str] | None) -> list[str]:
    """One name or several."""
    if field is None:
        return []
    if isinstance(field, str):
        return [field]
    try:
        found: list[Any] = list(field)
    except TypeError:
        found = [field]
    if not all(isinstance(name, str) for name in found):
        raise SettingError(f"{parameter}={field!r}, expected a string or a list of strings")
    return found


def table_name(name: Any) -> str:
    """The name of a table, which is part of IDs and of a file name."""
    if isinstance(name, str) and name and len(name) <= 200 and not set(name) & set("/\\\0#"):
        return name
    raise SettingError(f"name={name!r}, expected a short string without slashes or #")
