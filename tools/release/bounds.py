"""What a built wheel asks for: dependencies, extras, and the lowest versions that it claims to work with."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement

WITHOUT_LOWER_BOUND = "has no lower bound; the check cannot know what it claims to work with"


@dataclass(frozen=True)
class Asked:
    """What a wheel asks for."""

    version: str
    needed: tuple[Requirement, ...]  # always
    extras: tuple[str, ...]

    @classmethod
    def by(cls, wheel: Path) -> Asked:
        """Read from the wheel's own metadata."""
        metadata = _metadata(wheel)
        requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
        return cls(
            version=str(metadata["Version"]),
            needed=tuple(one for one in requirements if one.marker is None),
            extras=tuple(metadata.get_all("Provides-Extra", [])),
        )


def lowest_pins(requirements: tuple[Requirement, ...]) -> list[str]:
    """The requirements, each at exactly the lowest version that it allows."""
    return [f"{one.name}=={_lowest(one)}" for one in requirements]


def _lowest(requirement: Requirement) -> str:
    bounds = [one.version for one in requirement.specifier if one.operator in (">=", "==", "~=")]
    if len(bounds) != 1:
        raise ValueError(f"{requirement} {WITHOUT_LOWER_BOUND}")
    return bounds[0]


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())
