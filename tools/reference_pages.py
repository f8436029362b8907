"""The reference pages of the documentation, as Markdown: the job file from its schema, the commands from their parser.

    python tools/reference_pages.py job-file          # or: command-line

Nothing here is written twice: what a key or an option means stands where it is read. Headings and keys have anchors
(Markdown's ``attr_list``), so that other pages can point at ``job-file.md#run-timeout``.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, get_args, get_type_hints

from typer.main import get_command

from trimtuner.cli import app_of
from trimtuner.commands.running import EXIT_INTERRUPTED
from trimtuner.commands.verbs.shared import EXIT_BAD_INPUT, EXIT_NO_ANSWER
from trimtuner.jobs.engine_section import EngineChoice, keys_of_engine
from trimtuner.jobs.engines import ENGINES
from trimtuner.jobs.schema import job_schema
from trimtuner.jobs.search_section import options_of
from trimtuner.jobs.starter import SCHEMA_FILE
from trimtuner.jobs.tree import plain_scalar
from trimtuner.keys.declared import keys_of
from trimtuner.keys.kinds import Json, Schema
from trimtuner.problem.catalog import LEAST_AMOUNT
from trimtuner.tuning.recipes import METHODS

app = app_of()

_EDITORS = f"""\
## In your editor

`trimtuner init --schema` writes a job file and, beside it, its schema `{SCHEMA_FILE}`: keys and values are then
completed and checked as you type, and what this page says is shown where you point. For a job file that you have
already, `trimtuner schema --output {SCHEMA_FILE}` writes the schema; write it again after an update of trimtuner.

| editor | |
|---|---|
| VS Code, and others with the YAML language server | Install the extension *YAML* of Red Hat. The first line of the \
job file is `# yaml-language-server: $schema={SCHEMA_FILE}`. The path is from the folder of the job file. |
| JetBrains (PyCharm, IntelliJ) | Nothing is to be installed. The first line of the job file is \
`# $schema: ./{SCHEMA_FILE}`. Or name both files under *Settings, Languages & Frameworks, Schemas and DTDs, \
JSON Schema Mappings*. |

