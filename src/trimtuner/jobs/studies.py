"""From a job file to the study behind it: its record, its engine, and the launches of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trimtuner.decisions.stopping import AfterTime, AfterTrials, Stop
from trimtuner.engines.protocol import Engine, Launch, Machines
from trimtuner.errors import InputError
from trimtuner.jobs.definition import definition_of
from trimtuner.jobs.differing import refusal, ways_on
from trimtuner.jobs.job import Job, problem_of
from trimtuner.jobs.learning import earlier_of
from trimtuner.jobs.load import load_job
from trimtuner.problem.expressions import Value
from trimtuner.problem.history import Trial
from trimtuner.problem.problem import Problem
from trimtuner.problem.vms import Market
from trimtuner.records import DefinitionDiffers, RecordsView, StudyView
from trimtuner.records.sqlite_files import refuse_lost
from trimtuner.study.driver import Driver, Listener
from trimtuner.study.memory import InMemory, Recorded
from trimtuner.study.study import Study
from trimtuner.tuning.recipe import Recipe


@dataclass(frozen=True)
class JobStudy:
    """A job with the study that its record keeps."""

    job: Job

    @classmethod
    def at(cls, path: Path) -> JobStudy:
        """Of a job file."""
        return cls(load_job(path))

    @cached_property
    def problem(self) -> Problem:
        """The problem, with what a trial costs at worst."""
        stated = problem_of(self.job)
        worst_time = self.job.run.timeout + self.job.engine.settings.ended_within_seconds
        return Problem(stated.space, stated.goal, stated.constraints, stated.budget, worst_time)

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
            recipe = recipe.but(stop=recipe.stop | rule)
        return recipe

    def open_to_run(self) -> tuple[Study, Recorded]:
        """The study, made if need be, to be changed."""
        self.recipe.check(self.problem)
        definition = definition_of(self.job)
        try:
            memory = Recorded(self.job.storage, self.job.name, definition, self.problem, lambda: earlier_of(self.job))
        except DefinitionDiffers as error:
            raise InputError(f"{refusal(self.job, error.differences)}\n{ways_on(self.job)}") from None
        recipe = self.recipe.learning_from(memory.record.earlier(), self.job.space)
        return Study.of(self.problem, recipe, self.job.search.seed, memory), memory

    def open_to_read(self) -> tuple[Study, StudyView]:
        """The study as it stands; nothing is made, changed or locked."""
        if isinstance(self.job.storage, Path) and not self.job.storage.exists():
            refuse_lost(self.job.storage)
            start = f"trimtuner run {self.job.path}"
            raise InputError(f"there is no record {self.job.storage} yet; start the study with: {start}")
        view = RecordsView(self.job.storage).open(self.job.name)
        memory = InMemory()
        memory.replace(view.history())
        recipe = self.recipe.learning_from(view.earlier(), self.job.space)
        return Study.of(self.problem, recipe, self.job.search.seed, memory), view

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
        """What runs it."""
        study, memory = self.open_to_run()
        return Driver(
            study,
            memory,
            self.engine(memory.record),
            self.launch,
            parallel=self.job.engine.parallel,
            retries=self.job.run.retries,
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
            limit=run.timeout,
            vcpus=self._vcpus(trial.config),
            memory_bytes=self.job.memory_bytes_for(trial.config),
            metrics_file=run.metrics_file_for(trial.number),
            machines=self._machines(trial.config),
            configuration=trial.config,
            fraction=trial.fraction,
            snapshots=trial.snapshots,
        )

    def _machines(self, config: Mapping[str, Value]) -> Machines | None:
        vm, cloud = self.job.vm_of(config), self.job.space.cloud
        if vm is None or cloud is None:
            return None
        market: Market = "spot" if config.get("market", cloud.markets[0]) == "spot" else "on_demand"
        return Machines(
            vm_type=str(config["vm_type"]),
            count=int(config["vm_count"]),
            market=market,
            vcpus=vm.vcpus,
            memory_gib=vm.memory_gib,
            gpus=vm.gpus,
            helpers=cloud.helpers,
            price_per_hour=vm.price_on(market),
        )

    def _vcpus(self, config: Mapping[str, Value]) -> int | None:
        """All the workers' vCPUs, so that the size of a cluster matters on one machine too."""
        vm = self.job.vm_of(config)
        count = config.get("vm_count", 1)
        return None if vm is None else vm.vcpus * (int(count) if isinstance(count, int) else 1)
