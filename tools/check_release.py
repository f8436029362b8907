"""Put what is in ``dist/`` through everything that an install may meet: ``make release``.

    python tools/check_release.py [--only NAME] [DIST]

Every check has a clean environment of its own. It ends with a table, and with 1 where one failed or could not be made.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script

from tools.release.bounds import Asked, lowest_pins  # noqa: E402
from tools.release.environments import Environment, Failed, find_python, run  # noqa: E402
from tools.release.newcomer import Stumble, walk  # noqa: E402

PYTHONS = ("3.11", "3.12", "3.13")
LOWEST_PYTHON = PYTHONS[0]  # where the oldest wheels are
FOR_WORKING_ON_IT = ("dev", "docs")  # extras that no user installs
TORCH = "torch==2.13.0"  # which lightning brings; as in the extra dev, since the newest may be several GB
TEST_TOOLS = ("hypothesis", "pytest>=8.4,<9.2", "pytest-timeout", "pytest-xdist")
NUMERIC_TESTS = ("tests/problem", "tests/models", "tests/decisions", "tests/tuning")


@dataclass(frozen=True)
class Release:
    """The two files of a release."""

    wheel: Path
    sdist: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Release:
        """The only ones in it."""
        wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
        if (len(wheels), len(sdists)) != (1, 1):
            raise SystemExit(f"{folder} must hold one wheel and one sdist; make them with: make dist")
        return cls(wheels[0].absolute(), sdists[0].absolute())


@dataclass(frozen=True)
class Check:
    """One thing that must hold; it raises where it does not."""

    name: str
    python: str  # version
    hold: Callable[[str, Path], str]  # an interpreter and an empty folder to what was seen


def checks_of(release: Release) -> list[Check]:
    """All of them."""
    newest = PYTHONS[-1]
    return [
        *(
            Check(f"wheel-{version}", version, lambda python, at: check_install(python, at, release.wheel))
            for version in PYTHONS
        ),
        Check("sdist", newest, lambda python, at: check_install(python, at, release.sdist)),
        Check("extras", LOWEST_PYTHON, lambda python, at: check_extras(python, at, release.wheel)),
        Check("lowest", LOWEST_PYTHON, lambda python, at: check_lowest(python, at, release.wheel)),
    ]


def check_install(python: str, folder: Path, distribution: Path) -> str:
    """With the dependencies that it needs and no others, a newcomer gets to a trained winner."""
    environment = Environment.made_by(python, folder / "venv")
    environment.install(distribution)
    walk_in(environment, folder)
    return f"{len(environment.installed())} packages"


def check_extras(python: str, folder: Path, wheel: Path) -> str:
    """With all extras together, every module can be imported."""
    extras = [extra for extra in Asked.by(wheel).extras if extra not in FOR_WORKING_ON_IT]
    environment = Environment.made_by(python, folder / "venv")
    environment.install(f"{wheel}[{','.join(extras)}]", TORCH)
    imported = run([environment.python, ROOT / "tools/release/modules.py"], folder)
    return f"{', '.join(extras)}: {imported.strip()}, {len(environment.installed())} packages"


def check_lowest(python: str, folder: Path, wheel: Path) -> str:
    """With the oldest of what it needs, the newcomer's path and the tests of the numeric rooms hold."""
    pins = lowest_pins(Asked.by(wheel).needed)
    environment = Environment.made_by(python, folder / "venv")
    environment.install(wheel, *pins, *TEST_TOOLS)
    walk_in(environment, folder)
    two_at_once = ("-n", "2", "--dist", "loadgroup", "--timeout", "900")
    nothing_left = ("-p", "no:cacheprovider", "--basetemp", folder / "tests")
    tests = [*NUMERIC_TESTS, "-m", "not slow", *two_at_once, *nothing_left]
    told = run([environment.python, "-m", "pytest", *tests], ROOT, seconds=3600)
    return f"{', '.join(pins)}; {told.strip().splitlines()[-1]}"


def walk_in(environment: Environment, folder: Path) -> None:
    """The newcomer's path in a folder of its own."""
    (folder / "work").mkdir()
    walk(environment.programs, folder / "work")


def outcome_of(check: Check) -> tuple[bool, str]:
    """Whether it holds, and what was seen."""
    python = find_python(check.python)
    if python is None:
        return False, f"there is no Python {check.python} here"
    with tempfile.TemporaryDirectory(prefix="trimtuner-release-") as folder:
        try:
            return True, check.hold(python, Path(folder))
        except (Failed, Stumble, ValueError) as error:
            return False, str(error)


def main(arguments: Iterable[str]) -> int:
    """Make the checks, one after the other; the exit code."""
    parser = argparse.ArgumentParser(description="Check what is in dist/ before it is released.")
    parser.add_argument("dist", nargs="?", type=Path, default=ROOT / "dist", help="the folder of wheel and sdist")
    parser.add_argument("--only", action="append", help="the name of a check; may be repeated")
    wanted = parser.parse_args(list(arguments))
    has_failed = False
    for check in checks_of(Release.in_folder(wanted.dist)):
        if wanted.only and check.name not in wanted.only:
            continue
        began = time.monotonic()
        holds, seen = outcome_of(check)
        has_failed |= not holds
        print(f"{'ok    ' if holds else 'FAILED'} {check.name} ({time.monotonic() - began:.0f} s): {seen}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
