"""Who decides what to test, and when enough is known."""

from __future__ import annotations

from trimtuner.decisions.stopping import LittleImprovement, NotWorthItsPrice, Stop
from trimtuner.errors import nearest
from trimtuner.jobs.faults import Fault
from trimtuner.jobs.fields import SECTIONS, Field, shortened
from trimtuner.jobs.job import Search
from trimtuner.jobs.tree import ScalarNode, plain_scalar
from trimtuner.problem.expressions import Value
from trimtuner.tuning.methods import split_text
from trimtuner.tuning.recipes import METHODS

MOST_EARLIER = 20
STOP_KEYS = ("little_improvement", "not_worth_its_price")


def read_search(field: Field) -> Search:
    """The section ``search``."""
    section = field.section(SECTIONS["search"], "a mapping such as {method: trimtuner, seed: 0}")
    method, in_text = section.read("method", _method, ("trimtuner", {}))
    options = {**in_text, **section.read("options", lambda one: _options(one, in_text), {})}
    with section.faults.collecting(section.line("options" if "options" in section else "method")):
        METHODS[method].recipe(options)
    seed = section.read("seed", lambda one: one.whole_number("a seed", 0, 2**32 - 1), 0)
    learn_from = section.read("learn_from", _learn_from, ())
    search = Search(method, options, seed, section.read("stop", _stop, None), learn_from)
    if learn_from and not section.faults:
        with section.faults.collecting(section.line("learn_from")):
            search.recipe.require_learning()
    return search


def _learn_from(field: Field) -> tuple[str, ...]:
    """Paths as written; what is there is read when the study is made, and not again."""
    wanted = "a list of job files of earlier studies, such as [../last-month/job.yaml]"
    return tuple(one.text(wanted) for one in field.items(wanted, most=MOST_EARLIER))


def _method(field: Field) -> tuple[str, dict[str, Value]]:
    text = field.text("the name of a method, such as trimtuner")
    with field.blamed():
        name, options = split_text(text)
    if name not in METHODS:
        raise field.fault(f"method {shortened(name)} is none of {', '.join(METHODS)}{nearest(name, METHODS)}")
    values = {key: plain_scalar(value) for key, value in options.items()}
    return name, {key: value for key, value in values.items() if value is not None}


def _options(field: Field, in_text: dict[str, Value]) -> dict[str, Value]:
    section = field.named_fields("a mapping of options of the method, such as {horizon: 1}")
    for key in section.keys:
        if key in in_text:
            raise Fault(section.line(key), f"option {key} is also in the text of the method; give it once")
    return {key: one.scalar() for key, one in section}


def _stop(field: Field) -> Stop | None:
    section = field.section(STOP_KEYS, "a mapping such as {little_improvement: 0.05}")
    rules: list[Stop | None] = [
        section.read("little_improvement", _little_improvement, None),
        section.read("not_worth_its_price", _not_worth_its_price, None),
    ]
    joined: Stop | None = None
    for rule in rules:
        if rule is not None:
            joined = rule if joined is None else joined | rule
    return joined


def _little_improvement(field: Field) -> Stop:
    return LittleImprovement(field.number("a share of the best measured", above=0, most=1))


def _not_worth_its_price(field: Field) -> Stop:
    if isinstance(field.node, ScalarNode) and field.node.value is True:
        return NotWorthItsPrice()
    return NotWorthItsPrice(field.number("what one unit of the goal is worth in USD, or true for a cost", above=0))
