"""Directories that the driver and all workers can read: a path, or `s3://bucket/prefix`.

The workers themselves read and write the files of an object store, so Spark needs no client for it.
They find the store as other programs do: `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`
and `AWS_SECRET_ACCESS_KEY`, or the role of the machine.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import posixpath
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from . import _arose

#: Schemes of object stores that workers read and write themselves.
OBJECTS = ("s3://", "gs://")


def is_object(path: str) -> bool:
    """Return whether workers read and write this URL themselves."""
    return path.startswith(OBJECTS)


def is_address(path: str) -> bool:
    """Return whether this is a URL, not a path."""
    return "://" in path


class Store:
    """A directory tree. Names are relative to it, paths are those of the store."""

    def __init__(self, root: str) -> None:
        self.root: str = root if is_object(root) else os.path.abspath(root)
        self._fs: Any = None

    def __getstate__(self) -> str:
        return self.root

    def __setstate__(self, root: str) -> None:
        self.root, self._fs = root, None

    @property
    def is_local(self) -> bool:
        return not is_object(self.root)

    @property
    def fs(self) -> Any:
        if self._fs is None:
            self._fs = _file_system(self.root)
        return self._fs

    def path(self, name: str) -> str:
        if self.is_local:
            return os.path.normpath(os.path.join(self.root, name))
        return posixpath.normpath(posixpath.join(self.root.split("://", 1)[1], name))

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Open a new file, which is removed if writing fails."""
        path = self.path(name)
        if self.is_local:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with self.fs.open_output_stream(path) as file:
                yield file
        except BaseException:
            with contextlib.suppress(OSError):
                self.fs.delete_file(path)
            raise

    def reading(self, name: str) -> Any:
        try:
            return self.fs.open_input_file(self.path(name))
        except FileNotFoundError as error:
            raise _arose.AroseError(
                f"cannot open `{self.path(name)}`: a file of an earlier stage is missing; "
                "start over with force"
            ) from error

    def text(self, name: str) -> str | None:
        try:
            with self.fs.open_input_file(self.path(name)) as file:
                return bytes(file.read()).decode()
        except FileNotFoundError:
            return None

    def write_text(self, name: str, text: str) -> None:
        """Write a small file atomically."""
        partial = f"{name}.part" if self.is_local else name
        with self.writing(partial) as file:
            file.write(text.encode())
        if self.is_local:
            os.replace(self.path(partial), self.path(name))

    def names(self, name: str) -> list[str]:
        """Return the names of all files below a directory."""
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self.path(name), recursive=True, allow_not_found=True)
        root = self.path(".").rstrip("/")
        infos = self.fs.get_file_info(selector)
        found = [info.path for info in infos if info.type == FileType.File]
        if name.startswith(".."):
            return sorted(posixpath.relpath(path, root) for path in found)
        return sorted(path[len(root) + 1 :] for path in found)

    def move(self, name: str, to: str) -> None:
        path = self.path(to)
        if self.is_local:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.fs.move(self.path(name), path)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with everything in it."""
        path = self.path(name)
        if self.is_local:
            if os.path.isfile(path):
                os.unlink(path)
            shutil.rmtree(path, ignore_errors=True)
            return
        for file in self.names(name):
            self.fs.delete_file(self.path(file))

    @contextlib.contextmanager
    def copy_here(self, path: str) -> Iterator[str]:
        """Provide a file of the store on this machine while it is used."""
        with tempfile.TemporaryDirectory(prefix="arose-") as folder:
            here = os.path.join(folder, posixpath.basename(path))
            with self.fs.open_input_stream(path) as source, open(here, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 22)
            yield here


def _file_system(root: str) -> Any:
    from pyarrow import fs

    if not is_object(root):
        return fs.LocalFileSystem()
    if not root.startswith("s3://"):
        return fs.FileSystem.from_uri(root)[0]
    # Otherwise the region of a bucket is looked up over the network.
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint is None and region is None:
        return fs.FileSystem.from_uri(root)[0]
    options = {"region": region or "us-east-1"}
    if endpoint is not None:
        scheme, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    return fs.S3FileSystem(connect_timeout=10, request_timeout=60, **options)


def find(inputs: list[str]) -> list[tuple[str, int, int]]:
    """Return the files of an object store for URLs: URL, bytes and modification time.

    A URL is that of a file, a directory or a pattern. Hidden files are skipped.
    """
    found: dict[str, tuple[int, int]] = {}
    for address in inputs:
        scheme, rest = address.split("://", 1)
        store = Store(address)
        try:
            matching = list(_matching(store.fs, rest.rstrip("/")))
        except OSError as error:
            raise _arose.InputError(f"`{address}`: {_first_line(error)}") from error
        if not matching:
            raise _arose.InputError(f"`{address}` does not exist")
        for info in matching:
            found[f"{scheme}://{info.path}"] = info.size, info.mtime_ns or 0
    return [(path, *found[path]) for path in sorted(found)]


def _matching(fs: Any, path: str) -> Iterator[Any]:
    from pyarrow.fs import FileSelector, FileType

    is_pattern = any(character in path for character in "*?[")
    if not is_pattern:
        info = fs.get_file_info(path)
        if info.type == FileType.File:
            yield info
            return
    folders = path.split("/")
    n_fixed = next((i for i, name in enumerate(folders) if set(name) & set("*?[")), len(folders))
    base = "/".join(folders[:n_fixed])
    selector = FileSelector(base, recursive=True, allow_not_found=True)
    for info in fs.get_file_info(selector):
        below = info.path[len(base) :].strip("/")
        is_hidden = any(name.startswith((".", "_")) for name in below.split("/"))
        if info.type != FileType.File or is_hidden:
            continue
        if not is_pattern or _fits(info.path, path):
            yield info


def _fits(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern; a star matches within a name."""
    names, patterns = path.split("/"), pattern.split("/")
    if len(names) < len(patterns):
        return False
    # Files below a matching directory match too.
    return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in zip(names, patterns))


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