A schema sees one value or one section at a time. `trimtuner validate` sees all: conditions and placeholders that name
nothing, constraints that contradict each other, missing files, prices and secrets, and what a trial costs at worst.
"""

# Pages that tell more, from docs/reference, by the anchor of the section.
_MORE = {
    "cloud": "[Prices](../prices.md)",
    "run": "[Running your own job](../jobs.md)",
    "engine-ray": "[Trials on a Ray cluster](../ray.md)",
    "engine-aws": "[Trials on AWS](../aws.md)",
    "engine-slurm": "[Trials on a Slurm cluster](../slurm.md)",
    "engine-replay": "[Replay](../replay.md)",
    "search": "[Methods](../methods.md)",
    "storage": "[A team on one record](../postgres.md)",
}

_EXIT_CODES = {
    0: "done",
    1: "a fault of trimtuner itself; please report it",
    EXIT_BAD_INPUT: "something is wrong with what was given, or in the way; the message says what, and what to do",
    EXIT_NO_ANSWER: "no answer yet: nothing was measured",
    EXIT_INTERRUPTED: "left by a second interrupt; running trials go on, and the next `run` adopts them",
}


def job_file_page() -> str:
    """Every key of the job file: what it takes, its default, what it means."""
    schema = job_schema()
    keys = _properties(schema)
    lines = [
        "# The job file",
        "",
        "A job file is YAML 1.2: `no` is a text and `1e-3` a number. Keys that are not on this page are errors, which "
        "name the nearest right one. Paths are from the folder of the job file.",
        "",
        *_table(
            ("section", "what it says"),
            (
                (f"[`{name}`](#{name}){_whole()}", f"{_need(name, schema)}{_first_sentence(one)}")
                for name, one in keys.items()
            ),
        ),
        "",
        "One of `parameters`, `cloud` and `configs` must be there, or the first two together.",
        "",
        _EDITORS,
    ]
    for name, one in keys.items():
        lines += section_lines((name,), one)
    return "\n".join(lines).rstrip() + "\n"


def command_line_page() -> str:
    """Every command: usage, arguments, options, defaults; and the exit codes."""
    commands = list(_leaves(get_command(app), "trimtuner"))
    rows = ((f"[`{name}`](#{_anchor(name)})", _help_paragraphs(one)[0]) for name, one in commands)
    lines = [
        "# The command line",
        "",
        "`trimtuner --help` lists the commands, `trimtuner COMMAND --help` tells about one; `python -m trimtuner` is "
        "the same program. With `--json`, a command prints one JSON value for scripts.",
        "",
        *_table(("command", ""), rows),
        "",
        "## Exit codes",
        "",
        *_table(("code", "meaning"), ((f"`{code}`", text) for code, text in _EXIT_CODES.items())),
        "",
        "Errors go to standard error, one a line; those of a job file begin with file and line.",
        "",
    ]
    for name, one in commands:
        lines += _command(name, one)
    return "\n".join(lines).rstrip() + "\n"


# The job file


def section_lines(path: tuple[str, ...], schema: Schema) -> list[str]:
    """A heading, what the section is for, an example, its keys, and the sections inside it."""
    name = ".".join(path)
    lines = [*_heading(len(path) + 1, name, name), str(schema["description"]), "", *_more(name)]
    lines += [*([_default(schema).strip(), ""] if "default" in schema else []), *_examples(path[-1], schema)]
    if path == ("search", "options"):
        return [*lines, *_options_of_methods()]
    inner = _inner_mapping(schema) or {}
    keys = _properties(inner)
    lines += [_whose_keys(schema), ""] if keys else []
    for heading, names in _groups(path, keys):
        prefix = (*path, *heading)
        if heading:
            lines += [*_heading(3, f"type: {heading[0]}", ".".join(prefix)), *_more(".".join(prefix))]
        rows = (
            (_key_cell(prefix, one, keys[one]), _takes(keys[one]), _meaning(one, keys[one], inner)) for one in names
        )
        lines += [*_table(("key", "takes", "meaning"), rows), ""]
    for inside, one in keys.items():
        if _has_own_section(inside, one):
            lines += section_lines((*path, inside), one)
    return lines


def _more(name: str) -> list[str]:
    return [f"More: {_MORE[_anchor(name)]}.", ""] if _anchor(name) in _MORE else []


def _whose_keys(schema: Schema) -> str:
    if ("anyOf" in schema and "properties" not in schema) or isinstance(schema.get("type"), list):
        return "The keys of a mapping:"
    if "properties" in schema:
        return "Its keys:"
    return "The keys of each:" if "additionalProperties" in schema else "The keys of each, besides names of your own:"


def _groups(path: tuple[str, ...], keys: Mapping[str, Schema]) -> Iterator[tuple[tuple[str, ...], Sequence[str]]]:
    """Keys by what they depend on; only those of engines depend on anything."""
    if path != ("engine",):
        if keys:
            yield (), list(keys)
        return
    yield (), list(keys_of(EngineChoice))
    for kind in ENGINES:
        if keys_of_engine(kind):
            yield (kind,), list(keys_of_engine(kind))


def _key_cell(prefix: tuple[str, ...], name: str, schema: Schema) -> str:
    anchor = _anchor(".".join((*prefix, name)))
    return f"[`{name}`](#{anchor}){_whole()}" if _has_own_section(name, schema) else f"`{name}`{_whole(f'#{anchor} ')}"


def _has_own_section(name: str, schema: Schema) -> bool:
    return _inner_mapping(schema) is not None or (name == "options" and schema.get("type") != "array")


def _inner_mapping(schema: Schema) -> Schema | None:
    """The mapping with known keys in a schema: itself, an alternative, an item or what a free name stands for."""
    inside = [
        schema,
        *_schemas(schema.get("anyOf")),
        *_schemas([schema.get("additionalProperties"), schema.get("items")]),
    ]
    return next((one for one in inside if one.get("properties")), None)


def _options_of_methods() -> list[str]:
    """The methods with their options, and what the options mean."""
    of_methods = {name: _properties(options_of(method)) for name, method in METHODS.items()}
    meanings = {option: one for options in of_methods.values() for option, one in options.items()}
    defaults = (
        (f"`{name}`", ", ".join(map(_with_default, one, one.values())) or "none") for name, one in of_methods.items()
    )
    rows = ((f"`{option}`", _takes(one), str(one["description"])) for option, one in meanings.items())
    return [
        *_table(("method", "options and their defaults"), defaults),
        "",
        *_table(("option", "takes", "meaning"), rows),
        "",
    ]


def _with_default(option: str, schema: Schema) -> str:
    return f"`{option}: {_flow(schema['default'])}`" if "default" in schema else f"`{option}`"


def _meaning(name: str, schema: Schema, inner: Schema) -> str:
    others = [example for example in _list(schema.get("examples")) if example != schema.get("default")]
    shown = ", ".join(f"`{_flow(example)}`" for example in others)
    such = f" Such as {shown}." if shown and not _has_own_section(name, schema) else ""
    text = _first_sentence(schema) if _has_own_section(name, schema) else schema["description"]
    return f"{_need(name, inner)}{text}{_default(schema)}{such}"


def _default(schema: Schema) -> str:
    return f" Default: `{_flow(schema['default'])}`." if schema.get("default") not in (None, [], {}) else ""


def _need(name: str, schema: Schema) -> str:
    return _NEEDED if name in _texts(schema.get("required")) else ""


def _takes(schema: Schema) -> str:
    """In a few words, what a key takes."""
    alternatives = _schemas(schema.get("anyOf")) if "type" not in schema else []
    if len(alternatives) == 2 and alternatives[1].get("items") == alternatives[0]:
        return f"{_takes(alternatives[0])}, or a list"
    words = [word for one in alternatives or [schema] for word in _words(one)]
    return _joined(list(dict.fromkeys(words)))


def _words(schema: Schema) -> list[str]:
    """The values that there are, or the kinds of them."""
    if "const" in schema:
        return [f"`{_flow(schema['const'])}`"]
    listed = _texts(schema.get("enum"))
    if listed:
        return [f"`{word}`" for word in listed] if len(listed) < _MANY else ["text"]
    kinds = _texts(schema["type"]) or [str(schema["type"])]
    words = [word for kind in kinds for word in _KINDS[kind]]
    return [f"{words[0]} {_limits(schema)}".strip()] if kinds in (["number"], ["integer"]) else words


_MANY = 8  # words, more than one reads in a cell
_KINDS = {
    "string": ("text",),
    "number": ("number",),
    "integer": ("whole number",),
    "boolean": ("`true`", "`false`"),
    "array": ("list",),
    "object": ("mapping",),
    "null": ("`null`",),
}


def _limits(schema: Schema) -> str:
    """The bounds of numbers, as a person says them."""
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    told = [f"{word} {_shown_number(schema[bound])}" for bound, word in words.items() if bound in schema]
    return (" " if "minimum" in schema and "maximum" in schema else ", ").join(told).replace(", to", ", at most")


def _shown_number(value: Json) -> str:
    return f"{value:,}" if isinstance(value, int) else "0" if value == LEAST_AMOUNT else f"{value:g}"


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _examples(name: str, schema: Schema) -> list[str]:
    """The examples as YAML, each on its own where there are several."""
    blocks = ["\n".join(_yaml_lines("", name, example)) for example in _list(schema.get("examples"))]
    return ["```yaml", "\n# or\n".join(blocks), "```", ""] if blocks else []


def _yaml_lines(indent: str, name: str, value: Json) -> list[str]:
    """A key with its value: on one line where that is short, otherwise below each other."""
    on_one_line = f"{indent}{name}: {_flow(value)}"
    if len(on_one_line) <= _LONGEST_LINE or not isinstance(value, dict | list):
        return [on_one_line]
    if isinstance(value, list):
        return [f"{indent}{name}:", *(f"{indent}  - {_flow(item)}" for item in value)]
    return [f"{indent}{name}:", *(line for one in value for line in _yaml_lines(f"{indent}  ", one, value[one]))]


def _flow(value: Json) -> str:
    """A value as YAML on one line; a text in quotes where it needs them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    is_bare = isinstance(value, str) and _BARE.fullmatch(value) and plain_scalar(value) == value
    return str(value) if is_bare else json.dumps(value, ensure_ascii=False)


