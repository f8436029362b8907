"""What mkdocs does not do by itself: pages that are generated, links for the site, and no request to anybody else.

Pages are written to be read on GitHub as well, and every block of them is run by the tests (tests/docs). What only the
tests need, fences in HTML comments and reasons to skip a block, is not shown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from reference_pages import command_line_page, job_file_page  # noqa: E402

from trimtuner.jobs.schema import schema_text  # noqa: E402
from trimtuner.jobs.starter import SCHEMA_FILE  # noqa: E402

# Files at the root of the repository that are pages of the site.
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security-policy.md"}
POLICY = "; ".join(
    [
        "default-src 'none'",
        "connect-src 'self'",  # the index of the search
        "font-src 'self'",
        "img-src 'self' data:",
        "script-src 'self' 'unsafe-inline'",
        "style-src 'self' 'unsafe-inline'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
    ]
)

_OTHER_NAMES = {"README.md": "index.md", "docs/decisions": "decisions/index.md", **ROOT_PAGES}
_SITE_TO_ROOT = {page: name for name, page in ROOT_PAGES.items()}
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_SKIP = re.compile(r"\s+skip=\"[^\"]*\"")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file in docs/ holds."""
    for name, content in _generated().items():
        files.append(File.generated(config, name, content=content()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page without what is for the tests alone, and with links for the site."""
    return prepare_page(markdown, page.file.src_uri)


def on_post_page(output: str, **_: object) -> str:
    """Let no browser load anything from elsewhere."""
    return _with_policy(output)


def on_post_template(output: str, *, template_name: str, **_: object) -> str:
    """As for pages: not found is a page too."""
    return _with_policy(output) if template_name.endswith(".html") else output


def prepare_page(markdown: str, source: str) -> str:
    """What a reader of the site sees of a page that is at ``source`` in the docs folder."""
    home = Path(_SITE_TO_ROOT.get(source, f"docs/{source}")).parent
    return "".join(f"{line}\n" for line in _prepared_lines(markdown.splitlines(), home, Path(source).parent))


def _generated() -> dict[str, Callable[[], str]]:
    pages = {page: (ROOT / name).read_text for name, page in ROOT_PAGES.items() if (ROOT / name).exists()}
    return {
        "decisions/index.md": _decisions_page,
        "reference/command-line.md": command_line_page,
        "reference/job-file.md": _job_file_page,
        f"reference/{SCHEMA_FILE}": schema_text,
        **pages,
    }


def _job_file_page() -> str:
    return f"{job_file_page()}\n## The schema\n\nAll of this for programs: [{SCHEMA_FILE}]({SCHEMA_FILE}).\n"


def _decisions_page() -> str:
    """A list of all decisions by their titles."""
    lines = [
        "# Decisions",
        "",
        "Why things are as they are: the choice, the reason, and what would change our mind.",
        "",
    ]
    for path in sorted((ROOT / "docs/decisions").glob("0*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def _prepared_lines(lines: list[str], home: Path, folder: Path) -> Iterator[str]:
    closing = None  # of the fence or comment that a line stands in
    for line in lines:
        if closing == "-->":
            closing = None if line.rstrip().endswith("-->") else closing
        elif closing is not None:
            closing = None if line.strip() == closing else closing
            yield line
        elif line.strip() == "<!--":
            closing = "-->"
        elif fence := _FENCE.match(line):
            closing = fence[1]
            yield _SKIP.sub("", line)
        else:
            yield _LINK.sub(lambda link: _link_for_site(link, home, folder), line)


def _link_for_site(link: re.Match[str], home: Path, folder: Path) -> str:
    """The link from page to page; of a file that is not on the site only the name is left."""
    path = os.path.normpath(home / link["path"])
    found = _OTHER_NAMES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if found is not None:
        target = os.path.relpath(found, folder)
        return f"{link['image']}[{link['text']}]({target}{link['anchor'] or ''})"
    return link["text"] if (ROOT / path).exists() else link[0]


def _with_policy(page: str) -> str:
    return page.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">', 1)
