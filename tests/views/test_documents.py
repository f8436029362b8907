"""The report in one file, and as Markdown: complete, inert, readable by everybody, and asking nobody."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import trimtuner as tt
from trimtuner.views import trials
from trimtuner.views.document import asset, document
from trimtuner.views.every import VIEWS
from trimtuner.views.markdown import markdown
from trimtuner.views.trials import ROWS_AT_FIRST, newest_first, table_rows, trial_detail
from views.showing import HOSTILE, attempt, real_subject

VOID = {"meta", "link", "input", "br"}


class Reader(HTMLParser):
    """What a browser would see: elements in balance, their ids and attributes."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.tags, self.attributes = [], [], set(), set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {(tag, name) for name, _ in attributes}
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def subject():
    return real_subject()


@pytest.fixture(scope="module")
def written(subject):
    return document(subject, {0: "the end of its log", 1: f"{HOSTILE}</script><!--"})


def hostile_subject():
    """Names, values, failures and metrics that try to be more than text."""
    study = tt.Study(
        tt.Space({"x": tt.Choice(["plain", HOSTILE, "</td></tr></table>"])}, fractions=[0.5, 1.0]),
        maximize="f",
        name=HOSTILE,
        method="random",
    )
    for _ in range(3):
        study.tell(study.ask(), f=1.0, time=1.0)
    subject = study.state()
    first, second, third = subject.history.outcomes  # such as another program may have written into the record
    measured = replace(first.measurements[0], metrics={"f": 1.0, "time": 1.0, "<img src=x onerror=alert(1)>": 2.0})
    outcomes = (replace(first, measurements=(measured,)), replace(second, measurements=(), failed=HOSTILE), third)
    history = replace(subject.history, outcomes=outcomes)
    attempts = (attempt(0, 1.0, 1.0, 2.0), attempt(1, 1.0, 1.0, 2.0, failed=HOSTILE))
    return replace(subject, history=history, attempts=attempts)


def test_the_report_has_every_view_with_its_title(written):
    found = Reader(written)
    assert found.open == []
    assert [view.name for view in VIEWS] == [one for one in found.ids if one in {view.name for view in VIEWS}]
    for view in VIEWS:
        assert f'<h2 id="{view.name}-title">{view.title}</h2>' in written
    assert len(found.ids) == len(set(found.ids))


def test_the_report_asks_nobody(written):
    addresses = set(re.findall(r"[a-z]+://[^\"'\s<)]*", written))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not Reader(written).tags & {"link", "img", "iframe", "object", "embed", "form"}
    assert not re.search(r"@import|url\(|src=", written)


