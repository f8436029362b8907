"""Results on disk, one line of JSON for each finished search: what was done stays done, whatever happens next."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.papers.searches import Search, Trace
from trimtuner.errors import InputError


class Cache:
    """Finished searches of this package; lines of others stay in the file and are not read.

    ``marks`` of a search are what it hangs on besides its own values: version, measurements, the method's parts.
    """

    def __init__(self, path: Path, marks: Callable[[Search], Mapping[str, str]]) -> None:
        self._path, self._marks = path, marks
        self._results = _read(path)

    def find(self, search: Search) -> Trace | None:
        """The result of a search, if it or a longer one is there."""
        trials, trace = self._results.get(self._key(search), (0, None))
        return trace.first(search.trials) if trace is not None and trials >= search.trials else None

    def __contains__(self, search: Search) -> bool:
        return self.find(search) is not None

    def add(self, search: Search, trace: Trace) -> None:
        """Keep a result: on the disk when this returns."""
        key = self._key(search)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"key": json.loads(key), "trials": search.trials, "trace": trace.as_plain()}
        line = json.dumps(entry, separators=(",", ":"))
        with self._path.open("ab") as file:
            # A run that was killed may have left half a line: it is closed off, so that it spoils only itself.
            torn = file.tell() > 0 and not ends_with_newline(self._path)
            file.write(("\n" if torn else "").encode() + line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._results[key] = (search.trials, trace)

    def _key(self, search: Search) -> str:
        return _canonical({**self._marks(search), **search.identity()})


def _canonical(key: Mapping[str, object]) -> str:
    return json.dumps(key, sort_keys=True)


def ends_with_newline(path: Path) -> bool:
    """Whether the last line was written to its end; of a file that is not empty."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _read(path: Path) -> dict[str, tuple[int, Trace]]:
    """Every whole line; what is no result of ours (half a line) is passed over."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"the results in {str(path)!r} cannot be read: {error.strerror}") from None
    found: dict[str, tuple[int, Trace]] = {}
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            key, trials, trace = _canonical(entry["key"]), int(entry["trials"]), Trace.from_plain(entry["trace"])
        except (ValueError, KeyError, TypeError):
            continue
        if key not in found or found[key][0] < trials:
            found[key] = (trials, trace)
    return found
