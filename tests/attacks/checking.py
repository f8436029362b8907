"""What must hold whatever went wrong, told by two witnesses alone: the record, and the side log that trials write."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trimtuner.problem.history import Outcome
from trimtuner.records import RecordsView, StudyView

BEAT_SECONDS = 0.02
USD_PER_SECOND = {"small": 1.0, "large": 2.0}

# Its arguments are the configuration, so what it measures is known; whatever becomes of it, its side log stays.
TRIAL = f"""
import os, sys, time

x, y, nap, fraction = map(float, sys.argv[1:])
side_log = os.open(os.environ["SIDE_LOG"], os.O_WRONLY | os.O_APPEND)

def note(kind, value):
    words = kind, os.environ["TRIMTUNER_TRIAL"], os.environ["TRIMTUNER_ATTEMPT"], os.getpid(), repr(value)
    os.write(side_log, (" ".join(map(str, words)) + "\\n").encode())

note("start", time.monotonic())
until = time.monotonic() + nap
while time.monotonic() < until:
    time.sleep({BEAT_SECONDS})
    note("beat", time.monotonic())
accuracy = (1 - (x - 0.6) ** 2 - 0.1 * y - 0.01 * nap) * fraction
note("metric", accuracy)
print('::metric {{"accuracy": %r}}' % accuracy, flush=True)
note("beat", time.monotonic())
"""


def accuracy_of(config: Mapping[str, object], fraction: float) -> float:
    """What a trial measures, worked out as it does itself."""
    x, y, nap = (float(str(config[name])) for name in ("x", "y", "nap"))
    return (1 - (x - 0.6) ** 2 - 0.1 * y - 0.01 * nap) * fraction


@dataclass
class Seen:
    """What one process of an attempt wrote into the side log."""

    began: float
    last: float
    metrics: list[float] = field(default_factory=list)


def read_side_log(path: Path) -> dict[tuple[int, int], dict[int, Seen]]:
    """By trial and attempt, and by process: there should be one of each."""
    seen: dict[tuple[int, int], dict[int, Seen]] = {}
    for line in path.read_text().splitlines():
        kind, trial, attempt, pid, value = line.split()
        of_attempt = seen.setdefault((int(trial), int(attempt)), {})
        if kind == "start":
            of_attempt[int(pid)] = Seen(float(value), float(value))
        elif kind == "beat":
            of_attempt[int(pid)].last = float(value)
        else:
            of_attempt[int(pid)].metrics.append(float(value))
    return seen


def broken_promises(view: StudyView, side_log: Path) -> list[str]:
    """What does not hold, at any instant of a study."""
    outcomes = view.history().outcomes
    return [
        *_passes_of_budget(view),
        *_too_small_charges(view, side_log),
        *_second_starts(side_log),
        *_second_measurements(outcomes),
        *_wrong_measurements(outcomes),
    ]


def broken_promises_at_rest(view: StudyView, side_log: Path) -> list[str]:
    """The same and more, when a last run has ended by itself and nothing should be under way."""
    return [*broken_promises(view, side_log), *_open_ends(view), *_unknown_attempts(view, side_log)]


def processes_of(*folders: Path) -> dict[int, str]:
    """What runs with one of the folders in its arguments or its environment, and its words."""
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            text = words + _environment_of(pid)
            is_alive = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_alive and pid != os.getpid() and any(str(folder).encode() in text for folder in folders):
            found[pid] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def open_study(place: Path | str) -> StudyView:
    """The only study of a record."""
    records = RecordsView(place)
    (name,) = records.names()
    return records.open(name)


def _environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except PermissionError:  # a supervisor, which shows it to nobody but root, and says its folder in its words
        return b""


def _passes_of_budget(view: StudyView) -> Iterator[str]:
    spent = reserved = 0
    entries, budget = view.ledger(), round((view.budget or 0.0) * 1e9)
    for position, entry in enumerate(entries):
        spent += entry.nanos if entry.kind == "charge" else 0
        reserved += {"reserve": entry.nanos, "release": -entry.nanos, "charge": 0}[entry.kind]
        is_whole = position + 1 == len(entries) or entries[position + 1].sequence != entry.sequence
        if is_whole and spent + reserved > budget:
            yield f"change {entry.sequence}: {spent} spent and {reserved} reserved (1e-9 USD) pass the budget {budget}"


def _too_small_charges(view: StudyView, side_log: Path) -> Iterator[str]:
    attempts, history = view.attempts(), view.history()
    seen = read_side_log(side_log)  # last: what was charged has ended, so nothing of it may come later
    trials = {one.number: one for one in (*(outcome.trial for outcome in history.outcomes), *history.pending)}
    for one in attempts:
        if one.charge is None:
            continue
        price = USD_PER_SECOND[str(trials[one.trial].config["vm_type"])]
        ran = sum(each.last - each.began for each in seen.get((one.trial, one.attempt), {}).values())
        if one.charge < (ran - BEAT_SECONDS) * price:
            words = f"charged {one.charge:.6f} USD, and ran {ran:.3f} s at {price:g} USD/s ({one.failed or 'measured'})"
            yield f"attempt {one.trial}-{one.attempt} was {words}"


def _second_starts(side_log: Path) -> Iterator[str]:
    for (trial, attempt), by_process in read_side_log(side_log).items():
        if len(by_process) > 1:
            yield f"attempt {trial}-{attempt} was started {len(by_process)} times: {by_process}"


def _second_measurements(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    measured = [one.trial for one in outcomes if one.failed is None]
    for place, count in Counter((tuple(one.config.items()), one.fraction) for one in measured).items():
        if count > 1:
            yield f"{place} was measured {count} times"


def _wrong_measurements(outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    for one in outcomes:
        for measurement in one.measurements:
            right = accuracy_of(one.trial.config, measurement.fraction)
            if measurement.metrics["accuracy"] != right:
                yield f"trial {one.trial.number} has accuracy {measurement.metrics['accuracy']!r}, not {right!r}"


def _open_ends(view: StudyView) -> Iterator[str]:
    history = view.history()
    if history.pending or view.reserved:
        yield f"{view.reserved} USD are still reserved, for {[one.number for one in history.pending]}"
    charges: Counter[int] = Counter()
    for entry in view.ledger():
        charges[entry.trial] += entry.nanos if entry.kind == "charge" else 0
    for one in history.outcomes:
        charged = charges[one.trial.number]
        if round(one.cost * 1e9) != charged:
            yield f"trial {one.trial.number} cost {one.cost} USD, and its charges are {charged} (1e-9 USD)"


def _unknown_attempts(view: StudyView, side_log: Path) -> Iterator[str]:
    known = {(one.trial, one.attempt) for one in view.attempts()}
    for key in read_side_log(side_log).keys() - known:
        yield f"attempt {key[0]}-{key[1]} ran, and the record does not know it"
