"""Looks for what its supervisor seals with, wherever its user may look."""

import os
from contextlib import suppress
from pathlib import Path

from side import run_on

parent = Path(f"/proc/{os.getppid()}")
seen = repr(dict(os.environ)).encode()
for path in (parent / "environ", parent / "cmdline", *Path(os.environ["TRIMTUNER_FOLDER"]).rglob("*")):
    with suppress(PermissionError):
        seen += path.read_bytes()
Path(os.environ["NOTES"] + ".seen").write_bytes(seen)
run_on()
