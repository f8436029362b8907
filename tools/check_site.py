"""Check a built site: every link inside leads somewhere, and nothing is loaded from elsewhere.

    python tools/check_site.py site

Links to other sites are listed and never followed; that they lead somewhere is for a person to see.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED_BY = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "input": "src", "object": "data"}
_LOADED_BY |= {"script": "src", "source": "src", "track": "src", "video": "src"}
_FOLLOWED_RELATIONS = {"canonical", "next", "prev", "author", "license", "edit"}  # a browser loads all other links
_IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]")
_POLICY = "Content-Security-Policy"


@dataclass
class Document(HTMLParser):
    """What an HTML page links to, what a browser loads for it, and where one can jump to in it."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    has_policy: bool = False
    _is_in_style: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what is of interest from one tag."""
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self.has_policy = self.has_policy or found.get("http-equiv") == _POLICY
        self._is_in_style = tag == "style"
        self.loaded += urls_in_style(found.get("style", ""))
        self.loaded += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]
        if tag in _LOADED_BY and found.get(_LOADED_BY[tag]):
            self.loaded.append(found[_LOADED_BY[tag]])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and "href" in found:
            is_followed = found.get("rel", "") in _FOLLOWED_RELATIONS
            (self.links if is_followed else self.loaded).append(found["href"])

    def handle_endtag(self, tag: str) -> None:
        """Styles end."""
        self._is_in_style = self._is_in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """Styles load too."""
        if self._is_in_style:
            self.loaded += urls_in_style(data)


@dataclass(frozen=True)
class Report:
    """Faults, and the links to other sites with the pages that have them."""

    faults: tuple[str, ...]
    outside: tuple[tuple[str, str], ...]


def urls_in_style(text: str) -> list[str]:
    """What a style sheet loads; pictures inside of it are no requests."""
    found = [first or second for first, second in _IN_STYLES.findall(text)]
    return [one for one in found if not one.startswith(("data:", "#"))]


def check_site(site: Path) -> Report:
    """Read every page and style sheet of the site."""
    documents = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    if not documents:
        return Report((f"{site}: there is no page; build it with make docs",), ())
    faults = [fault for path in documents for fault in _faults(path, documents, site)]
    faults += [fault for path in sorted(site.rglob("*.css")) for fault in _style_faults(path, site)]
    outside = {
        (link, str(path.relative_to(site)))
        for path, one in documents.items()
        for link in one.links
        if _is_outside(link)
    }
    return Report(tuple(faults), tuple(sorted(outside)))


def _read(path: Path) -> Document:
    document = Document()
    document.feed(path.read_text(encoding="utf-8"))
    return document


def _faults(path: Path, documents: dict[Path, Document], site: Path) -> Iterator[str]:
    name, document = path.relative_to(site), documents[path]
    if not document.has_policy:
        yield f"{name}: no {_POLICY}, so a script could ask other sites"
    for address in dict.fromkeys(document.loaded):
        if _is_outside(address):
            yield f"{name}: loads {address} from elsewhere"
        elif not address.startswith("data:") and not _target(address, path, site).is_file():
            yield f"{name}: loads {address}, which is not there"
    for address in dict.fromkeys(document.links):
        if not _is_outside(address) and (fault := _broken(address, path, documents, site)):
            yield f"{name}: links to {address}, {fault}"


def _broken(address: str, path: Path, documents: dict[Path, Document], site: Path) -> str | None:
    target = _target(address, path, site)
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "which is not there"
    anchor = unquote(urlsplit(address).fragment)
    if anchor and target in documents and anchor not in documents[target].anchors:
        return "which has no such anchor"
    return None


def _target(address: str, path: Path, site: Path) -> Path:
    place = unquote(urlsplit(address).path)
    if not place:
        return path
    return (site / place.lstrip("/") if place.startswith("/") else path.parent / place).resolve()


def _style_faults(path: Path, site: Path) -> Iterator[str]:
    name = path.relative_to(site)
    for address in urls_in_style(path.read_text(encoding="utf-8")):
        if _is_outside(address):
            yield f"{name}: loads {address} from elsewhere"
        elif not _target(address, path, site).is_file():
            yield f"{name}: loads {address}, which is not there"


def _is_outside(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "javascript")


def main(words: list[str]) -> int:
    """Say what is wrong with the site, and which other sites it names."""
    if len(words) != 1:
        print("usage: python tools/check_site.py SITE", file=sys.stderr)
        return 2
    report = check_site(Path(words[0]).resolve())
    for address, page in report.outside:
        print(f"not followed: {address} ({page})")
    for fault in report.faults:
        print(fault, file=sys.stderr)
    print(f"{words[0]}: {len(report.faults)} faults" if report.faults else f"{words[0]}: every link leads somewhere")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
