"""From a job file to the study behind it: as it stands, and as it is run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

from trimtuner.decisions.stopping import AfterTime, AfterTrials, Stop
from trimtuner.engines.protocol import Engine, Launch, Machines, Report
from trimtuner.engines.supervising.files import REPORTS, Folder, folder_at, log_of, open_regular, read_regular
from trimtuner.engines.supervising.nodes import as_written
from trimtuner.errors import InputError
from trimtuner.jobs.differing import description_of, note, refusal, require_judgeable, ways_on
from trimtuner.jobs.job import Job, limited_problem_of
from trimtuner.jobs.learning import earlier_of
from trimtuner.jobs.load import load_job
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import History, Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.values import number_in
from trimtuner.problem.vms import Market
from trimtuner.records import DefinitionDiffers, RecordsView, StudyView
from trimtuner.records.facts import TimeCap
from trimtuner.records.sqlite_files import refuse_lost
from trimtuner.state import Limits, StudyState
from trimtuner.study.description import Description
from trimtuner.study.driver import Driver, Listener
from trimtuner.study.memory import InMemory, Recorded
from trimtuner.study.owners import alive_owners
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe

_TAIL_BYTES = 64 * 1024
_LAST_BYTES = 4 * 1024
_REPORTS_BYTES = 256 * 1024  # of what a trial reported: more than a curve shows


@dataclass(frozen=True)
class JobStudy:
    """A job, and the study that its record keeps: opened to be run, or read as it stands, again and again."""

    job: Job

    @classmethod
    def at(cls, path: Path) -> JobStudy:
        """The study of a job file, which is read and checked."""
        return cls(load_job(path))

    @cached_property
    def problem(self) -> Problem:
        """The problem, with what a trial costs at worst."""
        return limited_problem_of(self.job)

    @cached_property
    def description(self) -> Description:
        """What makes it this study and no other."""
        return replace(description_of(self.job), problem=self.problem)

    @cached_property
    def recipe(self) -> Recipe:
        """The method, with the budget of time and trials as stop rules."""
        rules: list[Stop] = []
        if self.job.budget.trials is not None:
            rules.append(AfterTrials(self.job.budget.trials))
        if self.job.budget.seconds is not None:
            rules.append(AfterTime(self.job.budget.seconds))
        recipe = self.job.search.recipe
        for rule in rules:
            recipe = recipe.stopping_also(rule)
        return recipe

    @property
    def time_cap(self) -> TimeCap | None:
        """A hard cap on the time of machines, where they are paid for in time and not in money."""
        cloud, seconds, worst = self.job.space.cloud, self.job.budget.seconds, self.problem.trial_limit
        if cloud is None or not cloud.is_free or seconds is None or worst is None:
            return None
        return TimeCap(seconds, worst, cloud.machines_in)

    def open_to_run(self) -> tuple[Study, Recorded]:
        """The study, made if need be, to be changed."""
        self.recipe.check(self.problem)
        try:
            memory = Recorded(
                self.job.storage, self.job.name, self.description, lambda: earlier_of(self.job), self.time_cap
            )
        except DefinitionDiffers as error:
            raise InputError(f"{refusal(self.job, error.differences)}\n{ways_on(self.job)}") from None
        recipe = self.recipe.learning_from(memory.record.earlier(), self.job.space)
        return Study.of(self.description, recipe, memory, self.job.name), memory

    def open_to_read(self) -> tuple[Study, StudyView]:
        """The study as it stands; nothing is made, changed or locked."""
        if isinstance(self.job.storage, Path) and not self.job.storage.exists():
            refuse_lost(self.job.storage)
            start = f"trimtuner run {self.job.path}"
            raise InputError(f"there is no record {self.job.storage} yet; start the study with: {start}")
        view = RecordsView(self.job.storage).open(self.job.name)
        memory = InMemory()
        memory.replace(self._history_in(view))
        recipe = self.recipe.learning_from(view.earlier(), self.job.space)
        return Study.of(self.description, recipe, memory, self.job.name), view

    @cached_property
    def _opened(self) -> tuple[Study, StudyView]:
        return self.open_to_read()

    @property
    def record(self) -> StudyView:
        """What the record tells of it; nothing is made, changed or locked."""
        return self._opened[1]

    @property
    def note(self) -> str:
        """What whoever looks at it must know: that the job file differs from its record; nothing where it does not."""
        return note(self.job, self._differences_from(self.record))

    def state(self) -> StudyState:
        """The study as it stands now; what was read before is not read again."""
        study, view = self._opened
        study.history = self._history_in(view)
        return self.state_of(study, view)

    def judged_state(self) -> StudyState:
        """The same; refused where the job file is so different that what was measured cannot be judged by it."""
        require_judgeable(self.job, self.record, self._differences_from(self.record))
        return self.state()

    def state_of(self, study: Study, view: StudyView) -> StudyState:
        """The state of a study that was opened already, with what only the job knows."""
        job, history = self.job, study.history
        differing = self._differences_from(view)

        def command_of(config: Mapping[str, Value], fraction: float) -> tuple[str, ...]:
            return as_written(job.run.command_for(config, fraction, history.next_number))

        return replace(
            study.state_in(view),
            limits=Limits(job.budget.trials, job.budget.seconds),
            command_of=command_of,
            log_of=lambda trial, attempt: self.log_of(view.id, trial, attempt),
            reports_of=lambda trial, attempt: self.reports_of(view, trial, attempt),
            note=note(job, differing),
            differing=differing,
            place=str(job.storage),
            job_file=str(job.path),
        )

    def _differences_from(self, view: StudyView) -> tuple[str, ...]:
        return self.description.differences_from(view.definition)

    def _history_in(self, view: StudyView) -> History:
        """What the record tells, in words of the job file where that adds to the space and was not run yet."""
        found, history = self.description.compared_with(view.definition), view.history()
        return history.with_configurations(found.complete) if found.additions else history

    def runs(self) -> int:
        """How many processes run it now."""
        return len(alive_owners(self.record))

    def log(self, trial: int) -> str | None:
        """The end of what the last attempt at a trial printed; nothing where there was none."""
        last = max((one.attempt for one in self.record.attempts() if one.trial == trial), default=None)
        return None if last is None else log_tail(self.log_of(self.record.id, trial, last))

    def log_of(self, study: str, trial: int, attempt: int) -> Path:
        """Where the output of an attempt is kept, by the study's id."""
        return log_of(self.folder / study, trial, attempt)

    def reports_of(self, view: StudyView, trial: int, attempt: int) -> tuple[Report, ...]:
        """What an attempt reported so far, where its folder is at hand."""
        return tuple(reports_in(folder_at(self.log_of(view.id, trial, attempt).parent, view.secret)))

    @property
    def folder(self) -> Path:
        """Where logs and results of trials are kept: beside the record, or beside the job file of one on a server."""
        storage = self.job.storage
        if isinstance(storage, Path):
            return storage.with_name(storage.name + ".trials")
        return self.job.path.absolute().with_name(f"{self.job.name}.trials")

    def engine(self, record: StudyView) -> Engine:
        """Where its trials run; only who has the record is told the truth."""
        return self.job.engine.settings.engine(self.folder, record.secret)

    def driver(self, listener: Listener) -> Driver:
        """What runs its trials on its engine, and tells the listener what happens."""
        study, memory = self.open_to_run()
        return Driver(
            study,
            memory,
            self.engine(memory.record),
            self.launch,
            parallel=self.job.engine.parallel,
            retries=self.job.run.retries,
            repeats=self.job.run.repeats,
            listener=listener,
        )

    def launch(self, study: str, trial: Trial, attempt: int) -> Launch:
        """One attempt at a trial, as the engine takes it."""
        run = self.job.run
        return Launch(
            study=study,
            trial=trial.number,
            attempt=attempt,
            command=run.command_for(trial.config, trial.fraction, trial.number, trial.snapshots),
            folder=self.folder / study,
            working_directory=run.working_directory,
            environment={"PYTHONUNBUFFERED": "1", **run.environment},
            secrets=run.secrets,
            limit=min(run.timeout, self._seconds_until_stopped(trial.config)),
            vcpus=self._vcpus(trial.config),
            memory_bytes=self.job.memory_bytes_for(trial.config),
            metrics_file=run.metrics_file_for(trial.number),
            machines=self._machines(trial.config),
            nodes=run.nodes,
            configuration=trial.config,
            fraction=trial.fraction,
            snapshots=trial.snapshots,
        )

    def _seconds_until_stopped(self, config: Mapping[str, Value]) -> float:
        if self.problem.ended_within is None:
            return math.inf
        return self.problem.seconds_until_stopped(self.problem.space.price_per_hour(config))

    def _machines(self, config: Mapping[str, Value]) -> Machines | None:
        vm, cloud = self.job.vm_of(config), self.job.space.cloud
        if vm is None or cloud is None:
            return None
        market: Market = "spot" if config.get("market", cloud.markets[0]) == "spot" else "on_demand"
        return Machines(
            vm_type=str(config["vm_type"]),
            count=int(number_in(config["vm_count"])),
            market=market,
            vcpus=vm.vcpus,
            memory_gib=vm.memory_gib,
            gpus=vm.gpus,
            helpers=cloud.helpers_of(str(config["vm_type"])),
            price_per_hour=vm.price_on(market),
        )

    def _vcpus(self, config: Mapping[str, Value]) -> int | None:
        """Of the machines that one command has: all the workers', so that their number matters on one machine too."""
        vm = self.job.vm_of(config)
        count = 1 if self.job.run.nodes == "all" else config.get("vm_count", 1)
        return None if vm is None else vm.vcpus * (int(count) if isinstance(count, int) else 1)


