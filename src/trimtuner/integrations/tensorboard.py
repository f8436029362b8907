"""TensorBoard: the trials of a study as runs with their hyper-parameters, for the tabs Scalars and HParams.

Each trial is a folder of events in one that is named as the study; the recommendation, as it changed from one time that
it was logged to the next, is a run beside them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import InputError
from trimtuner.integrations.tracking import (
    RECOMMENDED,
    Logged,
    TrackedStudy,
    is_logged,
    is_marked,
    mark,
    mark_logged,
    notes_of,
    params_of,
    remove_half_written,
    tracked_of,
)
from trimtuner.problem.history import Outcome
from trimtuner.study.study import Study

try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ModuleNotFoundError as error:
    raise InputError(f"TensorBoard needs {error.name!r}; pip install 'trimtuner[tensorboard]'") from None

__all__ = ["Logged", "TrackedStudy", "log_progress", "log_study"]

_NAME_OF_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def log_study(study: Study, folder: str | Path) -> Logged:
    """Write every ended trial, and the recommendation, to folders in this one: ``tensorboard --logdir FOLDER``."""
    return log_progress(tracked_of(study), folder)


def log_progress(tracked: TrackedStudy, folder: str | Path) -> Logged:
    """The same for a study in a record."""
    name = tracked.name if _NAME_OF_FOLDER.fullmatch(tracked.name) else tracked.id  # no path from a name
    try:
        return _Events(tracked, Path(folder) / name).write()
    except OSError as error:
        raise InputError(f"TensorBoard's events could not be written to {folder}: {error}") from None


@dataclass(frozen=True)
class _Events:
    tracked: TrackedStudy
    place: Path

    def write(self) -> Logged:
        outcomes = self.tracked.outcomes
        known = [one for one in outcomes if is_logged(self._folder(one), one, self.tracked.name)]
        new = [one for one in outcomes if one not in known]
        for outcome in new:
            self._write_trial(outcome)
        self._write_recommendation(len(outcomes))
        return Logged(len(new), len(known), len(self.tracked.history.pending))

    def _folder(self, outcome: Outcome) -> Path:
        return self.place / f"trial-{outcome.trial.number}"

    def _write_trial(self, outcome: Outcome) -> None:
        folder = self._folder(outcome)
        remove_half_written(folder)
        start, end = self.tracked.times_of(outcome)
        with _writer(folder) as writer:
            writer.add_event(Event(wall_time=start, summary=hparams_pb(_plain(outcome), folder.name, start)))
            for noted in notes_of(outcome):
                for event in _scalars(noted.values.items(), start + noted.seconds, noted.step):
                    writer.add_event(event)
            writer.add_event(Event(wall_time=end, summary=_end_of(outcome, end)))
        mark_logged(folder, outcome)

    def _write_recommendation(self, count: int) -> None:
        folder = self.place / RECOMMENDED
        if is_marked(folder, str(count)):
            return
        with _writer(folder) as writer:
            for event in _scalars(self.tracked.recommended.items(), time.time(), count):
                writer.add_event(event)
            text = json.dumps(self.tracked.recommended_config)
            writer.add_event(Event(wall_time=time.time(), step=count, summary=_text(f"{RECOMMENDED}.config", text)))
        mark(folder, str(count))


@contextmanager
def _writer(folder: Path) -> Iterator[EventFileWriter]:
    writer = EventFileWriter(str(folder))
    try:
        yield writer
    finally:
        writer.close()


def _plain(outcome: Outcome) -> dict[str, str | bool | int | float]:
    """The plugin takes texts, numbers and yes or no."""
    params = params_of(outcome).items()
    return {name: value if isinstance(value, str | bool | int | float) else str(value) for name, value in params}


def _scalars(values: Iterable[tuple[str, float]], at: float, step: int) -> Iterator[Event]:
    for name, value in values:
        yield Event(wall_time=at, step=step, summary=Summary(value=[Summary.Value(tag=name, simple_value=value)]))


def _end_of(outcome: Outcome, at: float) -> Summary:
    """How the trial ended, for the tab HParams."""
    status = api_pb2.STATUS_SUCCESS if outcome.failed is None else api_pb2.STATUS_FAILURE
    ended = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=at)
    told = metadata.create_summary_metadata(plugin_data_pb2.HParamsPluginData(session_end_info=ended))
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=told, tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])


def _text(tag: str, text: str) -> Summary:
    tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
    return Summary(value=[Summary.Value(tag=tag, metadata=create_summary_metadata(tag, ""), tensor=tensor)])
