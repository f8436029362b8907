"""``trimtuner report``: all views in one file to send, or one view as a picture."""

from __future__ import annotations

from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.files import write_private
from trimtuner.jobs.studies import JobStudy, log_tail
from trimtuner.state import StudyState
from trimtuner.views.document import document
from trimtuner.views.figures import figures
from trimtuner.views.markdown import markdown
from trimtuner.views.trials import rows

FORMATS = ("html", "md", "svg", "png")
_LOG_BYTES = 2048  # of each trial's log, its end
_ALL_LOGS_BYTES = 256 * 1024  # the newest trials' first


def write_report(of: JobStudy, output: Path | None, form: str | None, view: str | None) -> list[Path]:
    """Write the report; the files that were written."""
    form = _format(output, form, view)
    subject = of.judged_state()
    if form in ("svg", "png"):
        return _write_pictures(subject, output, form, view or "")
    text = document(subject, _logs(subject)) if form == "html" else markdown(subject)
    path = output or Path(f"{of.job.name}-report.{form}")
    write_private(path, text.encode())
    return [path]


def report_text(of: JobStudy) -> str:
    """All views as Markdown, for a terminal."""
    return markdown(of.judged_state())


def _format(output: Path | None, form: str | None, view: str | None) -> str:
    ending = "" if output is None else output.suffix.lower().removeprefix(".")
    ending = {"markdown": "md", "htm": "html"}.get(ending, ending)
    chosen = form or (ending if ending in FORMATS else "svg" if view is not None else "html")
    if chosen not in FORMATS:
        raise InputError(f"--format {form!r} is none of {', '.join(FORMATS)}")
    if chosen in ("svg", "png") and view is None:
        raise InputError(f"{chosen} is a picture of one view; say which with --view, such as --view tradeoff")
    if chosen in ("html", "md") and view is not None:
        raise InputError(f"--view is for a picture; a report as {chosen} has all views")
    return chosen


def _write_pictures(subject: StudyState, output: Path | None, form: str, view: str) -> list[Path]:
    found = figures(subject, view)
    first = output or Path(f"{subject.name}-{view}.{form}")
    paths = [first, *(first.with_name(f"{first.stem}-{figure.name}.{form}") for figure in found[1:])]
    return [figure.save(path.with_suffix(f".{form}")) for figure, path in zip(found, paths, strict=True)]


def _logs(subject: StudyState) -> dict[int, str]:
    """The ends of the logs that are on this machine."""
    logs: dict[int, str] = {}
    left = _ALL_LOGS_BYTES
    for row in reversed(rows(subject)):
        if row.log is not None and row.log.exists() and left > 0:
            logs[row.trial] = log_tail(row.log, _LOG_BYTES)
            left -= len(logs[row.trial])
    return logs
