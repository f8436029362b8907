"""What ``pip install`` on a page runs in the tests: nothing is installed, and names must be right.

An extra of trimtuner must be one that pyproject.toml has, and any other package one that is installed here.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+?)(?:\[([A-Za-z0-9_,\s-]+)\])?(?:[<>=!~].*)?")


def main(words: list[str]) -> str | None:
    """What is wrong with ``pip install WORDS``."""
    if not words or words[0] != "install":
        return f"pip {' '.join(words)}: the tests know 'pip install' only"
    names = [word for word in words[1:] if not word.startswith("-")]
    faults = [fault for name in names if (fault := _fault(name)) is not None]
    return "; ".join(faults) or (None if names else "pip install: nothing is named")


def _fault(requirement: str) -> str | None:
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:
        return f"{requirement!r} names no package"
    if found[1] != "trimtuner":
        return _not_installed(found[1])
    extras = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    unknown = [extra for extra in re.split(r"[,\s]+", found[2] or "") if extra and extra not in extras]
    return f"trimtuner has no extra {', '.join(unknown)}; it has {', '.join(sorted(extras))}" if unknown else None


def _not_installed(name: str) -> str | None:
    try:
        distribution(name)
    except PackageNotFoundError:
        return f"{name} is not installed, so no page can be tested with it"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