def test_the_policy_lets_in_only_the_style_and_the_script_that_are_there(written):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', written)[1].replace("&#x27;", "'")
    assert policy.startswith("default-src 'none'; ")
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        inside = re.search(rf"<{tag}(?: type=.module.)?>(.*?)</{tag}>", written, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    found = Reader(written)
    assert not {name for _, name in found.attributes if name == "style" or name.startswith("on")}


def test_logs_are_kept_as_data_that_cannot_end_their_element(written):
    kept = re.search(r'<script type="application/json" id="logs">(.*?)</script>', written, re.DOTALL)[1]
    assert "the end of its log" in kept
    assert not set("<>&") & set(kept)


def test_hostile_names_failures_and_metrics_stay_text():
    subject = hostile_subject()
    html = document(subject, {0: HOSTILE})
    found = Reader(html)
    assert found.open == []
    assert html.count("<script") == 2  # the logs, and our own
    assert "<img" not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in html
    for row in newest_first(subject, 10_000):
        assert "<script" not in trial_detail(row)


def test_hostile_words_in_markdown_are_escaped():
    text = markdown(hostile_subject())
    assert "<script" not in re.sub(r"\\[<>]", "", text)
    assert not re.search(r"(?<!\\)[<>]", text.replace("\\<", "").replace("\\>", ""))
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in range(2, 12)


def test_tables_of_markdown_have_as_many_cells_in_every_line(subject):
    widths = []
    for block in markdown(subject).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        widths.append({len(re.findall(r"(?<!\\)\|", line)) for line in lines})
    assert all(len(one) <= 1 for one in widths)


def test_markdown_has_every_view_but_pictures(subject):
    text = markdown(subject)
    for title in (
        "Spend",
        "What to run",
        "Now",
        "What the money bought",
        "What can be had",
        "Learning curves",
        "Machines",
    ):
        assert f"## {title}" in text
    for title in ("What matters", "Can the model be trusted", "Trials"):
        assert f"## {title}" in text
    assert "oom" in text


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_study_of_few_trials_or_only_failures_is_shown_without_a_fault(count):
    study = tt.Study(tt.Space({"x": tt.Choice([1, 2, 3])}, fractions=[0.5, 1.0]), maximize="f")
    for _ in range(count):
        study.tell(study.ask(), failed="oom", time=1.0)
    html = document(study.state())
    assert html.count("Nothing was measured yet.") == 8
    assert "Nothing was measured yet." in markdown(study.state())


def test_a_study_of_one_measurement_without_money_is_shown_without_a_fault():
    study = tt.Study(tt.Space({"x": tt.Float(0.0, 1.0), "y": tt.Int(1, 9, when="x > 0.5")}), minimize="time")
    study.tell(study.ask(), time=1.0)
    html = document(study.state())
    assert "There is only one number to each configuration: nothing to trade." in html
    assert Reader(html).open == []
    assert markdown(study.state())


def test_the_report_of_two_hundred_trials_is_small():
    subject = real_subject(trials=12)
    outcomes = subject.history.outcomes
    many = tuple(replace(one, trial=replace(one.trial, number=number)) for number, one in enumerate(outcomes * 17))
    history = replace(subject.history, outcomes=many[:200], pending=(), next_number=200)
    logs = dict.fromkeys(range(128), "x" * 2048)  # the most that a report keeps
    html = document(replace(subject, history=history, known=subject.belief), logs)
    assert len(html.encode()) < 1_000_000


def test_the_page_begins_with_the_newest_rows_and_offers_the_others(subject):
    outcomes = [subject.history.outcomes[0]] * (ROWS_AT_FIRST + 5)
    many = tuple(replace(one, trial=replace(one.trial, number=number)) for number, one in enumerate(outcomes))
    long = replace(subject, history=replace(subject.history, outcomes=many, pending=()))
    first = trials.VIEW.html(long)
    numbers = [int(one) for one in re.findall(r"<tr data-trial='(\d+)'", first)]
    assert numbers == list(range(ROWS_AT_FIRST + 4, 4, -1))
    assert "data-more" in first
    rest = table_rows(long, newest_first(long, 10_000)[ROWS_AT_FIRST:])
    assert [int(one) for one in re.findall(r"data-trial='(\d+)'", rest)] == [4, 3, 2, 1, 0]
    assert "data-more" not in trials.VIEW.html(subject)


# --- colours


def colours(style):
    light = dict(re.findall(r"(--[a-z0-9-]+):\s*(#[0-9a-f]{6})", style.split("@media", 1)[0]))
    dark = dict(re.findall(r"(--[a-z0-9-]+):\s*(#[0-9a-f]{6})", style.split("@media", 2)[1]))
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour):
    """As WCAG 2 has it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        *((ink, paper) for ink in ("--ink", "--muted", "--blue", "--red") for paper in ("--paper", "--card")),
        *(("--on-light", f"--level{level}") for level in (0, 1, 2)),
        *(("--on-dark", f"--level{level}") for level in (3, 4)),
    ],
)
def test_text_is_readable_in_both_themes(theme, ink, paper):
    found = colours(asset("style.css"))[theme]
    assert contrast(found[ink], found[paper]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("mark", ["--blue", "--orange", "--green", "--red", "--purple", "--black", "--spent"])
def test_marks_stand_out_from_the_paper(theme, mark):
    found = colours(asset("style.css"))[theme]
    assert contrast(found[mark], found["--paper"]) >= 3.0
