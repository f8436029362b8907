"""What a release was tested with: the exact packages, written down for people and programs, and asked about.

``requirements.lock`` pins every package by version and hash; ``sbom.cdx.json`` names them as CycloneDX has it. Known
holes are asked of the package index, which tells them of every version (the same source that pip-audit reads).
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from packaging.utils import canonicalize_name

LOCK, BILL = "requirements.lock", "sbom.cdx.json"
INDEX = "https://pypi.org"
_ASK_SECONDS = 30
_LONGEST_LICENCE = 100  # longer ones are the whole text
_PINNED = re.compile(r"([a-z0-9-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")

Fetch: TypeAlias = Callable[[str], object]  # the path of a JSON page of the index; LookupError where it has none


@dataclass(frozen=True, order=True)
class Package:
    """One that was installed."""

    name: str
    version: str
    sha256: str  # of the file that it was installed from
    licence: str = ""

    @property
    def published_version(self) -> str:
        """Without what names a build for some machines only, such as torch's +cpu."""
        return self.version.partition("+")[0]


@dataclass(frozen=True)
class Told:
    """What the index tells of a set of packages."""

    holes: tuple[str, ...]  # a line each
    unanswered: tuple[str, ...]  # packages of which it tells nothing, and why


def installed_by(report: str) -> tuple[Package, ...]:
    """What pip has installed, by the report that ``pip install --report`` writes."""
    return tuple(sorted(_package(one) for one in json.loads(report)["install"]))


def lock_text(packages: Iterable[Package]) -> str:
    """A requirements file that installs exactly these files, and no others."""
    lines = [f"{one.name}=={one.version} --hash=sha256:{one.sha256}" for one in packages]
    return "\n".join(["# What the release was tested with, all extras together.", *lines, ""])


def locked(text: str) -> tuple[Package, ...]:
    """The packages of a lock."""
    return tuple(Package(match[1], match[2], match[3]) for match in _PINNED.finditer(text))


def bill_of_materials(version: str, packages: Iterable[Package]) -> str:
    """The packages as CycloneDX 1.5 has them. The same ones give the same bytes: no date, no number of its own."""
    told = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _named("application", "trimtuner", version)},
        "components": [_component(one) for one in packages],
    }
    return json.dumps(told, indent=2) + "\n"


def ask_for_holes(packages: Iterable[Package], fetch: Fetch) -> Told:
    """What is known against them; one of which nothing can be learned is told apart from a sound one."""
    holes: list[str] = []
    unanswered: list[str] = []
    for one in packages:
        try:
            found = _holes(_page_of(one, fetch))
        except LookupError as error:
            unanswered.append(f"{one.name} {one.version} ({error.args[0]})")
        else:
            holes += [f"{one.name} {one.version}: {hole}" for hole in found]
    return Told(tuple(holes), tuple(unanswered))


def fetch_from_index(path: str) -> object:
    """A JSON page of the index."""
    try:
        with urllib.request.urlopen(f"{INDEX}{path}", timeout=_ASK_SECONDS) as answer:  # noqa: S310  (a constant)
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise LookupError(f"{INDEX} says {error.code}") from None
    except (OSError, ValueError) as error:
        raise LookupError(f"{INDEX} cannot be asked: {error}") from None


def _package(installed: Mapping[str, dict[str, dict[str, dict[str, str]]]]) -> Package:
    about: Mapping[str, object] = installed["metadata"]
    licence = str(about.get("license_expression") or about.get("license") or "")
    return Package(
        canonicalize_name(str(about["name"])),
        str(about["version"]),
        installed["download_info"]["archive_info"]["hashes"]["sha256"],
        licence if len(licence) <= _LONGEST_LICENCE else "",
    )


def _component(package: Package) -> dict[str, object]:
    licences = {"licenses": [{"license": {"name": package.licence}}]} if package.licence else {}
    hashes = [{"alg": "SHA-256", "content": package.sha256}]
    return {**_named("library", package.name, package.version), "hashes": hashes, **licences}


def _named(kind: str, name: str, version: str) -> dict[str, object]:
    address = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
    return {"type": kind, "bom-ref": address, "name": name, "version": version, "purl": address}


def _page_of(package: Package, fetch: Fetch) -> object:
    """What the index tells of this very version. A mirror may have a page of the newest one only."""
    try:
        return fetch(f"/pypi/{package.name}/{package.published_version}/json")
    except LookupError as error:
        newest = fetch(f"/pypi/{package.name}/json")
        if _at(_at(newest, "info"), "version") != package.published_version:
            raise LookupError(f"{error.args[0]}, and tells of another version only") from None
        return newest


def _holes(page: object) -> list[str]:
    found = _at(page, "vulnerabilities")
    if not isinstance(found, list):
        raise LookupError("its page says nothing of holes")
    return [f"{_at(hole, 'id')}, mended in {_mended(hole)}" for hole in found if not _at(hole, "withdrawn")]


def _mended(hole: object) -> str:
    versions = _at(hole, "fixed_in")
    return ", ".join(map(str, versions)) if isinstance(versions, list) and versions else "no version yet"


def _at(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None
