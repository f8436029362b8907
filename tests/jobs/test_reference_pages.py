"""The reference pages leave nothing out: every key of the job file, every option of every command."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from test_schema import SCHEMA, keyed, read
from typer.main import get_command

from tools.reference_pages import _MORE, _flow, command_line_page, job_file_page
from trimtuner.cli import app_of
from trimtuner.jobs.engine_section import keys_of_engine
from trimtuner.jobs.engines import ENGINES
from trimtuner.tuning.recipes import METHODS

app = app_of()

JOB_FILE, COMMAND_LINE = job_file_page(), command_line_page()
PAGES = {"job file": JOB_FILE, "command line": COMMAND_LINE}
UNESCAPED_BAR = re.compile(r"(?<!\\)\|")


def commands(command: object, name: str) -> list[tuple[str, object]]:
    below = getattr(command, "commands", {})
    return [(name, command), *(pair for key, one in below.items() for pair in commands(one, f"{name} {key}"))]


def section_of(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its kind."""
    start = page.index(f"\n## `{heading}` ")
    end = page.find("\n## ", start + 1)
    return page[start:end] if end > 0 else page[start:]


def test_every_key_of_the_schema_is_there_with_its_description_and_default():
    for path, one in keyed(SCHEMA):
        own = section_of(JOB_FILE, path[0])
        assert f"`{path[-1]}`" in own or f"`{'.'.join(path)}`" in own, path
        assert one["description"] in own, path
        if one.get("default") not in (None, [], {}):
            assert f"Default: `{_flow(one['default'])}`." in own, path


def test_every_key_of_an_engine_is_under_its_type():
    for kind in ENGINES:
        for key in keys_of_engine(kind):
            assert f"#engine-{kind}-{key} " in JOB_FILE


def test_every_method_is_there_with_its_options():
    for name, method in METHODS.items():
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", JOB_FILE, re.MULTILINE)
        assert all(option in row for option in method.options)


def test_examples_are_yaml_and_right():
    blocks = [block for text in re.findall(r"```yaml\n(.*?)```", JOB_FILE, re.DOTALL) for block in text.split("# or\n")]
    examples = [(path[-1], value) for path, one in keyed(SCHEMA) for value in one.get("examples", [])]
    schemas = {path[-1]: one for path, one in keyed(SCHEMA)}
    assert len(blocks) > 20
    for block in blocks:
        ((name, value),) = read(block).items()
        assert (name, value) in examples
        if (name,) in dict(keyed(SCHEMA)):
            assert Draft202012Validator({**schemas[name], "$defs": SCHEMA["$defs"]}).is_valid(value)


@pytest.mark.parametrize(
    "value", ["no", "1e-3", "12h", "a: b", "a, b", "#x", "-r", "*.x", "{x}", "", "é", "10.0.0.7:1", "x#y", "a #b", "a:"]
)
def test_a_text_is_the_same_text_in_yaml(value):
    assert read(f"x: [{_flow(value)}]") == {"x": [value]}
    assert read(f"x: {{y: {_flow(value)}}}") == {"x": {"y": value}}


def test_every_option_of_every_command_is_there_with_its_help():
    for name, command in commands(get_command(app), "trimtuner"):
        if hasattr(command, "commands") and not command.params:
            continue
        own = section_of(COMMAND_LINE, name)
        for parameter in command.params:
            if parameter.hidden:
                assert not any(one in own for one in parameter.opts)
                continue
            is_option = parameter.param_type_name == "option"
            for one in parameter.opts if is_option else [parameter.metavar or parameter.name.upper()]:
                assert re.search(rf"`{re.escape(one)}[ `]", own), (name, one)
            assert parameter.help, (name, parameter.name)


def test_usage_names_arguments_and_what_is_required():
    assert "\ntrimtuner explain [OPTIONS] JOB [TRIAL]\n" in COMMAND_LINE
    assert "\ntrimtuner catalog update [OPTIONS] --output PATH [PROVIDER]\n" in COMMAND_LINE


def test_exit_codes_are_those_that_are_promised():
    table = section_between(COMMAND_LINE, "## Exit codes", "## `")
    assert re.findall(r"^\| `(\d+)` \|", table, re.MULTILINE) == ["0", "1", "2", "3", "130"]


def section_between(page: str, start: str, end: str) -> str:
    return page[page.index(start) : page.index(end, page.index(start))]


def test_no_default_is_that_of_this_machine():
    for page in PAGES.values():
        assert str(Path.home()) not in page
        assert str(Path.cwd()) not in page


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_link_has_its_anchor_and_every_anchor_is_there_once(page):
    anchors = re.findall(r"\{ #([\w-]+)", page)
    assert len(anchors) == len(set(anchors))
    links = re.findall(r"\]\(#([\w-]+)\)", page)
    assert len(links) > 10
    assert set(links) <= set(anchors)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_tables_are_whole_and_there_is_no_raw_html(page):
    heads = None
    for line in page.splitlines():
        bars = len(UNESCAPED_BAR.findall(line)) if line.startswith("|") else None
        heads = None if bars is None else heads or bars
        assert bars == heads, line
    assert not re.search(r"<[a-z/]", re.sub(r"`[^`\n]*`", "", page))


def test_pages_are_the_same_every_time_and_need_no_site_generator():
    script = (
        "import sys; sys.modules['mkdocs'] = None; from tools.reference_pages import *; "
        "print(job_file_page() + command_line_page(), end='')"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == JOB_FILE + COMMAND_LINE


def test_pages_that_tell_more_are_there():
    docs = Path(__file__).parents[2] / "docs"
    links = re.findall(r"\]\(\.\./([\w.-]+)\)", JOB_FILE)
    assert len(links) == len(_MORE)
    assert all((docs / link).is_file() for link in links)
