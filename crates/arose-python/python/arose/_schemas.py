"""Schemas of messages, chunks and rows, from the compiled part."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from . import _arose

_TYPES = {
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
}
_SCHEMAS = _arose.schemas()


def arrow(name: str) -> Any:
    """Return a pyarrow schema."""
    return pa.schema([(column, _TYPES[kind]) for column, kind, _ in _SCHEMAS[name]])


def spark(name: str) -> str:
    """Return a Spark schema."""
    return ", ".join(f"{column} {kind}" for column, kind, _ in _SCHEMAS[name])
