"""What is told of a failed trial beside its kind: the last line that it printed."""

import pytest

from trimtuner.jobs.studies import JobStudy, last_words
from written_jobs import write_job


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (b"loading\nValueError: no such file\n", "ValueError: no such file"),
        (b"half a line", "half a line"),
        (b"the reason\n\n  \n", "the reason"),
        (b"\xff\xfe broken", "\ufffd\ufffd broken"),
        (b"", ""),
    ],
)
def test_the_last_words_are_the_last_line_that_says_anything(tmp_path, log, words):
    of = JobStudy.at(write_job(tmp_path))
    folder = of.folder / "a-study" / "3-2"
    folder.mkdir(parents=True)
    (folder / "log.txt").write_bytes(log)
    assert last_words(of.log_of("a-study", 3, 2)) == words


def test_a_log_that_is_elsewhere_has_no_last_words(tmp_path):
    assert last_words(JobStudy.at(write_job(tmp_path)).log_of("a-study", 0, 1)) == ""


def test_a_very_long_line_is_told_by_its_end(tmp_path):
    of = JobStudy.at(write_job(tmp_path))
    folder = of.folder / "a-study" / "0-1"
    folder.mkdir(parents=True)
    (folder / "log.txt").write_bytes(b"x" * 100_000 + b" the end")
    words = last_words(of.log_of("a-study", 0, 1))
    assert words.endswith(" the end")
    assert len(words) <= 4096
