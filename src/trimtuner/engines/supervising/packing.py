"""A folder as one piece of data, to be sent to another machine: the same content always gives the same digest."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trimtuner.errors import InputError

# What no trial needs from another machine: histories, caches, environments made for this machine, our own records.
NEVER_SENT = (
    ".git",
    "__pycache__",
    ".venv",
    "*.trials",
    "*.db",
    "*.db-journal",
    "*.db-shm",
    "*.db-wal",
    "*.db.ledger",
    "*.of-lost-record",
)
MOST_BYTES = 500 * 1024 * 1024


class TooLarge(InputError):  # noqa: N818  (named by what the caller learns)
    """A folder holds more than may be sent."""


class Parcel(NamedTuple):
    """A folder's content, packed; the digest is of the content alone, not of times and owners."""

    digest: str
    data: bytes


def pack(folder: Path, exclude: Sequence[str] = (), most_bytes: int = MOST_BYTES) -> Parcel:
    """The folder without NEVER_SENT and what is excluded: patterns, of a name or of a path inside the folder."""
    return _pack(folder, (*NEVER_SENT, *exclude), most_bytes)


def pack_whole(folder: Path, most_bytes: int = MOST_BYTES) -> Parcel:
    """The folder with all that is in it."""
    return _pack(folder, (), most_bytes)


def _pack(folder: Path, exclude: Sequence[str], most_bytes: int) -> Parcel:
    buffer, size = io.BytesIO(), 0
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _walk(folder, folder, exclude):
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
            if size > most_bytes:
                raise TooLarge(
                    f"the folder {str(folder)!r} holds more than {most_bytes // 2**20} MiB (counted up to "
                    f"{path.name!r}), too much to send; keep data outside of it, where the machines can read it"
                )
            _add(archive, folder, path, status)
    content = buffer.getvalue()
    return Parcel(hashlib.sha256(content).hexdigest(), gzip.compress(content, compresslevel=1, mtime=0))


def unpack(data: bytes, folder: Path) -> None:
    """Make the folder from a parcel: whole, or not at all; one that is there already stays.

    A ValueError where something in the parcel would come to lie, or lead, outside of the folder.
    """
    if folder.exists():
        return
    draft = folder.with_name(f".{folder.name}.{os.urandom(8).hex()}")
    draft.mkdir(mode=0o700, parents=True)
    try:
        _unpack_into(data, draft)
        draft.rename(folder)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # somebody else was first, with the same content
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class Packer:
    """Packs a folder, and again only when something in it has changed."""

    def __init__(self, exclude: Sequence[str]) -> None:
        self._exclude = tuple(exclude)
        self._packed: dict[str, Parcel] = {}  # by fingerprint; the last one only

    def parcel_of(self, folder: Path) -> Parcel:
        """The folder as it is now."""
        seen = _fingerprint(folder, self._exclude)
        if seen not in self._packed:
            self._packed = {seen: pack(folder, self._exclude)}
        return self._packed[seen]


def _fingerprint(folder: Path, exclude: Sequence[str]) -> str:
    """Changes when the folder's parcel may have: cheap, since nothing is read but names, sizes and times."""
    seen = hashlib.sha256()
    for path in _walk(folder, folder, (*NEVER_SENT, *exclude)):
        now = path.lstat()
        line = (path.relative_to(folder).as_posix(), now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_mode)
        seen.update(repr(line).encode("utf-8", "surrogateescape"))
    return seen.hexdigest()


def _walk(root: Path, folder: Path, exclude: Sequence[str]) -> Iterator[Path]:
    """What is sent of a folder below the root, parents first, in an order that depends on names alone."""
    for path in sorted(folder.iterdir()):
        inside = path.relative_to(root).as_posix()
        if any(fnmatchcase(path.name, pattern) or fnmatchcase(inside, pattern) for pattern in exclude):
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path, exclude)


def _add(archive: tarfile.TarFile, root: Path, path: Path, status: os.stat_result) -> None:
    member = tarfile.TarInfo(path.relative_to(root).as_posix())
    member.mode = stat.S_IMODE(status.st_mode) & 0o755 | 0o600
    if stat.S_ISLNK(status.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, _target_inside(root, path)
        archive.addfile(member)
    elif stat.S_ISDIR(status.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
    elif stat.S_ISREG(status.st_mode):
        content = path.read_bytes()  # at once, since a log may grow while it is read
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    # Pipes, sockets and devices have no content to send.


def _target_inside(root: Path, link: Path) -> str:
    """Where the link leads, seen from the link."""
    target = Path(os.path.realpath(link))
    if not _is_inside(root, target):
        raise InputError(
            f"{str(link)!r} leads out of the folder {str(root)!r} that is sent; put what it names inside, or exclude it"
        )
    return os.path.relpath(target, os.path.realpath(link.parent))


def _unpack_into(data: bytes, root: Path) -> None:
    links = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            path = _place(root, member)
            if member.issym():
                links.append((path, member.linkname))
            elif member.isdir():
                path.mkdir(mode=0o700, exist_ok=True)
            else:
                _write(archive, member, path)
    _make_links(root, links)


def _place(root: Path, member: tarfile.TarInfo) -> Path:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not (member.isreg() or member.isdir() or member.issym()):
        raise ValueError(f"the parcel holds {member.name!r}, which is no file, folder or link inside it")
    return root / name


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = archive.extractfile(member)
    if content is None:
        raise ValueError(f"the parcel holds {member.name!r} without its content")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode & 0o700), "wb") as file:
        shutil.copyfileobj(content, file)


def _make_links(root: Path, links: Sequence[tuple[Path, str]]) -> None:
    """Last, so that nothing is written through one; and looked at when all are there, since they may lead on."""
    for path, target in links:
        path.symlink_to(target)
    for path, target in links:
        if not _is_inside(root, Path(os.path.realpath(path))):
            raise ValueError(f"the parcel holds a link to {target!r}, which leads out of it")


def _is_inside(root: Path, path: Path) -> bool:
    real = Path(os.path.realpath(root))
    return path == real or real in path.parents
