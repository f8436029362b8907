"""Through every surface as a user would call it; what is told must be true, and the same wherever it is told."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import httpx
import pytest

from journeys.choices import Journey, has_prices
from journeys.making import TRIALS, TRIALS_BEFORE, grown, write_journey
from trimtuner.cli import main
from trimtuner.commands.dashboard import renderer
from trimtuner.commands.dashboard.app import Dashboard
from trimtuner.errors import NoAnswer, TrimTunerError
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.history import History
from trimtuner.tuning import tuner
from trimtuner.views.every import VIEWS, drawn_views

OK, REFUSED, NO_ANSWER, INTERRUPTED = 0, 2, 3, 130
FAULTS = ("Traceback", "could not be shown", "the display failed", "being read")
T = TypeVar("T")
FORMATS = ("bash", "skypilot", "kubernetes", "sagemaker")


@dataclass(frozen=True)
class Answer:
    """What a command said, and how it ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def json(self) -> dict:
        return json.loads(self.out)


def call(folder: Path, *words: object, codes: tuple[int, ...] = (OK,)) -> Answer:
    """One command in this process: what a user would see of it, without the second that Python takes to start."""
    told, complained, code = io.StringIO(), io.StringIO(), OK
    typed = tuple(map(str, words))
    with (
        chdir(folder),
        redirect_stdout(told),
        redirect_stderr(complained),
        patch.object(sys, "argv", ["trimtuner", *typed]),
    ):
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else OK if leaving.code is None else 1
        except Exception:
            traceback.print_exc(file=complained)
            code = 1
    gc.collect()  # as the end of a process would: a server has places for some hundred connections
    answer = Answer(typed, code, told.getvalue(), complained.getvalue())
    for fault in FAULTS:
        assert fault not in answer.out + answer.err, answer
    assert code in codes, answer
    return answer


@dataclass(frozen=True)
class Turn:
    """Which of several forms of an answer are asked for: one, another at each turn."""

    number: int

    def of(self, *forms: T) -> tuple[T, ...]:
        return (forms[self.number % len(forms)],)


class EveryForm:
    """All of them."""

    def of(self, *forms: T) -> tuple[T, ...]:
        return forms


def walk(
    folder: Path,
    journey: Journey,
    storage: str | None,
    other_storage: str | None,
    quick: Path,
    asked: Turn | EveryForm,
) -> None:
    """The whole journey; ``quick`` is a ``trimtuner`` whose imports are done."""
    gc.freeze()  # what other tests have left is looked through once, not after every command
    path = write_journey(folder, journey, storage)
    assert "ready to run" in call(folder, "validate", path).out
    assert call(folder, "validate", path, "--json").json()["is_valid"]
    # A kill must reach the very process; all else reaches it through the quick one.
    slow = (sys.executable, "-m", "trimtuner")
    _first_run(folder, path, journey, slow if journey["interruption"] == "kill" else (str(quick),))
    wanted = _between(path, str(journey["between"]))
    _edit(path, lambda job: {**job, "budget": {**job["budget"], "trials": TRIALS}})
    resumed = _redirected(folder, path, quick)
    code = _expected(path)
    assert resumed.code == code, resumed
    assert code == OK or journey["failures"] != "none"
    best = _look_everywhere(folder, path, journey, code, asked)
    assert wanted is None or wanted in [dict(one.trial.config) for one in JobStudy.at(path).state().history.outcomes]
    _by_python(path, code, best)
    for look in asked.of(lambda: _page(path), lambda: _notebook(path, code)):
        look()
    if code == OK:
        _into_another(folder, path, journey, other_storage, asked)
    _same_trials(path, journey)
    nothing_left(folder)


def _expected(path: Path) -> int:
    """Whether there is an answer: as soon as anything was measured."""
    return OK if JobStudy.at(path).state().history.measurements else NO_ANSWER


