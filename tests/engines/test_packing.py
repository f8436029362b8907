"""Folders as parcels: the same content, the same digest; nothing gets out on either side."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trimtuner.engines.supervising.packing import pack, unpack
from trimtuner.errors import InputError


def make_folder(path: Path) -> Path:
    (path / "package" / "deep").mkdir(parents=True)
    (path / "train.py").write_text("print('training')\n")
    (path / "package" / "deep" / "data.bin").write_bytes(bytes(range(256)))
    (path / "run.sh").write_text("#!/bin/sh\n")
    (path / "run.sh").chmod(0o755)
    (path / "empty").mkdir()
    (path / "latest").symlink_to("package/deep")
    return path


def names_below(path: Path) -> set[str]:
    return {one.relative_to(path).as_posix() for one in path.rglob("*")}


def archive(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for member in members:
            file.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def member(name: str, type_: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = type_, target, 1 if type_ == tarfile.REGTYPE else 0
    return made


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "from")
    unpack(pack(folder).data, tmp_path / "to")
    assert names_below(tmp_path / "to") == names_below(folder)
    assert (tmp_path / "to" / "latest" / "data.bin").read_bytes() == bytes(range(256))
    assert os.readlink(tmp_path / "to" / "latest") == "package/deep"
    assert (tmp_path / "to" / "run.sh").stat().st_mode & stat.S_IXUSR


def test_the_digest_depends_on_content_and_names_alone(tmp_path: Path) -> None:
    first, second = make_folder(tmp_path / "a"), make_folder(tmp_path / "b")
    os.utime(second / "train.py", (1, 1))
    assert pack(first) == pack(second)
    (second / "train.py").write_text("print('Training')\n")
    assert pack(first).digest != pack(second).digest


def test_an_added_empty_folder_and_a_right_to_execute_are_content(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    digests = {pack(folder).digest}
    (folder / "more").mkdir()
    digests.add(pack(folder).digest)
    (folder / "train.py").chmod(0o755)
    digests.add(pack(folder).digest)
    assert len(digests) == 3


def test_records_caches_and_what_is_excluded_stay_here(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    for name in (".git", "__pycache__", ".venv", "job.db.trials", "package/__pycache__", "package/raw"):
        (folder / name).mkdir()
        (folder / name / "file").touch()
    for name in ("job.db", "job.db-wal", "notes.tmp"):
        (folder / name).touch()
    unpack(pack(folder, ["*.tmp", "package/raw"]).data, tmp_path / "b")
    assert names_below(tmp_path / "b") == names_below(make_folder(tmp_path / "c"))


def test_a_link_out_of_the_folder_is_refused_by_name(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    (folder / "data").symlink_to("/usr")
    with pytest.raises(InputError, match="data' leads out of the folder"):
        pack(folder)
    pack(folder, ["data"])


def test_a_link_by_an_absolute_path_inside_is_made_relative(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    (folder / "package" / "up").symlink_to(folder / "train.py")
    unpack(pack(folder).data, tmp_path / "b")
    assert os.readlink(tmp_path / "b" / "package" / "up") == "../train.py"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    before = pack(folder)
    os.mkfifo(folder / "pipe")
    assert pack(folder) == before


def test_too_large_a_folder_is_refused_with_its_size(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    with open(folder / "big", "wb") as file:
        file.truncate(3 * 2**20)
    with pytest.raises(InputError, match="more than 2 MiB"):
        pack(folder, most_bytes=2 * 2**20)


@pytest.mark.parametrize(
    "members",
    [
        [member("../evil")],
        [member("/tmp/evil")],  # noqa: S108  (never made)
        [member("a/../../evil")],
        [member("evil", tarfile.SYMTYPE, "/etc")],
        [member("evil", tarfile.SYMTYPE, "../..")],
        [member("x", tarfile.SYMTYPE, "."), member("evil", tarfile.SYMTYPE, "x/x/x/../../..")],
        [member("evil", tarfile.SYMTYPE, "later/.."), member("later", tarfile.SYMTYPE, ".")],
        [member("evil", tarfile.LNKTYPE, "/etc/passwd")],
        [member("evil", tarfile.FIFOTYPE)],
        [member("evil", tarfile.CHRTYPE)],
    ],
)
def test_a_parcel_that_reaches_out_is_refused_and_leaves_nothing(
    tmp_path: Path, members: list[tarfile.TarInfo]
) -> None:
    with pytest.raises(ValueError, match="the parcel holds"):
        unpack(archive(*members), tmp_path / "inner" / "to")
    assert [path for path in tmp_path.rglob("*") if path.name != "inner"] == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    data = archive(member("door", tarfile.SYMTYPE, str(tmp_path / "outside")), member("door/evil"))
    with pytest.raises((ValueError, OSError)):
        unpack(data, tmp_path / "to")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    data = pack(make_folder(tmp_path / "a")).data
    unpack(data, tmp_path / "b")
    (tmp_path / "b" / "train.py").write_text("changed")
    unpack(data, tmp_path / "b")
    assert (tmp_path / "b" / "train.py").read_text() == "changed"


def test_several_who_unpack_at_once_leave_one_whole_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "a")
    data = pack(folder).data
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: unpack(data, tmp_path / "places" / "b"), range(8)))
    assert names_below(tmp_path / "places" / "b") == names_below(folder)
    assert list((tmp_path / "places").iterdir()) == [tmp_path / "places" / "b"]
