"""What a command that is called ``go_on`` keeps for its retry, as it is where the retry will find it."""

from __future__ import annotations

import tarfile

from trimtuner.engines.protocol import Launch


def is_kept(launch: Launch, count: int) -> bool:
    """Whether it is kept that it was begun so often: in the folder that survives, or in a parcel of it."""
    folder = launch.folder / f"{launch.trial}-checkpoint"
    if (folder / "begun").exists():
        return (folder / "begun").read_text() == str(count)
    parcel = folder.with_name(f"{folder.name}.tar.gz")
    if not parcel.exists():
        return False
    with tarfile.open(parcel) as archive:
        file = archive.extractfile("begun") if "begun" in archive.getnames() else None
        return file is not None and file.read() == str(count).encode()
