"""The tools that an assistant is offered, by the Model Context Protocol over standard input and output.

What a job prints never reaches the assistant: it could be written to instruct it. Of a failed trial it learns the kind.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ParamSpec, TypeVar

from trimtuner import __version__
from trimtuner.commands.assistants.allowed import AllowedStudies
from trimtuner.commands.report import report_text
from trimtuner.errors import InputError, NoAnswer, TrimTunerError, words_of
from trimtuner.jobs.validation import validation
from trimtuner.state import StudyState
from trimtuner.study.explaining import explain_text
from trimtuner.study.telling import answered, status, trial_rows

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations
    from pydantic import Field
except ModuleNotFoundError as error:
    raise InputError(f"assistants need {error.name!r}; pip install 'trimtuner[mcp]'") from None

P = ParamSpec("P")
T = TypeVar("T")

StudyName = Annotated[str, Field(description="The name of an allowed study; list_studies tells them.")]

INSTRUCTIONS = """\
trimtuner finds the best machines and hyper-parameters for a training job within limits on money.
You may work on the studies that list_studies names, and on no others. To start one spends real money, up to its budget,
which is a hard cap that you cannot change; ask the user before you start one. A study goes on without you until it is
over: look at its status now and then. You cannot change a job file: propose it to the user, who restarts this."""

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)
_STOPS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


def serve(allowed: AllowedStudies) -> None:
    """Answer on standard input and output until it is closed."""
    server_of(allowed).run("stdio")


def server_of(allowed: AllowedStudies) -> MCPServer[None]:
    """The server with its tools."""
    server: MCPServer[None] = MCPServer(
        "trimtuner", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    tools = _Tools(allowed)
    for tool in (tools.list_studies, tools.validate, tools.status, tools.trials, tools.best, tools.explain):
        server.add_tool(_told(tool), annotations=_READS)
    server.add_tool(_told(tools.report), annotations=_READS)
    server.add_tool(_told(tools.start), annotations=_SPENDS)
    server.add_tool(_told(tools.stop), annotations=_STOPS)
    server.add_tool(_told(tools.stop_now), annotations=_ENDS)
    return server


def _told(tool: Callable[P, T]) -> Callable[P, T]:
    """What goes wrong is told as what it is; all else would be a crash without words."""

    @functools.wraps(tool)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return tool(*arguments, **named)
        except TrimTunerError as error:
            raise ToolError(str(error)) from None
        except OSError as error:
            raise ToolError(words_of(error)) from None

    return call


@dataclass(frozen=True)
class _Tools:
    allowed: AllowedStudies

    def list_studies(self) -> str:
        """The studies that may be worked on, with their budgets in USD; JSON."""
        told = [
            {
                "study": name,
                "job_file": str(one.job.path),
                "goal": str(one.job.goal),
                "budget_usd": one.job.budget.money,
                "may_be_started": one.job.budget.money is not None and not one.is_changed,
                "job_file_has_changed": one.is_changed,
                "runs": one.runs,
            }
            for name, one in self.allowed.by_name.items()
        ]
        return _json(told)

    def validate(self, study: StudyName) -> str:
        """Check a study without running it: its space, the worst case of a trial, what the budget allows; JSON."""
        one = self.allowed.named(study)
        return _json({**validation(one.job), "job_file_has_changed": one.is_changed})

    def start(self, study: StudyName) -> str:
        """Start or resume a study. It SPENDS MONEY, up to its budget, and goes on until it is over or stopped."""
        self.allowed.start(study)
        budget = self.allowed.named(study).job.budget.money
        return f"{study} is running; it cannot spend more than {budget:g} USD in all. Its status tells how it goes."

    def status(self, study: StudyName) -> str:
        """Money, trials and the recommendation, as they stand; JSON."""
        return _json(status(self._state(study)))

    def trials(self, study: StudyName) -> str:
        """Every trial: where, what it measured, what it cost, how it ended; JSON."""
        return _json(trial_rows(self._state(study)))

    def best(self, study: StudyName) -> str:
        """The recommendation, what it is expected to measure, and the front where two metrics are traded; JSON."""
        state = self._state(study)
        if state.recommendation is None:
            raise NoAnswer(f"nothing of {study} was measured yet; see its status")
        return _json(answered(state, state.recommendation))

    def explain(
        self,
        study: StudyName,
        trial: Annotated[int | None, Field(description="A trial's number; without it, the recommendation.")] = None,
    ) -> str:
        """Why a trial was asked, or why the recommendation is what it is."""
        return explain_text(self._state(study), trial)

    def report(self, study: StudyName) -> str:
        """Everything there is to see of a study, as Markdown."""
        return report_text(self.allowed.named(study).study)

    def stop(self, study: StudyName) -> str:
        """Ask a study to start no more trials; those that run go on to their end."""
        self.allowed.stop(study)
        return f"{study} was asked to stop; running trials go on to their end"

    def stop_now(self, study: StudyName) -> str:
        """Stop a study and end its running trials; what they cost so far stays charged."""
        ended = self.allowed.stop_now(study)
        return f"{study} was asked to stop; trials ended: {', '.join(map(str, ended)) or 'none'}"

    def _state(self, study: str) -> StudyState:
        return self.allowed.named(study).study.judged_state()


def _json(told: object) -> str:
    return json.dumps(told, indent=2)
