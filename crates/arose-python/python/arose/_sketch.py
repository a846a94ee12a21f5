"""Sketches of many texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _arose, _inputs, _settings
from ._arose import SketchReader, Table
from ._settings import Policy, names


class Sketcher:
    """Sketches that a policy compares.

    For jaccard, a sketch is a list of `samples` MinHash values (default: 128) of shingles of `w`
    tokens. For b it is six super-shingles, for c a simhash of 384 bits, for combined and site both.
    Only sketches with the same settings can be compared.

    >>> sketcher = arose.Sketcher("jaccard", samples=128)
    >>> table = sketcher.sketch(["a rose is a rose is a rose", ""])
    >>> table.column_names
    ['n_tokens', 'digest', 'samples']
    """

    def __init__(
        self,
        policy: Policy = "jaccard",
        *,
        w: int | None = None,
        cjk_w: int | None = None,
        samples: int | None = None,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        options: dict[str, Any] = {
            "policy": policy,
            "w": w,
            "cjk_w": cjk_w,
            "samples": samples,
            "seed": seed,
            "threads": threads,
        }
        self._options = _settings.checked(options)
        self._native = _arose.Sketcher(json.dumps(self._options))
        self._n_samples = 128 if samples is None else int(samples)

    def __getstate__(self) -> dict[str, Any]:
        return self._options

    def __setstate__(self, options: dict[str, Any]) -> None:
        policy = options["policy"]
        self.__init__(policy, **{k: v for k, v in options.items() if k != "policy"})  # type: ignore[misc]

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in self._options.items() if value is not None]
        return f"arose.Sketcher({', '.join(given)})"

    def sketch(self, texts: Any) -> Table:
        """Sketch texts: a list of strings, or a string array of pyarrow, polars, pandas or any
        other library that supports Arrow.

        The result has a row per text: n_tokens, digest (equal for exact duplicates), and
        samples, features or simhash, which are null for texts without tokens.

        >>> import pyarrow
        >>> texts = pyarrow.array(["one two three four five six", None])
        >>> table = arose.Sketcher("combined", w=3).sketch(texts).to_pyarrow()
        >>> table["n_tokens"].to_pylist(), table["simhash"].null_count
        ([6, 0], 1)
        """
        return self._native.sketch(texts)

    def stream(self, texts: Any, *, text_field: str | Sequence[str] = ()) -> SketchReader:
        """Sketch texts as they arrive, in batches: the input need not fit into memory.

        Takes an Arrow stream, of strings or of tables with a column of text (`text_field`, `text`
        by default), or any iterable of strings. The result has the columns of `sketch`; it is an
        iterator of tables and an Arrow stream itself.

        >>> documents = arose.read("examples/pages.jsonl")
        >>> sum(len(table) for table in arose.Sketcher().stream(documents))
        300
        """
        if isinstance(texts, (str, bytes)):
            raise TypeError("texts is a single string; put it into a list")
        fields = names("text_field", text_field) or _arose.usual_names()["text"]
        return self._native.stream(_inputs.stream(texts, fields), fields)

    def estimate(self, a: Sequence[int], b: Sequence[int]) -> float | None:
        """Estimate the similarity of two texts from their MinHash values; None if either has none.

        >>> sketcher = arose.Sketcher(w=2)
        >>> texts = ["one two three four five", "one two three four six"]
        >>> a, b = sketcher.sketch(texts).to_pyarrow()["samples"].to_pylist()
        >>> 0.4 < sketcher.estimate(a, b) < 0.8  # the truth is 3 / 5
        True
        """
        return self._native.estimate(
            _settings.samples("a", a, self._n_samples), _settings.samples("b", b, self._n_samples)
        )