def _edit(path: Path, change) -> None:
    path.write_text(
        json.dumps(change(json.loads(path.read_text(encoding="utf-8"))), ensure_ascii=False), encoding="utf-8"
    )


# -- runs ------------------------------------------------------------------------------------------------------------


class Terminal:
    """``trimtuner run`` with a terminal of its own."""

    def __init__(self, folder: Path, path: Path, program: tuple[str, ...]) -> None:
        self._ours, theirs = pty.openpty()
        command = [*program, "run", path.name]
        self.process = subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs, env=environment())
        os.close(theirs)
        self._shown: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._ours, 65536)
            except OSError:  # nobody has it open any more
                return
            if not part:
                return
            self._shown.append(part)

    def wait(self) -> Answer:
        code = self.process.wait()
        self._reader.join()
        os.close(self._ours)
        return Answer(("run",), code, b"".join(self._shown).decode("utf-8", "replace"), "")


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "120"}


def _first_run(folder: Path, path: Path, journey: Journey, program: tuple[str, ...]) -> None:
    run = Terminal(folder, path, program)
    how = str(journey["interruption"])
    if how in ("interrupt", "twice", "kill"):
        _wait_for_trials(folder, path, run, 2)
        run.process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
        if how == "twice":
            time.sleep(0.1)  # two signals at once would be one
            run.process.send_signal(signal.SIGINT)
    answer = run.wait()
    for fault in FAULTS:
        assert fault not in answer.out, answer
    ended = {"kill": (-signal.SIGKILL,), "twice": (INTERRUPTED, OK, NO_ANSWER)}.get(how)
    assert answer.code in (ended or (_expected(path),)), answer
    if how == "edited":
        _edited(folder, path)


def _wait_for_trials(folder: Path, path: Path, run: Terminal, count: int) -> None:
    """Until so many have begun, or the run has ended by itself."""
    while run.process.poll() is None:
        if _begun(folder, path) >= count:
            return
        time.sleep(0.02)


def _begun(folder: Path, path: Path) -> int:
    ran = folder / "ran.txt"
    if ran.exists():
        return len(ran.read_text().splitlines())
    try:  # played from a table: nothing is run that could leave a trace
        return len(JobStudy.at(path).record.attempts())
    except TrimTunerError:
        return 0


def _edited(folder: Path, path: Path) -> None:
    """Other limits in the file than in the record: every command says so, and none goes on as if nothing were."""
    before = path.read_text(encoding="utf-8")
    _edit(path, lambda job: {**job, "constraints": [*job["constraints"], "time <= 19s"]})
    refused = call(folder, "validate", path, codes=(REFUSED,))
    assert "constraints" in refused.out, refused
    assert "constraints" in call(folder, "run", path, codes=(REFUSED,)).err
    told = call(folder, "status", path, codes=(OK, REFUSED))
    # A job of a method that is blind to limits, which has none, is no job once it is given one.
    assert ("differs" if told.code == OK else "does not look at limits") in told.err, told
    path.write_text(before, encoding="utf-8")


def _between(path: Path, what: str) -> Mapping[str, object] | None:
    """What is done to the study between its runs; the configuration that the next must begin with, if there is one."""
    if what == "grown":
        _edit(path, grown)
    if what != "enqueued":
        return None
    study, _ = JobStudy.at(path).open_to_run()
    space = study.problem.space
    pool, known = space.pool(), {space.key(config) for config, _ in study.history.tested()}
    offered = (pool.configuration(place) for place in range(len(pool)))
    wanted = next((config for config in offered if space.key(config) not in known), None)
    if wanted is not None:
        study.enqueue(wanted)
    return wanted


def _redirected(folder: Path, path: Path, quick: Path) -> Answer:
    command = [str(quick), "run", path.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment(), check=False)
    answer = Answer(("run",), done.returncode, done.stdout, done.stderr)
    for fault in FAULTS:
        assert fault not in answer.out + answer.err, answer
    return answer


