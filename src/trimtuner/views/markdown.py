"""The views as Markdown: for a terminal, a pull request or a note. No picture says what is not written here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from trimtuner.state import StudyState
from trimtuner.views.answer import answers
from trimtuner.views.curves import curves
from trimtuner.views.document import goal_text
from trimtuner.views.importance import importance
from trimtuner.views.machines import NO_MACHINES, machines
from trimtuner.views.progress import progress
from trimtuner.views.spend import spend
from trimtuner.views.tables import (
    Table,
    answer_table,
    calibration_table,
    changes_table,
    curve_table,
    front_table,
    importance_table,
    machines_table,
    trials_table,
)
from trimtuner.views.terminal import money_lines, progress_line
from trimtuner.views.tradeoff import NOTHING_TO_TRADE, tradeoff
from trimtuner.views.trials import counts_by_state, rows, timeline, told_metrics
from trimtuner.views.trust import trust
from trimtuner.views.words import count_of, words_instead

Content: TypeAlias = Callable[[StudyState], list[str]]

_TRIALS_SHOWN = 20


def markdown(subject: StudyState) -> str:
    """The whole report."""
    parts = [f"# {_text(subject.name)}", _text(goal_text(subject))]
    for title, content in (
        ("Spend", _spend),
        ("Recommendation", _answers),
        ("What the money bought", _of_model(_progress)),
        ("What can be had", _of_model(_front)),
        ("Learning curves", _of_model(_curves)),
        ("Machines", _of_model(_machines)),
        ("What matters", _of_model(_importance)),
        ("Can the model be trusted", _trust),
        ("Trials", _trials),
    ):
        try:
            written = content(subject)
        except Exception as error:  # one part that fails takes nothing else with it
            written = [_text(words_instead(error))]
        parts += [f"## {title}", *written]
    return "\n\n".join(part for part in parts if part) + "\n"


def _of_model(content: Content) -> Content:
    """Or why there is no model."""
    return lambda subject: content(subject) if subject.belief is not None else [_text(subject.why_no_model or "")]


def _spend(subject: StudyState) -> list[str]:
    return [_text(line) for line in money_lines(spend(subject))]


def _answers(subject: StudyState) -> list[str]:
    view = answers(subject)
    why = [_text(sentence) for sentence in view.why]
    if view.best is None:
        return [_text(subject.note), *why]
    command = [] if view.best.command is None else [_fenced(view.best.command)]
    return [_text(subject.note), _written(answer_table(view)), *why, *command]


def _progress(subject: StudyState) -> list[str]:
    view, goal = progress(subject), subject.problem.goal
    return [_text(progress_line(view, goal)), _written(changes_table(view, goal))]


def _front(subject: StudyState) -> list[str]:
    view = tradeoff(subject)
    return (
        [NOTHING_TO_TRADE]
        if view is None
        else [
            _written(front_table(view)),
            "What is predicted counts with the unfavourable ends of its 90 % intervals. At the knee the front turns: "
            "what is paid beyond it buys less.",
        ]
    )


def _curves(subject: StudyState) -> list[str]:
    return [_written(curve_table(view, subject.problem.space.fractions)) for view in curves(subject)]


def _machines(subject: StudyState) -> list[str]:
    view = machines(subject)
    if view is None:
        return [NO_MACHINES]
    lead = "The chance that the best configuration on so many machines of a type meets the limits; * is tested, < is "
    return [_text(f"{lead}recommended."), *(_written(machines_table(view, market)) for market in view.markets)]


def _importance(subject: StudyState) -> list[str]:
    return [_written(importance_table(importance(subject)))]


def _trust(subject: StudyState) -> list[str]:
    view = trust(subject)
    if view.note:
        return [_text(view.stop), _text(view.note)]
    held = [
        f"90 % intervals of {name} held {100 * (view.coverage(name) or 0):.0f} % of {len(checks)} measurements."
        for name, checks in view.checks.items()
    ]
    table = _written(calibration_table(view)) if view.calibration else ""
    return [_text(view.stop), *(_text(line) for line in held), table]


def _trials(subject: StudyState) -> list[str]:
    found, bars = rows(subject), timeline(subject)
    if not found:
        return ["None yet."]
    kinds = ", ".join(f"{count} {state}" for state, count in counts_by_state(bars).items())
    lead = f"{count_of(len(found), 'trial')}, {count_of(len(bars), 'attempt')}: {kinds}."
    last = f" The last {_TRIALS_SHOWN}:" if len(found) > _TRIALS_SHOWN else ""
    shown = list(reversed(found[-_TRIALS_SHOWN:]))
    return [_text(lead + last), _written(trials_table(told_metrics(subject), shown))]


def _written(table: Table) -> str:
    rule = " | ".join("---" for _ in table.heads)
    return "\n".join([_row(table.heads), f"| {rule} |", *(_row(line) for line in table.lines)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _fenced(text: str) -> str:
    """As code, behind a fence that the text does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _text(text: str) -> str:
    """Words that stay words, whatever a name or a value holds."""
    for sign in "\\`*_[]<>|#&":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
