"""Where a file of data comes from: a path, a folder of yours, a package, or a download."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = "DRIFTBANDIT_DATA"  # environment variable that names a folder with copies of the files


@dataclass(frozen=True)
class DataSource:
    """A public file: what it is called, where it is, under which licence."""

    files: tuple[str, ...]  # names of a local copy, which may also end in .gz
    url: str
    licence: str
    sha256: str | None = None  # of what the URL gives; None where it is not known
    member: str = ""  # file inside the archive
    package: str = ""  # installed package that holds the file ...
    inside: str = ""  # ... and where


@dataclass(frozen=True)
class DataTable:
    """A CSV file, as text."""

    header: list[str]
    rows: list[list[str]]
    origin: str
    checksum: str  # SHA-256 of the CSV file itself, compressed or not

    def __getitem__(self, name: str) -> list[str]:
        """A column."""
        if name not in self.header:
            raise ValueError(
                f"{self.origin} has no column {name!r}, only {', '.join(self.header)}: "
                "pass the file that the documentation of driftbandit.datasets names"
            )
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def numbers(self, names: Sequence[str]) -> list[NDArray[np.float64]]:
        """Some columns as numbers."""
        columns = [self[name] for name in names]
        try:
            return [np.array([float(text) for text in column]) for column in columns]
        except ValueError as error:
            raise ValueError(f"{self.origin}: {error}; clean the file, or fetch it again") from None

    def where(self, kept: Callable[[str], bool], name: str) -> DataTable:
        """The rows in which a column passes a test."""
        rows = [row for row, text in zip(self.rows, self[name]) if kept(text)]
        return replace(self, rows=rows)


def read(source: DataSource, path: str | os.PathLike[str] | None = None) -> DataTable:
    """The table of a source, from the nearest place that has it."""
    found = _local(source, path) or _packaged(source) or _downloaded(source)
    content = _unpacked(found, source.member)
    header, *rows = _parsed(content, found.name)
    return DataTable(header, rows, found.name, hashlib.sha256(content).hexdigest())


def _local(source: DataSource, path: str | os.PathLike[str] | None) -> Path | None:
    """The copy at `path`, a file or a folder, or in the folder that the environment names."""
    if path is None and not os.environ.get(FOLDER):
        return None
    place = Path(path if path is not None else os.environ[FOLDER])
    names = [name + end for name in source.files for end in ("", ".gz")]
    candidates = [place] if place.is_file() else [place / name for name in names]
    found = next((each for each in candidates if each.is_file()), None)
    if found is None and path is not None:
        raise ValueError(f"{place} is no file and no folder that holds {' or '.join(names)}")
    return found


def _packaged(source: DataSource) -> Path | None:
    if not source.package:
        return None
    spec = find_spec(source.package)  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(
            f"these data come with the package {source.package}: pip install 'driftbandit[data]'"
        )
    return Path(spec.submodule_search_locations[0]) / source.inside


def downloader() -> Any:
    """pooch, which downloads, checks and keeps files."""
    try:
        import pooch
    except ImportError:
        raise ValueError(
            "downloading data needs pooch: pip install 'driftbandit[data]', or set "
            f"{FOLDER} to a folder that holds the files"
        ) from None
    return pooch


def cache() -> Path:
    """The folder that keeps what was downloaded."""
    return Path(downloader().os_cache("driftbandit"))


def _downloaded(source: DataSource) -> Path:
    """The file in the cache, which is filled on first use."""
    name = source.url.rsplit("/", 1)[-1].replace("+", "-")
    remedy = f"download it by hand and set {FOLDER} to the folder that holds it"
    known = None if source.sha256 is None else f"sha256:{source.sha256}"
    try:
        return Path(downloader().retrieve(source.url, known, name, cache()))
    except ValueError as error:
        if "hash" not in str(error):
            raise
        raise ValueError(
            f"{source.url} is not the file that was tested: its SHA-256 is not {source.sha256}; "
            f"find the old file, {remedy}"
        ) from None
    except OSError as error:
        raise ValueError(
            f"{source.url} cannot be fetched ({type(error).__name__}): {remedy}"
        ) from None


def _unpacked(path: Path, member: str) -> bytes:
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                return archive.read(member)
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read ({error}): fetch it again") from None


def _parsed(content: bytes, origin: str) -> list[list[str]]:
    try:
        lines = list(csv.reader(io.StringIO(content.decode(), newline="")))
    except (ValueError, csv.Error):
        lines = []
    if len(lines) < 2 or len({len(line) for line in lines}) > 1:
        raise ValueError(f"{origin} is cut off, or no CSV file: fetch it again")
    return lines