# -- looks -----------------------------------------------------------------------------------------------------------


def _look_everywhere(folder: Path, path: Path, journey: Journey, code: int, asked: Turn | EveryForm) -> Answer:
    """What ``best`` says; all else that is asked for agrees with it."""
    status = call(folder, "status", path, "--json").json()
    assert "no run at work" in call(folder, "status", path).out
    trials = call(folder, "trials", path, "--json").json()
    _add_up(path, journey, status, trials)
    best = call(folder, "best", path, "--json", codes=(code,))
    for shown in asked.of("trials", "best"):
        call(folder, shown, path, codes=(code if shown == "best" else OK,))
    if code == OK:
        told = best.json()
        assert {name: told[name] for name in status["recommendation"]} == status["recommendation"]
        for form in asked.of(*FORMATS):
            call(folder, "best", path, "--format", form, codes=(OK, REFUSED))
        within = (OK, NO_ANSWER) if journey["goal"] == "trade-off" else (OK, REFUSED, NO_ANSWER)
        call(folder, "best", path, "--within", "0.001", codes=within)
    assert (status["recommendation"] is None) == (code == NO_ANSWER)
    for words in asked.of((), (0,), (len(trials) - 1,)):
        call(folder, "explain", path, *words)
    for report in asked.of(_report_in_a_file, _report_in_words):
        report(folder, path)
    for picture in asked.of(("spend", "spend.svg", (OK,)), ("curves", "curves.png", (OK, REFUSED))):
        view, name, codes = picture
        call(folder, "report", path, "--view", view, "--output", name, codes=codes)
    return best


def _report_in_a_file(folder: Path, path: Path) -> None:
    call(folder, "report", path, "--output", "report.html")
    assert all(fault not in (folder / "report.html").read_text(encoding="utf-8") for fault in FAULTS)


def _report_in_words(folder: Path, path: Path) -> None:
    call(folder, "report", path, "--output", "-")


def _add_up(path: Path, journey: Journey, status: dict, trials: list) -> None:
    """Counts and money are the same wherever they are told, and every cent is in the ledger."""
    look = JobStudy.at(path).state()
    kinds = {"ok": "succeeded", "over": "over_limit", "forgotten": "forgotten"}
    states = Counter(kinds.get(row["state"].split()[0], "failed") for row in trials)
    told = ("succeeded", "over_limit", "failed", "forgotten")
    assert status["trials"] == {name: states[name] for name in told} | {"running": 0}
    charges = sum(entry.nanos for entry in look.record.ledger() if entry.kind == "charge")
    assert round(status["spent_usd"] * 1e9) == charges == sum(round(row["cost"] * 1e9) for row in trials)
    assert status["reserved_usd"] == 0.0
    assert (status["spent_usd"] > 0.0) == has_prices(journey["machines"])
    assert status["budget_usd"] is None or status["spent_usd"] <= status["budget_usd"]
    assert [row["trial"] for row in trials] == list(range(len(trials)))
    counted = [row for row in trials if row["state"] != "preempted" and not row["state"].startswith("forgotten")]
    assert len(counted) <= TRIALS
    places = Counter(json.dumps([row["config"], row["fraction"]]) for row in counted)
    assert set(places.values()) <= {1}


def _page(path: Path) -> None:
    """Every section answered, none pending; the worker is a thread here, so that it need not start."""
    with patch.object(renderer, "_new_pool", _Threads):
        dashboard = Dashboard([JobStudy.at(path)])
        try:
            asyncio.run(_ask_the_page(dashboard))
        finally:
            dashboard.close()
            renderer._watched.cache_clear()  # of a worker that would have ended


class _Threads(ThreadPoolExecutor):
    _processes: dict = {}  # noqa: RUF012  (what the renderer ends when it closes)

    def __init__(self) -> None:
        super().__init__(1)


