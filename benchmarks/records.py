"""How fast a record is when it is long: ``python -m benchmarks.records [address]``.

Trials are put in as rows, then claims, endings and looks at the status are timed on top of them. Without the address of
an empty PostgreSQL database, a server is started as the tests do, where there is one to start; SQLite is always timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import insert, update

from trimtuner.problem.history import Measurement, Outcome, Trial
from trimtuner.records import Owner, Record, Records
from trimtuner.records.codec import configuration_key, encode_configuration, encode_measurements
from trimtuner.records.schema import ATTEMPTS, EVENTS, LEDGER, PLACES, STUDIES, TRIALS
from trimtuner.records.seals import seal_everything

SIZES = (0, 1_000, 10_000, 100_000)
TIMED = 100  # claims, and endings
ROWS_AT_ONCE = 5_000
NANOS = 10_000_000


def main(words: list[str]) -> None:
    """A table for each store."""
    with tempfile.TemporaryDirectory() as folder:
        print_table("SQLite", lambda size: Path(folder) / f"{size}.db")
    if words:
        print_table("PostgreSQL", lambda _: words[0])
        return
    with started_server() as new_address:
        if new_address is not None:
            print_table("PostgreSQL", lambda _: new_address())


def print_table(store: str, place_for: Callable[[int], str | Path]) -> None:
    heads = ("trials", "claims/s", "endings/s", "first claim ms", "status ms", "history ms", "heartbeat ms")
    print(f"\n{store}\n" + "  ".join(f"{head:>14}" for head in heads))
    for size in SIZES:
        with Records(place_for(size)) as records:
            record = records.create_or_open(f"study of {size}", {}, 1e6)
            record.register(Owner("owner", "host", 1, "1"))
            fill(record, size)
            figures = measured(records.open(record.name), size)
        print("  ".join(f"{figure:>14,.1f}" if figure % 1 else f"{figure:>14,.0f}" for figure in (size, *figures)))


def measured(record: Record, size: int) -> tuple[float, ...]:
    """Claims and endings per second, and milliseconds of the first claim, a status, a first history, a heartbeat."""
    first = seconds_of(lambda: claim(record, size))
    claims = seconds_of(lambda: [claim(record, size + 1 + number) for number in range(TIMED)])
    endings = seconds_of(lambda: [record.finish(outcome(size + number), 1, 0.01) for number in range(TIMED)])
    looks = (record.status, record.history, lambda: record.heartbeat("owner"))
    return (TIMED / claims, TIMED / endings, 1000 * first, *(1000 * seconds_of(look) for look in looks))


def claim(record: Record, number: int) -> None:
    assert record.claim(trial(number), 0.01, "owner")


def trial(number: int) -> Trial:
    config = {"learning_rate": 1e-3, "batch_size": number, "mode": "sync", "vm_type": "t2.small", "vm_count": 8}
    return Trial(number, config, 1 / 60)


def outcome(number: int) -> Outcome:
    one = trial(number)
    metrics = {"accuracy": 0.5, "time": 30.0, "cost": 0.01}
    return Outcome(one, (Measurement(one.config, one.fraction, metrics),), None, 0.01, 30.0)


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fill(record: Record, size: int) -> None:
    """As many ended trials, without the waiting: each was claimed and finished in two changes."""
    study, base = record._study, record.version()
    for first in range(0, size, ROWS_AT_ONCE):
        numbers = range(first, min(first + ROWS_AT_ONCE, size))
        with record._writer.transaction() as connection:
            for table, rows in rows_of(study, base, numbers).items():
                connection.execute(insert(table), rows)
    with record._writer.transaction() as connection:
        connection.execute(update(STUDIES).where(STUDIES.c.study == study).values(version=base + 2 * size))
        seal_everything(connection)
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("ANALYZE")  # as the server does by itself within a minute


def rows_of(study: int, base: int, numbers: range) -> dict:
    rows: dict = {table: [] for table in (TRIALS, ATTEMPTS, PLACES, LEDGER, EVENTS)}
    unsealed = {"digest": ""}
    for number in numbers:
        end = outcome(number)
        key, fraction = configuration_key(end.trial.config), end.trial.fraction
        of, asked, told, money = {"study": study}, base + 2 * number + 1, base + 2 * number + 2, {"nanos": NANOS}
        own = {**of, "trial": number}
        rows[TRIALS].append(
            {**of, "number": number, "config": encode_configuration(end.trial.config), "config_key": key}
            | {"fraction": fraction, "snapshots": "[]", "origin": "model", "asked": asked, "owner": "owner"}
            | {"attempt": 1, "told": told, "cost": 0.01, "time": 30.0}
            | {"measurements": encode_measurements(end.measurements)}
            | unsealed
        )
        rows[ATTEMPTS].append({**own, "attempt": 1, "reserve": NANOS, "asked_at": 0.0, "charge": NANOS} | unsealed)
        rows[PLACES].append({**own, "config_key": key, "fraction": fraction, "state": "tested"} | unsealed)
        for kind, sequence in (("reserve", asked), ("charge", told), ("release", told)):
            rows[LEDGER].append({**own, "attempt": 1, "sequence": sequence, "kind": kind, "at": 0.0, **money})
        for kind, sequence in (("asked", asked), ("finished", told)):
            rows[EVENTS].append({**own, "sequence": sequence, "at": 0.0, "kind": kind, "detail": "{}"} | unsealed)
    return rows


@contextmanager
def started_server() -> Iterator[Callable[[], str] | None]:
    """Makes fresh databases."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres_server import NOT_HERE, find_binaries, running_server

    binaries = find_binaries()
    if binaries is None:
        print(f"\n{NOT_HERE}")
        yield None
        return
    with running_server(binaries) as server:
        yield lambda: server.address(server.new_database())


if __name__ == "__main__":
    main(sys.argv[1:])
