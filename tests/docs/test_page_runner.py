"""The runner of pages: what it reads from a page, and that a page which is not true fails."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from expecting import Command, commands_of, is_as_expected
from needs import missing
from page import PageFault, parse_page
from pip_stand_in import main as pip
from running import run_page

from quick_commands import quick_commands
from waiting import wait_until

JOB = """\
```yaml title="job.yaml"
name: small
goal: {maximize: accuracy}
parameters: {x: {values: [1, 2]}}
run: {command: [python, train.py, "{x}"]}
```
"""


def page_of(text: str):
    return parse_page(text, "page.md")


def fault_of(text: str) -> PageFault:
    """What is wrong with a page that is wrong."""
    with pytest.raises(PageFault) as caught:
        run_page(page_of(text))
    return caught.value


class TestReading:
    def test_a_fence_has_its_language_its_options_and_its_line(self):
        (block,) = page_of('# Title\n\n```python title="train.py"\nx = 1\n```\n').blocks
        assert (block.line, block.language, block.title, block.skip) == (3, "python", "train.py", None)
        assert block.text == "x = 1\n"

    def test_a_longer_fence_may_hold_a_shorter_one(self):
        (block,) = page_of("````text\n```python\nx\n```\n````\n").blocks
        assert block.text == "```python\nx\n```\n"

    def test_a_fence_in_a_list_loses_its_indent(self):
        (block,) = page_of("1. do\n\n   ```python\n   if x:\n       y\n   ```\n").blocks
        assert block.text == "if x:\n    y\n"

    def test_a_fence_in_a_comment_counts(self):
        (block,) = page_of("<!--\n```python\nx = 1\n```\n-->\n").blocks
        assert block.line == 2

    def test_code_in_a_line_is_no_fence(self):
        assert page_of("```not a fence``` here\n").blocks == ()

    def test_front_matter_says_what_is_needed(self):
        page = page_of("---\nneeds: [postgres, ray]\nslow: true\n---\n```text\nx\n```\n")
        assert page.needs == ("postgres", "ray")
        assert page.is_slow
        assert page.blocks[0].line == 5

    def test_a_rule_below_the_top_is_no_front_matter(self):
        assert page_of("text\n---\nneeds: x\n---\n").needs == ()

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("```python\nx\n", "page.md:1: this fence is not closed"),
            ("\n```python hl_lines='1'\n```\n", "page.md:2: .* after a fence; write a language"),
            ('```python linenums="1"\n```\n', "page.md:1: linenums="),
            ('```python skip=""\n```\n', "page.md:1: skip= must say why"),
            ("---\nneed: [ray]\n---\n", "page.md:1: the front matter says 'need'"),
            ("---\nneeds: ray\n---\n", "page.md:1: needs: 'ray'; write a list"),
            ("---\nneeds: [ray]\n", "page.md:1: the front matter is not closed"),
        ],
    )
    def test_what_cannot_be_meant_is_refused_with_its_line(self, text, said):
        with pytest.raises(PageFault, match=said):
            page_of(text)


class TestCommands:
    def test_a_command_has_the_output_below_it(self):
        assert commands_of("$ ls\na\nb\n\n$ pwd\n") == (Command(0, "ls", 0, ("a", "b")), Command(4, "pwd"))

    def test_lines_with_a_secondary_prompt_go_on_with_a_command(self):
        assert commands_of("$ cat <<END\n> a\n>\n> END\na\n") == (Command(0, "cat <<END\na\n\nEND", 0, ("a",)),)

    def test_a_comment_may_say_another_exit_code(self):
        assert commands_of("$ false  # exit 1\n")[0].exit_code == 1
        assert commands_of("$ true  # exit 1 would be wrong\n")[0].exit_code == 0

    @pytest.mark.parametrize("text", ["", "trimtuner run\n", "output\n$ ls\n"])
    def test_a_block_that_does_not_begin_with_a_command_is_refused(self, text):
        with pytest.raises(ValueError, match="begins with a command"):
            commands_of(text)


class TestMatching:
    @pytest.mark.parametrize(
        ("expected", "output"),
        [
            (["a", "b"], "a\nb\n"),
            (["a"], "\na  \n\n"),
            (["took … s, 3 trials"], "took 1.2 s, 3 trials\n"),
            (["…"], ""),
            (["a", "…"], "a\n"),
            (["a", "…", "z"], "a\nb\n\nc\nz\n"),
            (["…", "b", "…"], "a\nb\nc\n"),
            (["cost <= 0.1 (+)"], "cost <= 0.1 (+)\n"),
        ],
    )
    def test_output_as_shown(self, expected, output):
        assert is_as_expected(tuple(expected), output)

    @pytest.mark.parametrize(
        ("expected", "output"),
        [
            (["a"], "a\nb\n"),
            (["a", "b"], "a\n"),
            (["a", "b"], "b\na\n"),
            (["took … s"], "took 1.2\ns\n"),
            (["took … s"], "took 1.2 h\n"),
            (["a", "…", "z"], "a\nb\n"),
            (["0.1"], "0x1\n"),
        ],
    )
    def test_output_that_differs(self, expected, output):
        assert not is_as_expected(tuple(expected), output)


@pytest.mark.skipif(sys.platform != "linux", reason="pages show the local engine, which is for Linux")
class TestRunning:
    def test_blocks_run_in_their_order_and_share_what_they_made(self):
        run_page(
            page_of(
                '```text title="sub/a.txt"\none\n```\n'
                "```console\n$ cat sub/a.txt\none\n$ export WORD=two; cd sub\n```\n"
                "```python\nfrom pathlib import Path\nwritten = Path('b').write_text('x')\n```\n"
                "```console\n$ echo $WORD; cat ../b\ntwo\nx\n```\n"
                '```python title="mine.py"\nvalue = 5\n```\n'
                "```python\nimport mine\nassert written == 1 and mine.value == 5\n```\n"
                "```console\n$ ls nothing  # exit 2\n$ echo still $WORD\nstill two\n```\n"
            )
        )

    def test_a_page_has_a_home_of_its_own_and_nothing_of_the_users_environment(self, monkeypatch):
        monkeypatch.setenv("SECRET", "told")
        run_page(page_of(f"```console\n$ env | grep -c -e SECRET -e 'HOME={os.environ['HOME']}$'  # exit 1\n0\n```\n"))

    def test_a_wrong_output_fails_with_both(self):
        fault = fault_of("# Title\n\n```console\n$ echo one\none\n$ echo two\nthree\n```\n")
        assert str(fault) == "page.md:6: $ echo two\nexpected:\n  | three\ncame:\n  | two"

    def test_a_wrong_exit_code_fails_with_the_output(self):
        assert "exit code 0 was expected, 3 came\n  | oh" in str(fault_of("```console\n$ echo oh; (exit 3)\n```\n"))
        assert "exit code 3 was expected, 0 came" in str(fault_of("```console\n$ true # exit 3\n```\n"))

    def test_the_first_of_several_commands_in_a_line_must_succeed_too(self):
        assert fault_of("```console\n$ true\n$ false; true\n```\n").line == 3
        assert fault_of("```console\n$ false | true\n```\n").line == 2

    def test_a_crash_in_python_fails_with_the_line_of_the_page(self):
        fault = fault_of("```python\nx = 1\n```\n\n```python\ny = 2\nx / 0\n```\n")
        assert fault.line == 7
        assert "the python block of line 5 fails" in str(fault)
        assert "ZeroDivisionError" in str(fault)

    def test_a_crash_in_a_function_of_an_earlier_block_is_told_where_it_is_called(self):
        assert fault_of("```python\ndef f():\n    raise OSError\n```\n```python\nf()\n```\n").line == 6

    @pytest.mark.parametrize("code", ["x = = 1", "import os; os._exit(4)", "raise SystemExit(0)"])
    def test_python_that_does_not_come_to_its_end_fails(self, code):
        assert fault_of(f"```python\n{code}\n```\n").line == 2

    def test_a_job_file_and_a_fragment_that_load_pass(self):
        run_page(page_of(f"```yaml\nbudget: {{trials: 3}}\n```\n{JOB}```yaml\nsearch: {{method: random}}\n```\n"))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("```yaml\nserach: {method: random}\n```\n", "'serach'"),
            (JOB + "```yaml\nbudget: {money: 3 USD}\n```\n", "no machine has a price"),
            (JOB.replace("maximize", "maximise"), "maximise"),
            ("```yaml\n- 1\n```\n", "no mapping"),
            ("```yaml\na: [\n```\n", "not YAML"),
            ("```json\n{'a': 1}\n```\n", "json"),
            ("```toml\na = \n```\n", "toml"),
            ("```csv\na,b\n1\n```\n", "different numbers of columns"),
            ("```sh\nls\n```\n", "a block of 'sh'"),
            ("```\nls\n```\n", "a block without a language"),
            ('```text title="../out.txt"\n```\n', "outside the page's folder"),
            ('```python title="a.py"\ndef\n```\n', "a.py"),
            ("---\nneeds: [moon]\n---\n", "moon"),
        ],
    )
    def test_data_that_is_wrong_fails(self, text, said):
        assert said in str(fault_of(text))

    def test_a_block_with_a_reason_to_skip_it_is_not_run(self):
        run_page(page_of('```console skip="needs a GPU"\n$ false\n```\n```text\nanything\n```\n'))

    def test_what_a_page_leaves_running_is_ended(self):
        nap = f"{1000 + os.getpid() / 1e6}"
        run_page(page_of(f"```console\n$ setsid sleep {nap} &\n$ kill -0 $!\n```\n"))
        wait_until(lambda: nap not in " ".join(_command_lines()))  # one that was killed may still be leaving

    def test_a_quick_command_says_and_ends_as_the_real_one(self):
        text = "```console\n$ trimtuner --version\n$ cd .. && trimtuner validate job/none.yaml  # exit 2\n{}\n```\n"
        said = "job/none.yaml: there is no such file; 'trimtuner init' writes one to start from"
        run_page(page_of(text.format(said)))
        with quick_commands() as programs:
            run_page(page_of(text.format(said)), programs=programs)
            run_page(page_of("```console\n$ trimtuner tables > all; grep -c digits all\n…\n```\n"), programs=programs)
            with pytest.raises(PageFault, match="exit code 0 was expected, 2 came"):
                run_page(page_of("```console\n$ trimtuner no-such-command\n```\n"), programs=programs)


def _command_lines() -> list[str]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_text())
        except OSError:
            continue
    return lines


def test_what_is_not_installed_is_a_reason_to_skip(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    assert missing(["optuna"]) is None
    assert missing(["optuna", "torch"]) == "the page needs torch, and torch is not installed"


def test_pip_on_a_page_knows_our_extras_and_what_is_installed():
    assert pip(["install", "trimtuner", "trimtuner[ray,aws]", "numpy>=1"]) is None
    assert "no extra moon" in str(pip(["install", "-q", "trimtuner[ray,moon]"]))
    assert "nowhere-to-be-found is not installed" in str(pip(["install", "nowhere-to-be-found"]))