async def _ask_the_page(dashboard: Dashboard) -> None:
    transport = httpx.ASGITransport(app=dashboard.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        while True:
            state = (await client.get("/study/0/state")).json()
            assert state["trouble"] == ""
            if None not in state["views"].values():
                break
            await asyncio.sleep(0.05)
        assert state["said"].startswith("no run at work"), state
        for view in VIEWS:
            answer = await client.get(f"/study/0/view/{view.name}")
            assert answer.status_code == 200
            assert len(answer.text) > 10
            assert all(fault not in answer.text for fault in FAULTS), (view.name, answer.text)
        for address in ("/study/0", "/study/0/trial/0", "/study/0/trials?below=2"):
            assert (await client.get(address)).status_code == 200


def _into_another(folder: Path, path: Path, journey: Journey, storage: str | None, asked: Turn | EveryForm) -> None:
    """What is exported can be imported, to the last digit, and once only."""
    other = write_journey(folder, journey, storage, "another")
    if journey["between"] == "grown":
        _edit(other, grown)
    count = len(JobStudy.at(path).state().history.measurements)
    said = f"{count} measurements added, 0 known already"
    for form in asked.of("csv", "json"):
        exported = call(folder, "export", path, "--format", form).out
        (folder / f"x.{form}").write_text(exported, encoding="utf-8")
        assert said in call(folder, "import", other, f"x.{form}").out
        said = f"0 measurements added, {count} known already"
    assert said in call(folder, "import", other, f"x.{form}").out
    assert call(folder, "export", other).out == call(folder, "export", path).out
    call(folder, "best", other)


def _by_python(path: Path, code: int, told: Answer) -> None:
    """The same record from Python: the same recommendation."""
    study, _ = JobStudy.at(path).open_to_read()
    if code == NO_ANSWER:
        with pytest.raises(NoAnswer):
            study.recommend()
        return
    best, found = told.json(), study.recommend()
    assert json.loads(json.dumps(dict(found.config))) == best["config"]  # a tuple is a list there
    assert {name: one.mean for name, one in found.estimates.items()} == pytest.approx(
        {name: one["mean"] for name, one in best["estimates"].items()}
    )


def _notebook(path: Path, code: int) -> None:
    """What a notebook shows, and every picture that there is."""
    study, _ = JobStudy.at(path).open_to_read()
    shown = study._repr_html_()
    assert all(fault not in shown for fault in FAULTS), shown
    for view in drawn_views() if code == OK else ():
        try:
            assert study.plot(view).svg.startswith("<svg")
        except NoAnswer as error:
            assert f"no picture of '{view}'" in str(error)  # noqa: PT017


def _same_trials(path: Path, journey: Journey) -> None:
    """One at a time, each trial is the one that the history before it asks for: the last, and one amid the rest."""
    if journey["parallel"] != 1 or journey["failures"] == "all" or journey["interruption"] in ("twice", "kill"):
        return
    if journey["between"] == "enqueued":  # one of them was asked for by somebody else
        return
    look = JobStudy.at(path).state()
    outcomes = sorted(look.history.outcomes, key=lambda outcome: outcome.trial.number)
    for number in {TRIALS_BEFORE, len(outcomes) - 1} & set(range(len(outcomes))):
        before = History(tuple(outcomes[:number]), (), number)
        asked, ran = tuner.ask(look.problem, look.recipe, before, look.seed), outcomes[number].trial
        assert (dict(asked.config), asked.fraction) == (dict(ran.config), ran.fraction)


def nothing_left(folder: Path) -> None:
    """No process of ours works in the folder, or names it, but for those that are about to leave."""
    while left := _at_work_in(folder):
        time.sleep(0.1)  # the test's own time-out is what ends this
    assert not left


def _at_work_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            is_there = Path(os.readlink(process / "cwd")).is_relative_to(folder)
        except OSError:
            continue
        if is_there or str(folder) in words:
            found.append(words)
    return found