def log_tail(path: Path, most_bytes: int = _TAIL_BYTES) -> str:
    """The end of what a trial printed; whatever it is, it is text."""
    descriptor = open_regular(path)  # the trial may have put a link or a pipe in its place
    if descriptor is None:
        return "(there is no log here; it is on the machine that ran the trial)"
    with open(descriptor, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - most_bytes, 0))
        text = file.read(most_bytes).decode("utf-8", "replace")
    return text if size <= most_bytes else f"(the last {most_bytes // 1024} KiB of {size // 1024})\n{text}"


def reports_in(folder: Folder) -> Iterator[Report]:
    """What was reported in the folder of an attempt, in order; what the job wrote there itself is none."""
    text = read_regular(folder.path / REPORTS, _REPORTS_BYTES) or b""
    for line in text.split(b"\n")[:-1]:
        entry = folder.unsealed(REPORTS, line)
        if entry is not None and "metrics" in entry:
            yield Report(cast("dict[str, float]", entry["metrics"]), cast("float", entry["seconds"]))


def last_words(log: Path) -> str:
    """The last line that an attempt printed, if any is at hand; whatever it is, it is text."""
    descriptor = open_regular(log)
    if descriptor is None:
        return ""
    with open(descriptor, "rb") as file:
        file.seek(max(file.seek(0, 2) - _LAST_BYTES, 0))
        lines = file.read(_LAST_BYTES).split(b"\n")
    texts = (line.decode("utf-8", "replace").strip() for line in reversed(lines))
    return next((text for text in texts if text), "")
