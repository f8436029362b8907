"""What comes from a command, on its way to log and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trimtuner.engines.supervising.metrics import Lines
from trimtuner.engines.supervising.output import Redactor


class Stream:
    """One source of text: secrets are redacted, all of it is handed to the log, and its metrics are written down."""

    def __init__(
        self,
        secrets: Iterable[str],
        pick_metrics: Callable[[bytes], bytes | None],
        log: Callable[[bytes], None],
        report: Callable[[list[bytes]], None],
    ) -> None:
        self._redactor, self._lines = Redactor(secrets), Lines()
        self._pick_metrics, self._log, self._report = pick_metrics, log, report

    def feed(self, data: bytes) -> None:
        """Take what has come since the last time."""
        shown = self._redactor.feed(data)
        self._log(shown)
        self._report_metrics(self._lines.feed(shown))

    def finish(self) -> None:
        """Take what still waited for its end: nothing more comes."""
        shown = self._redactor.finish()
        self._log(shown)
        self._report_metrics([*self._lines.feed(shown), *self._lines.finish()])

    def _report_metrics(self, lines: Iterable[bytes]) -> None:
        picked = (self._pick_metrics(line) for line in lines)
        self._report([text for text in picked if text is not None])
