"""MNIST and Fashion-MNIST, fetched once by what examples/mnist has for it, and kept in its folder data."""

import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measuring import ROOT

sys.path.insert(0, str(ROOT / "examples" / "mnist"))

import get_data  # an example is no package: the line above is how one imports it

SIDE = 14


def read_digits() -> list[np.ndarray]:
    return read("digits", get_data.fetch_digits)


def read_fashion() -> list[np.ndarray]:
    return read("fashion", get_data.fetch_fashion)


def read(name: str, fetch: Callable[[Path], Path]) -> list[np.ndarray]:
    """Pictures and their kinds, for training and for the test."""
    cache = get_data.DATA / f"{name}.npz"
    if not cache.exists():
        with tempfile.TemporaryDirectory() as folder:
            found = fetch(Path(folder))
            files = {file: np.frombuffer(unpack(found, file), np.uint8) for file in get_data.FILES}
        cache.parent.mkdir(exist_ok=True)
        np.savez(cache, **files)
    with np.load(cache) as files:
        pictures, kinds, test_pictures, test_kinds = (files[file] for file in get_data.FILES)
    # The files begin with a head of 16 bytes, and of 8 for the kinds.
    return [shrink(pictures[16:]), kinds[8:], shrink(test_pictures[16:]), test_kinds[8:]]


def unpack(found: Path, name: str) -> bytes:
    packed = found / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (found / name).read_bytes()


def shrink(pictures: np.ndarray) -> np.ndarray:
    """Rows with a quarter of the pixels, as the mean of four each, from 0 to 1."""
    quarters = pictures.reshape(-1, SIDE, 2, SIDE, 2).mean(axis=(2, 4), dtype=np.float32)
    return quarters.reshape(-1, SIDE * SIDE) / 255