_LONGEST_LINE = 78
_BARE = re.compile(r"[A-Za-z0-9_./~]([A-Za-z0-9_./ +~@%=-]|:(?=[^ ]))*")


def _first_sentence(schema: Schema) -> str:
    return re.split(r"(?<=[.:]) ", str(schema["description"]))[0].rstrip(":.") + "."


def _properties(schema: Schema) -> dict[str, Schema]:
    found = schema.get("properties")
    return {name: one for name, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}


def _schemas(value: Json) -> list[Schema]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _texts(value: Json) -> list[str]:
    return [one for one in _list(value) if isinstance(one, str)]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


# The command line


class _Parameter(Protocol):
    """What the parser knows of an argument or option."""

    name: str
    param_type_name: str
    opts: list[str]
    secondary_opts: list[str]
    required: bool
    default: object
    metavar: str | None
    help: str | None
    hidden: bool
    show_default: bool | str
    envvar: str | None


class _Command(Protocol):
    """What the parser knows of a command."""

    help: str | None
    params: list[_Parameter]
    callback: Callable[..., None]
    hidden: bool


def _leaves(command: _Command, name: str) -> Iterator[tuple[str, _Command]]:
    """The command and all below it that do something, with their whole names."""
    below: Mapping[str, _Command] = getattr(command, "commands", {})
    if not below or command.params:
        yield name, command
    for one, inner in below.items():
        if not inner.hidden:
            yield from _leaves(inner, f"{name} {one}")


