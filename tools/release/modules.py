"""Import every module of the installed trimtuner. Run by the environment under test, which has no other tool."""

from __future__ import annotations

import importlib
import pkgutil

import trimtuner


def main() -> None:
    """Say how many there are; an error names the module that cannot be imported."""
    found = [one.name for one in pkgutil.walk_packages(trimtuner.__path__, "trimtuner.")]
    for name in found:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    print(f"{len(found)} modules")


if __name__ == "__main__":
    main()
