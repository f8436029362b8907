"""``trimtuner report``: one file to send, Markdown for a terminal, or one view as a picture."""

import json
import re

import pytest

from trimtuner.commands.report import _format
from trimtuner.jobs.studies import JobStudy, log_tail
from written_jobs import trimtuner, write_job

pytestmark = pytest.mark.xdist_group("report")  # one run for all of them


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A study that has run: eight trials, the third of which failed."""
    path = write_job(tmp_path_factory.mktemp("study"), trials=8, fail="2", method="trimtuner-dt", nap=0)
    trimtuner("run", path, "-q")
    return path


def test_the_report_is_one_file_named_after_the_study_with_the_ends_of_the_logs(job, tmp_path):
    done = trimtuner("report", job, cwd=tmp_path)
    assert done.stdout == "wrote quick-report.html\n"
    html = (tmp_path / "quick-report.html").read_text()
    kept = json.loads(re.search(r'id="logs">(.*?)</script>', html, re.DOTALL)[1])
    assert len(kept) == 8
    assert "::metric" in kept["0"]
    assert "<pre tabindex='0'><code>" in html  # the command that trains it
    assert len(html.encode()) < 2_000_000


@pytest.mark.parametrize(
    "words",
    [
        ("report", "-o", "all.html"),
        ("report", "-o", "all.md"),
        ("report", "-o", "one.svg", "--view", "spend"),
        ("report", "-o", "one.png", "--view", "spend"),
        ("best", "-o", "launch.sh", "--format", "bash"),
    ],
    ids=lambda words: words[2],
)
def test_what_is_written_is_for_its_user_alone(job, tmp_path, words):
    name, *options = words
    trimtuner(name, job, *options, cwd=tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_report_over_an_older_one_leaves_who_may_read_it(job, tmp_path):
    path = tmp_path / "shared.md"
    path.touch(mode=0o644)
    path.chmod(0o644)
    trimtuner("report", job, "-o", path)
    assert path.read_text().startswith("# quick")
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_is_shown_is_what_the_record_says(job):
    subject = JobStudy.at(job).judged_state()
    told = json.loads(trimtuner("status", job, "--json").stdout)
    assert subject.money.spent == pytest.approx(told["spent_usd"])
    assert [outcome.failed for outcome in subject.history.outcomes].count("exit") == 1
    assert len(subject.attempts) == 8
    assert all(subject.log_of(one.trial, one.attempt).exists() for one in subject.attempts)


def test_markdown_goes_to_the_terminal_or_to_a_file(job, tmp_path):
    done = trimtuner("report", job, "-o", "-")
    assert done.stdout.startswith("# quick\n")
    trimtuner("report", job, "-o", tmp_path / "note.md")
    assert (tmp_path / "note.md").read_text() == done.stdout


def test_a_view_is_written_as_a_picture(job, tmp_path):
    pytest.importorskip("resvg_py", reason="resvg-py is not installed; install trimtuner[report]")
    trimtuner("report", job, "--view", "tradeoff", "-o", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    done = trimtuner("report", job, "--view", "curves", "-o", tmp_path / "b.png")
    assert done.stdout.splitlines() == [f"wrote {tmp_path / 'b.png'}", f"wrote {tmp_path / 'b-curves-cost.png'}"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--format", "gif"), "--format 'gif' is none of html, md, svg, png"),
        (("--format", "png"), "say which with --view"),
        (("--format", "md", "--view", "spend"), "--view is for a picture"),
        (("--view", "answer"), "the view 'answer' is words, not a picture"),
        (("--view", "tradeof"), "there is no view 'tradeof'"),
    ],
)
def test_what_cannot_be_written_is_said(job, words, told):
    done = trimtuner("report", job, *words, check=False)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_study_that_has_not_begun_has_no_report(tmp_path):
    done = trimtuner("report", write_job(tmp_path), check=False)
    assert done.returncode == 2
    assert "start the study with: trimtuner run" in done.stderr


@pytest.mark.parametrize(
    ("output", "form", "view", "chosen"),
    [
        (None, None, None, "html"),
        (None, None, "spend", "svg"),
        ("a.PNG", None, "spend", "png"),
        ("a.markdown", None, None, "md"),
    ],
)
def test_the_format_follows_from_the_name(output, form, view, chosen, tmp_path):
    assert _format(None if output is None else tmp_path / output, form, view) == chosen


def test_the_end_of_a_log_is_text_whatever_is_in_it(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"a" * 5000 + b"\xff\x00end")
    assert log_tail(path, 100).startswith("(the last 0 KiB of 4)\n")
    assert log_tail(path, 100).endswith("\ufffd\x00end")
    assert "there is no log here" in log_tail(tmp_path / "none")
