"""The working directory as it is sent along: packed again only when something in it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trimtuner.engines.supervising.packing import Parcel, fingerprint, pack


class Luggage:
    """The parcel of one folder, as it was when it was last asked for."""

    def __init__(self, exclude: Sequence[str]) -> None:
        self._exclude = tuple(exclude)
        self._packed: dict[str, Parcel] = {}  # by fingerprint; the last one only

    def of(self, folder: Path) -> Parcel:
        """Its parcel now."""
        seen = fingerprint(folder, self._exclude)
        if seen not in self._packed:
            self._packed = {seen: pack(folder, self._exclude)}
        return self._packed[seen]
