"""Checks parameters before a run and converts them for the compiled part."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any, Literal, get_args

from ._arose import DEFAULT_POLICY, SettingError

Policy = Literal[
    "exact",
    "jaccard",
    "content",
    "b",
    "c",
    "combined",
    "site",
    "site-union",
    "contained",
    "url",
]
Mode = Literal["henzinger", "visible", "content", "plain"]
Verify = Literal["text", "sketch", "none"]
Keep = Literal["first", "longest", "newest", "copies", "priority"]
POLICIES: tuple[str, ...] = get_args(Policy)
CHOICES: dict[str, tuple[str, ...]] = {
    "policy": POLICIES,
    "site_counts": ("exact", "sampled"),
    "dropped": ("remove", "revisit"),
    "mode": get_args(Mode),
    "verify": get_args(Verify),
    "keep": get_args(Keep),
    "exact": ("text", "bytes"),
    "versions": ("all", "current"),
    "short": ("exact", "any"),
    "site": ("registrable", "henzinger"),
    "pairs": ("verified", "all"),
    "remove": ("same", "content"),
    "sort": ("score", "newest"),
    "collapse": ("content", "same", "none"),
}
#: Choices for parameters of `passages`.
PASSAGES: dict[str, tuple[str, ...]] = {
    "unit": ("token", "line", "paragraph", "sentence"),
    "scope": ("any", "across", "within"),
    "tokens": ("words", "all"),
    "digits": ("keep", "zero"),
    "remove": ("later", "all", "spans", "documents"),
    "cut": ("sentence", "line", "paragraph"),
}
#: Parameters that are whole numbers, with their minimum.
WHOLE = {
    "w": 1,
    "cjk_w": 1,
    "cap": 1,
    "seed": 0,
    "memory": 0,
    "threads": 1,
    "samples": 1,
    "max_file_size": 1,
    "min": 1,
    "span": 1,
    "min_unit": 0,
    "times": 2,
    "list": 0,
    "min_left": 0,
    "common": 1,
    "limit": 0,
    "offset": 0,
    "per_site": 0,
}
#: Parameters that are sizes in bytes.
BYTES = ("memory", "max_file_size")
#: Maximum values of some of them.
MOST = {
    "samples": 65535,
    # More than the cores of any machine, and few enough not to stop it.
    "threads": 1024,
    "min": 65536,
    "span": 65536,
    "min_unit": 2**32 - 1,
    "min_left": 2**32 - 1,
}
#: Parameters that are numbers above 0, up to 1.
SHARES = ("threshold", "recall")
FLAGS = (
    "drop_empty",
    "update_index",
    "success",
    "all_text",
    "strict",
    "force",
    "ids_only",
    "quality",
    "whole_first",
    "kept",
    "rebuild",
    "read_only",
)
#: Required parameters.
NEEDED = ("policy", "verify", "keep", "exact", "short", "cap", "pairs", "seed", "mode", "dropped", "unit", "collapse",
          "versions")


def checked(
    options: dict[str, Any], choices: dict[str, tuple[str, ...]] = CHOICES
) -> dict[str, Any]:
    """Return the options as plain Python values; an error names parameter and expected value."""
    if "policy" in options:
        options = {**options, "policy": chosen_policy(options)}
    return {name: _checked(name, value, choices) for name, value in options.items()}


#: Parameters of the policy jaccard that content does not have, with their defaults.
OF_JACCARD = {
    "threshold": None,
    "recall": None,
    "w": None,
    "cjk_w": None,
    "verify": "text",
    "short": "exact",
}


def chosen_policy(options: dict[str, Any]) -> Any:
    """Return the policy that was given. Without one, parameters of jaccard mean that policy."""
    if options["policy"] is not None:
        return options["policy"]
    is_jaccard = any(options.get(name, value) != value for name, value in OF_JACCARD.items())
    return "jaccard" if is_jaccard else DEFAULT_POLICY


def _checked(name: str, value: Any, choices: dict[str, tuple[str, ...]]) -> Any:
    if name in FLAGS:
        return _flag(name, value)
    if value is None and name not in NEEDED:
        return None
    if name in choices:
        return _choice(name, value, choices[name])
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
        # NumPy integers are numbers too; booleans are not.
        number = operator.index(value) if not isinstance(value, bool) else None
    except TypeError:
        number = None
    most = MOST.get(name, 2**64 - 1)
    if number is None or number < least:
        what = "number of bytes" if name in BYTES else f"whole number of at least {least}"
        raise SettingError(f"{name}={value!r}, expected a {what}")
    if number > most:
        raise SettingError(f"{name}={value!r}, expected a whole number of at most {most}")
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
    """Return one name or several as a list."""
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


def samples(parameter: str, value: Any, n: int) -> list[int]:
    """Check the MinHash values of a sketch."""
    try:
        found = [operator.index(number) for number in value]
    except TypeError:
        raise SettingError(f"{parameter}={value!r}, expected the samples of a sketch") from None
    if len(found) not in (0, n) or not all(0 <= number < 2**32 for number in found):
        raise SettingError(f"{parameter} has {len(found)} numbers, expected {n} samples of a sketch")
    return found


def string(parameter: str, value: Any) -> str:
    """Check a string."""
    if isinstance(value, str):
        return value
    raise TypeError(f"{parameter} is {type(value).__name__}, expected str")


def text(parameter: str, value: Any) -> str | None:
    """Check a string or None."""
    if value is None or isinstance(value, str):
        return value
    raise SettingError(f"{parameter}={value!r}, expected a string")


def path(parameter: str, value: Any) -> str | None:
    """Check a path or None."""
    if value is None:
        return None
    try:
        found = os.fspath(value)
    except TypeError:
        found = None
    if not isinstance(found, str):
        raise SettingError(f"{parameter}={value!r}, expected a path")
    return found


def directory(parameter: str, value: Any) -> str:
    """Check a required path."""
    found = path(parameter, value)
    if found is None:
        raise SettingError(f"{parameter}=None, expected a path")
    return found


def table_name(name: Any) -> str:
    """Check the name of a table, which is part of IDs and of a file name."""
    if name is None:
        return "table"
    if isinstance(name, str) and name and len(name) <= 200 and not set(name) & set("/\\\0#"):
        return name
    raise SettingError(f"name={name!r}, expected a short string without slashes or #")


def reading(
    mode: str,
    text_field: str | Sequence[str],
    id_field: str | Sequence[str],
    url_field: str | Sequence[str],
    success: bool,
    threads: int | None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    all_text: bool = False,
    strict: bool = False,
) -> dict[str, Any]:
    """Return the settings for reading documents."""
    options = {"mode": mode, "success": success, "all_text": all_text, "strict": strict}
    return {
        **checked({**options, "threads": threads}),
        "text_field": names("text_field", text_field),
        "id_field": names("id_field", id_field),
        "url_field": names("url_field", url_field),
        "include": names("include", include),
        "exclude": names("exclude", exclude),
    }
