"""Put what is in ``dist/`` through everything that an install may meet: ``make release``.

    python tools/check_release.py [--only NAME] [--audit offline] [DIST]

Every check has a clean environment of its own. It ends with a table, and with 1 where one failed or could not be made.
The packages that it was tested with are written beside the wheel: a lock, and a bill of materials.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # run as a script

from tools.release.bounds import Asked, lowest_pins  # noqa: E402
from tools.release.environments import Environment, Failed, find_python, run  # noqa: E402
from tools.release.newcomer import Stumble, walk  # noqa: E402
from tools.release.supply import (  # noqa: E402
    BILL,
    LOCK,
    Told,
    ask_for_holes,
    bill_of_materials,
    fetch_from_index,
    installed_by,
    lock_text,
    locked,
)

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


def checks_of(release: Release, audit: Callable[[Path], str]) -> list[Check]:
    """All of them."""
    newest = PYTHONS[-1]
    return [
        *(
            Check(f"wheel-{version}", version, lambda python, at: check_install(python, at, release.wheel))
            for version in PYTHONS
        ),
        Check("sdist", newest, lambda python, at: check_install(python, at, release.sdist)),
        Check("extras", LOWEST_PYTHON, lambda python, at: check_extras(python, at, release.wheel)),
        Check("audit", LOWEST_PYTHON, lambda _python, _at: audit(release.wheel.with_name(LOCK))),
        Check("lowest", LOWEST_PYTHON, lambda python, at: check_lowest(python, at, release.wheel)),
    ]


def check_install(python: str, folder: Path, distribution: Path) -> str:
    """With the dependencies that it needs and no others, a newcomer gets to a trained winner."""
    environment = Environment.made_by(python, folder / "venv")
    environment.install(distribution)
    walk_in(environment, folder)
    return f"{len(environment.installed())} packages"


def check_extras(python: str, folder: Path, wheel: Path) -> str:
    """With all extras together, every module can be imported; what they are is written beside the wheel."""
    extras = [extra for extra in Asked.by(wheel).extras if extra not in FOR_WORKING_ON_IT]
    environment = Environment.made_by(python, folder / "venv")
    environment.install("--report", folder / "report.json", f"{wheel}[{','.join(extras)}]", TORCH)
    write_supply((folder / "report.json").read_text(encoding="utf-8"), wheel)
    imported = run([environment.python, ROOT / "tools/release/modules.py"], folder)
    return f"{', '.join(extras)}: {imported.strip()}, {len(environment.installed())} packages"


def write_supply(report: str, wheel: Path) -> None:
    """The lock and the bill of materials, beside the wheel."""
    packages = [one for one in installed_by(report) if one.name != "trimtuner"]
    wheel.with_name(LOCK).write_text(lock_text(packages), encoding="utf-8")
    bill = bill_of_materials(Asked.by(wheel).version, packages)
    wheel.with_name(BILL).write_text(bill, encoding="utf-8")


def check_holes(lock: Path) -> str:
    """Nothing is known against any package of the lock, and every one was asked about."""
    told, count = ask_about(lock)
    if told.unanswered:
        raise Failed(
            f"{len(told.unanswered)} of {count} packages could not be asked about: {'; '.join(told.unanswered)}\n"
            "try again where the index can be reached, or look for yourself and say: make release AUDIT=offline"
        )
    return f"nothing is known against {count} packages"


def check_holes_as_far_as_told(lock: Path) -> str:
    """The same of those packages that could be asked about; the others are named."""
    told, count = ask_about(lock)
    asked = count - len(told.unanswered)
    return f"nothing is known against {asked} of {count} packages; NOT ASKED ABOUT: {'; '.join(told.unanswered)}"


def ask_about(lock: Path) -> tuple[Told, int]:
    """What the index tells of the lock, and of how many packages; a known hole fails."""
    if not lock.exists():
        raise Failed(f"there is no {lock}; the check 'extras' writes it")
    packages = locked(lock.read_text(encoding="utf-8"))
    told = ask_for_holes(packages, fetch_from_index)
    if told.holes:
        raise Failed("\n".join(["known holes; ask for newer versions, or do without:", *told.holes]))
    return told, len(packages)


AUDITS: Mapping[str, Callable[[Path], str]] = {"online": check_holes, "offline": check_holes_as_far_as_told}


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
    parser.add_argument(
        "--audit", choices=AUDITS, default="online", help="offline: packages that cannot be asked about do not fail"
    )
    wanted = parser.parse_args(list(arguments))
    has_failed = False
    for check in checks_of(Release.in_folder(wanted.dist), AUDITS[wanted.audit]):
        if wanted.only and check.name not in wanted.only:
            continue
        began = time.monotonic()
        holds, seen = outcome_of(check)
        has_failed |= not holds
        print(f"{'ok    ' if holds else 'FAILED'} {check.name} ({time.monotonic() - began:.0f} s): {seen}", flush=True)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