def _command(name: str, command: _Command) -> list[str]:
    shown = sorted((one for one in command.params if not one.hidden), key=lambda one: one.param_type_name)
    hints = get_type_hints(inspect.unwrap(command.callback))
    rows = ((_written(one, hints), f"{_NEEDED if _is_needed_option(one) else ''}{_about(one)}") for one in shown)
    return [
        *_heading(2, name, name),
        *("```text", _usage(name, command, shown, hints), "```", ""),
        *(line for paragraph in _help_paragraphs(command) for line in (paragraph, "")),
        *(_table(("argument or option", "meaning"), rows) if shown else []),
        "",
    ]


def _usage(name: str, command: _Command, shown: Sequence[_Parameter], hints: Mapping[str, object]) -> str:
    needed = [" ".join([one.opts[0], *_value(one, hints)]) for one in shown if _is_needed_option(one)]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    placed = [_placeholder(one) if one.required else f"[{_placeholder(one)}]" for one in arguments]
    return " ".join([name, "[OPTIONS]", *needed, *placed, *(["COMMAND"] if hasattr(command, "commands") else [])])


def _is_needed_option(parameter: _Parameter) -> bool:
    return parameter.param_type_name == "option" and parameter.required


def _placeholder(argument: _Parameter) -> str:
    return argument.metavar or argument.name.upper()


def _written(parameter: _Parameter, hints: Mapping[str, object]) -> str:
    """How it is typed: ``-o``, ``--output PATH``."""
    if parameter.param_type_name == "argument":
        return f"`{_placeholder(parameter)}`"
    *others, longest = sorted([*parameter.opts, *parameter.secondary_opts], key=len)
    return ", ".join(f"`{one}`{_whole()}" for one in [*others, " ".join([longest, *_value(parameter, hints)])])


def _value(option: _Parameter, hints: Mapping[str, object]) -> list[str]:
    """What stands for its value, if it takes one."""
    hint = hints.get(option.name)
    kinds = [value for kind, value in _VALUES.items() if kind is hint or kind in _inner_types(hint)]
    return [option.metavar] if option.metavar else kinds[:1]


_VALUES = {Path: "PATH", int: "N", float: "NUMBER", str: "TEXT"}


def _inner_types(hint: object) -> list[object]:
    """The types in ``list[str] | None``."""
    return [inner for one in get_args(hint) for inner in (one, *_inner_types(one))]


def _about(parameter: _Parameter) -> str:
    """Its help, the variable that may hold it, and its default."""
    told = parameter.help or ""
    written = re.search(r"\s*\[default: (.*)\]$", told)
    text = _as_markdown(told[: written.start()] if written else told)
    variable = f" Or as the variable `{parameter.envvar}`." if parameter.envvar else ""
    default = _as_markdown(written[1]) if written else _default_of(parameter)
    return (text + variable + (f" Default: {default}." if default else "")).strip()


def _default_of(parameter: _Parameter) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    is_silent = parameter.default is None or parameter.default is False or parameter.default == ""
    return f"`{parameter.default}`" if parameter.show_default and not is_silent else ""


def _help_paragraphs(command: _Command) -> list[str]:
    return [_as_markdown(" ".join(part.split())) for part in inspect.cleandoc(command.help or "").split("\n\n")]


def _as_markdown(text: str) -> str:
    """Help for a terminal, with what is typed as code: texts in quotes, what pip installs, and options."""
    return "".join(
        _as_code(part) if _TYPED.fullmatch(part) else part.replace("*", r"\*") for part in _TYPED.split(text)
    )


def _as_code(part: str) -> str:
    return f"`{part[1:-1]}`" if part[0] in "'\"" else f"`{part}`"


_TYPED = re.compile(r"""("[^"]+"|pip install '[^']+'|(?<!\w)'[^']+'(?!\w)|(?<![\w-])--[a-z][a-z-]*(?: \d+)?)""")


# Both

_NEEDED = "**Required.** "


def _whole(anchor: str = "") -> str:
    """For the end of a piece of Markdown: an anchor, and no line break inside of it."""
    return f'{{ {anchor}style="white-space: nowrap" }}'


def _heading(level: int, text: str, name: str) -> list[str]:
    return [f"{'#' * level} `{text}` {{ #{_anchor(name)} }}", ""]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of Markdown; a bar inside a cell does not end it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]


def _anchor(name: str) -> str:
    return name.removeprefix("trimtuner ").replace(".", "-").replace(" ", "-")


if __name__ == "__main__":
    print({"job-file": job_file_page, "command-line": command_line_page}[sys.argv[1]](), end="")
