"""Page and report in a real browser, of studies that really ran."""

import json
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.browser import browser, why_no_browser
from benchmarks.browser import dashboard as served
from trimtuner.jobs.studies import JobStudy
from trimtuner.views import trials
from trimtuner.views.blocks import html_of
from trimtuner.views.document import script, section, style
from trimtuner.views.every import VIEWS
from views.showing import real_subject
from waiting import PATIENCE_SECONDS
from written_jobs import quick_program, start, trimtuner, write_job

pytestmark = [
    pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser())),
    pytest.mark.xdist_group("browser"),
]
TOKEN = "a-token-that-nobody-guesses"  # noqa: S105
HOSTILE = "<script>window.canary = 1; alert(1)</script><img src=x onerror='window.canary = 2; alert(2)'>"

HOSTILE_TRAIN = f"""
import json
print({HOSTILE!r})
print("::metric " + json.dumps({{"accuracy": 0.5, "fraction": 1.0}}), flush=True)
print("</pre></td></table><script src=//evil.example/x.js></script>")
"""

HOSTILE_JOB = f"""
name: hostile
goal: {{maximize: accuracy}}
budget: {{money: 5 USD, trials: 3}}
data: {{fractions: [0.5, 1]}}
parameters:
  x: {{values: ["plain", {json.dumps(HOSTILE)}, "'\\"><b>bold</b>"]}}
cloud:
  vms:
    plain: {{vcpus: 1, memory_gib: 2, price_per_hour: 0.36}}
run: {{command: ["{sys.executable}", train.py, "{{x}}"], timeout: 20s}}
engine: {{type: local}}
search: {{method: random, seed: 1}}
"""

FLAGS = [
    "--host-resolver-rules=MAP *.example 127.0.0.1",  # as whoever owns a name may answer for it
    # This browser's own guard, which others do not have; and the processes that it keeps ready.
    "--disable-features=LocalNetworkAccessChecks,SpareRendererForSitePerProcess",
    "--renderer-process-limit=1",
]
READ = """addresses => Promise.all(addresses.map(address => fetch(address, {credentials: "include"}).then(
    async answer => `${answer.status} ${await answer.text()}`, String)))"""
SEND = """([address, token]) => {
    document.body.innerHTML = "<form method=post><input name=form_token></form>";
    const form = document.forms[0];
    form.action = address;
    form.form_token.value = token;
    form.submit();
}"""


def dashboard(*words):
    return served(*words, program=[quick_program()])


@pytest.fixture(scope="module")
def running():
    with browser(*FLAGS) as found:
        yield found


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    path = write_job(tmp_path_factory.mktemp("study"), trials=10, fail="2", method="trimtuner-dt", nap=0)
    trimtuner("run", path, "-q")
    return path


@pytest.fixture(scope="module")
def address(job):
    with dashboard(job) as found:
        yield found


def patient_context(running, **options):
    context = running.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE_SECONDS)
    return context


@pytest.fixture(scope="module")
def shared(running):
    """One page for all tests: a new one is a new process, which reads and compiles everything anew."""
    context = patient_context(running)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(shared):
    """As nobody has used it; it fails the test if any script of it goes wrong, or opens a dialogue."""
    shared.set_viewport_size({"width": 1000, "height": 900})
    shared.emulate_media(media="null", color_scheme="null")
    with watched(shared):
        yield shared
        shared.goto("about:blank")  # what it showed asks for nothing more
    shared.unroute_all()
    shared.context.clear_cookies()


@pytest.fixture
def page_with_scripts(running):
    """A page of the test's own: what is added to all that it will show cannot be taken away again."""
    context = patient_context(running, viewport={"width": 1000, "height": 900})
    opened = context.new_page()
    with watched(opened):
        yield opened
    context.close()


@contextmanager
def watched(page):
    wrong = []

    def note_dialogue(one):
        wrong.append(f"dialogue: {one.message}")
        one.dismiss()

    def note_error(error):
        wrong.append(str(error))

    page.on("pageerror", note_error)
    page.on("dialog", note_dialogue)
    yield
    page.remove_listener("pageerror", note_error)
    page.remove_listener("dialog", note_dialogue)
    assert wrong == []


def until(page, claim):
    """The page's policy forbids the evaluation that playwright's own waiting needs."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not page.evaluate(claim):
        assert time.monotonic() < deadline, f"in vain: {claim}"
        page.wait_for_timeout(100)


def opened(page, address):
    page.goto(address)
    until(page, "!document.querySelector('.stale')")
    return page


def numbers(page):
    shown = page.locator("#trials tr[data-trial]:visible")
    return [int(number) for number in shown.evaluate_all("rows => rows.map(row => row.dataset.trial)")]


def body_scrolls_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth > window.innerWidth")


def test_every_view_of_a_real_study_is_drawn(page, address):
    opened(page, address)
    for view in VIEWS:
        section = page.locator(f"#{view.name}")
        assert section.locator("h2").inner_text() == view.title
        assert len(section.inner_text()) > len(view.title) + 20
    for name in ("spend", "progress", "tradeoff", "curves", "machines", "timeline", "importance", "trust"):
        assert page.locator(f"#{name} svg.chart").count() >= 1
    assert page.locator("#state", has_text="no run at work").count() == 1


def test_whoever_points_at_a_mark_is_told_its_configuration_and_its_metrics(page, address):
    opened(page, address)
    page.locator("#tradeoff path.recommended[data-c]").hover()
    told = page.locator("#tip").inner_text()
    assert told.startswith("recommended, ")
    for words in ("accuracy", "cost", "P(limits)", "vm_type=", "x="):
        assert words in told


def test_what_is_picked_is_marked_everywhere_and_a_link_shows_the_same(page, address):
    opened(page, address)
    mark = page.locator("#tradeoff path.recommended[data-c]")
    key = mark.get_attribute("data-c")
    mark.click()
    for place in ("tradeoff svg", "progress svg", "curves svg", "machines svg", "trials tr", "timeline svg"):
        own = page.locator(f"#{place.split()[0]} [data-c='{key}']")
        assert own.count() == page.locator(f"#{place.split()[0]} .is-picked").count() > 0
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    assert page.locator("#tradeoff svg .is-picked").get_attribute("data-c") == key
    page.locator("#tradeoff path.recommended[data-c]").click()
    assert page.locator(".is-picked").count() == 0


def test_marks_are_walked_and_picked_by_the_keyboard(page, address):
    opened(page, address)
    page.locator("#tradeoff figure .scroll").first.focus()
    told = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowLeft", "End"):
        page.keyboard.press(key)
        told.append(page.locator("#tip").inner_text())
    assert told[1] == told[3]
    assert len(set(told)) == 4
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator("#tradeoff svg .is-picked").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#tradeoff svg .is-picked").count() == 0


def drag(page, svg, begin, end):
    """From one share of a picture's width and height to another."""
    box = svg.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (begin, end)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    page.mouse.up()


def test_a_range_that_is_brushed_leaves_its_trials_in_the_table_and_can_be_zoomed_to(page, address):
    opened(page, address)
    svg = page.locator("#tradeoff figure svg.chart").first
    svg.scroll_into_view_if_needed()
    drag(page, svg, (0.1, 0.1), (0.6, 0.9))
    until(page, "/ of 10 trials/.test(document.querySelector('[data-count]').textContent)")
    brushed = set(page.locator("#tradeoff svg .is-brushed").evaluate_all("all => all.map(one => one.dataset.c)"))
    rows = page.locator("#trials tr[data-trial]:visible").evaluate_all("all => all.map(one => one.dataset.c)")
    assert 0 < len(brushed) < page.locator("#tradeoff svg [data-c]").count()
    assert set(rows) <= brushed
    places = "all => all.map(one => one.getAttribute('cx'))"
    before = page.locator("#tradeoff svg circle[data-c]").evaluate_all(places)
    ticks = page.locator("#tradeoff svg.chart .tick.x").all_inner_texts()
    page.locator("#tradeoff figure").first.hover()
    page.locator("#tradeoff .tools button", has_text="+").click()
    assert page.locator("#tradeoff svg circle[data-c]").evaluate_all(places) != before
    assert page.locator("#tradeoff svg.chart .tick.x").all_inner_texts() != ticks
    assert page.locator("#trials tr[data-trial]:visible").count() == 10
    page.locator("#tradeoff .tools button", has_text="all").click()
    assert page.locator("#tradeoff svg circle[data-c]").evaluate_all(places) == before
    assert page.locator("#tradeoff svg.chart .tick.x").all_inner_texts() == ticks


def test_two_configurations_are_compared_with_what_differs_first(page, address):
    opened(page, address)
    chosen = page.locator("#trials tr[data-trial]:visible [data-pick]")
    chosen.nth(0).click()
    keys = page.locator("#trials tr[data-trial]").evaluate_all("all => all.map(one => one.dataset.c)")
    chosen.nth(next(place for place, key in enumerate(keys) if key != keys[0])).click()
    page.locator("#tray button", has_text="Compare").click()
    lines = page.locator("dialog tbody tr").evaluate_all("all => all.map(one => one.className)")
    assert lines == sorted(lines)  # those that differ have no class, and come first
    assert page.locator("dialog thead th").count() == 3
    page.locator("dialog button", has_text="Close").click()
    page.locator("#tray button", has_text="Clear").click()
    assert not page.locator("#tray").is_visible()


def test_in_a_comparison_counts_what_was_measured_on_most_of_the_data(page, address):
    opened(page, address)
    lines = page.locator("#parallel tr[data-c]").evaluate_all(
        "all => all.map(row => [row.dataset.c, Object.fromEntries([...row.cells].map((cell, place) =>"
        " [row.closest('table').tHead.rows[0].cells[place].textContent, cell.textContent]))])"
    )
    elsewhere = page.locator("#machines tr[data-c]").evaluate_all("all => all.map(row => row.dataset.c)")
    tested = {}
    for key, said in lines:
        tested.setdefault(key, {})[float(said["share of the data"])] = said["time (s)"]
    key, times = max(tested.items(), key=lambda one: (one[0] not in elsewhere, len(one[1])))
    assert len(set(times.values())) > 1, "a configuration was tested on several shares"
    page.locator(f'#trials tr[data-trial][data-c="{key}"] [data-pick]').first.click()
    page.locator("#tray button", has_text="Look at it").click()
    told = dict(
        page.locator("dialog tbody tr").evaluate_all(
            "all => all.map(row => [...row.cells].map(one => one.textContent))"
        )
    )
    assert told["time (s)"] == times[max(times)]


@pytest.mark.parametrize("kind", ["SVG", "PNG", "CSV"])
def test_a_picture_can_be_taken_along(page, address, kind):
    opened(page, address)
    page.locator("#tradeoff figure").first.hover()
    with page.expect_download() as taken:
        page.locator("#tradeoff .tools button", has_text=kind).click()
    content = Path(taken.value.path()).read_bytes()
    assert taken.value.suggested_filename == f"tradeoff.{kind.lower()}"
    if kind == "CSV":
        heads, *lines = content.decode().splitlines()
        assert {"x", "vm_type", "accuracy", "cost (USD)", "P(limits)"} <= set(heads.split(","))
        assert len(lines) == page.locator("#tradeoff svg [data-c]").count()
    else:
        assert content.startswith({"SVG": b"<svg", "PNG": b"\x89PNG"}[kind])


def test_columns_of_the_table_are_chosen(page, address):
    opened(page, address)
    page.locator("#trials summary", has_text="Columns").click()
    page.locator("#trials label", has_text="state").click()
    assert not page.locator("#trials th", has_text="state").is_visible()
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    assert not page.locator("#trials th", has_text="state").is_visible()
    assert page.locator("#trials th", has_text="cost").is_visible()


def test_trials_are_filtered_by_words(page, address):
    opened(page, address)
    page.fill("[data-filter]", "exit")
    until(page, "document.querySelector('[data-count]').textContent === '1 of 10 trials'")
    assert numbers(page) == [2]
    page.fill("[data-filter]", "vm_type=small ok")
    until(page, "/^[0-9] of 10/.test(document.querySelector('[data-count]').textContent)")
    page.fill("[data-filter]", "")
    until(page, "document.querySelector('[data-count]').textContent === ''")
    assert numbers(page) == list(range(9, -1, -1))


def test_trials_are_sorted_by_a_column_and_back(page, address):
    opened(page, address)
    head = page.locator("#trials th", has_text="cost")
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    shown = "[...document.querySelectorAll('#trials tr[data-trial]')].map(row => Number(row.cells[3].dataset.value))"
    costs = sorted(page.evaluate(shown))
    until(page, f"String({shown}) === String({costs})")
    page.keyboard.press("Enter")
    until(page, f"String({shown}) === String({costs[::-1]})")


def test_a_trial_opens_to_its_metrics_and_its_log_by_the_keyboard(page, address):
    opened(page, address)
    page.locator("#trials tr[data-trial='0']").focus()
    page.keyboard.press("Enter")
    detail = page.locator("#trials tr[data-trial='0'] + tr.detail")
    detail.locator("pre.log", has_text="::metric").wait_for()
    assert "accuracy" in detail.inner_text()
    assert page.locator("#trials tr[data-trial='0']").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert not detail.is_visible()


def test_the_page_follows_a_run_without_being_loaded_again(page, tmp_path):
    path = write_job(tmp_path, trials=6, method="random", nap=0.5, fractions=[0.5, 1])
    with dashboard(path) as address:
        page.goto(address)
        page.locator("#state", has_text="start the study with: trimtuner run").wait_for()
        page.evaluate("window.mine = 'the same page'")
        run = start("run", path, "-q")
        try:
            until(page, "document.querySelectorAll('#trials tr[data-trial]').length >= 2")
            page.fill("[data-filter]", "small")
            page.locator("[data-filter]").focus()
            told = "Number(document.querySelector('[data-count]').textContent.match(/of ([0-9]+) trials/)?.[1])"
            until(page, f"{told} >= 2")
            seen = page.evaluate(told)
            until(page, f"{told} > {seen}")
            assert page.input_value("[data-filter]") == "small"
            assert page.evaluate("document.activeElement.matches('[data-filter]')")
            assert run.wait(PATIENCE_SECONDS) == 0
        finally:
            run.poll() is None and run.kill()
        until(page, f"{told} === 6")
        until(page, "document.querySelector('#spend dl').textContent.includes('trials ended6')")
        until(page, "document.querySelectorAll('#timeline rect.bar.done').length === 6 + 1")  # and that of the legend
        assert page.evaluate("window.mine") == "the same page"
        assert len(json.loads(trimtuner("trials", path, "--json").stdout)) == 6


def test_hostile_names_values_and_logs_run_no_script_on_the_page_or_in_the_report(page, tmp_path):
    (tmp_path / "train.py").write_text(HOSTILE_TRAIN)
    path = tmp_path / "job.yaml"
    path.write_text(HOSTILE_JOB)
    trimtuner("run", path, "-q")
    trimtuner("report", path, "-o", tmp_path / "report.html")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    with dashboard(path) as address:
        for shown in (address, (tmp_path / "report.html").as_uri()):
            page.goto(shown)
            until(page, "!document.querySelector('.stale')")
            for number in range(3):
                page.locator(f"#trials tr[data-trial='{number}']").click()
                log = page.locator(f"#trials tr[data-trial='{number}'] + tr pre.log", has_text="<script>window.canary")
                log.wait_for()
            assert page.evaluate("window.canary") is None
            assert page.locator("main img, main script, main b").count() == 0
            assert (
                "<script>window.canary" in page.locator("#answer").inner_text() + page.locator("#trials").inner_text()
            )
    assert not [url for url in asked if "evil" in url]


def test_without_the_token_the_browser_is_refused_and_with_it_the_page_works(page, job):
    with dashboard(job, "--token", TOKEN) as address:
        base = address.split("/login")[0]
        assert page.goto(base).status == 401
        assert "quick" not in page.content()
        assert page.goto(f"{base}/study/0").status == 401
        page.goto(address)
        page.locator("#trials tr[data-trial]").first.wait_for()
        assert TOKEN not in page.url
        assert page.evaluate("document.cookie") == ""
        assert page.locator("h1").inner_text() == "quick"


@pytest.mark.parametrize("words", [["--allow-changes"], ["--allow-changes", "--no-token"]], ids=" ".join)
def test_a_page_elsewhere_reads_nothing_and_stops_nothing_under_whatever_name(page, job, words):
    """In the browser of somebody who is looking at the page, with the token and without."""
    page.route("**/evil", lambda route: route.fulfill(body="<body>", content_type="text/html"))
    view = JobStudy.at(job).record
    before = view.version()
    paths = ["/", "/study/0", "/study/0/state", "/study/0/log/0", "/study/0/trial/0", "/login", "/static/page.js"]
    with dashboard(job, *words) as address:
        page.goto(address)
        form_token = page.locator("[name=form_token]").first.get_attribute("value")  # even if it had been found out
        port = urlsplit(address).port
        own = f"http://localhost:{port}"
        for name in ("evil.example", "a{b.evil.example"):
            page.goto(f"http://{name}:{port}/evil")  # and from now on the name leads to us
            for answer in page.evaluate(READ, paths):
                assert answer.startswith("403 this page does not answer to the name")
            assert _status_of_form(page, f"http://{name}:{port}/study/0/stop", form_token) == 403
            page.goto(f"http://{name}:8000/evil")
            assert set(page.evaluate(READ, [own + path for path in paths])) == {"TypeError: Failed to fetch"}
            assert _status_of_form(page, f"{own}/study/0/stop", form_token) in (401, 403)
    assert (view.version(), view.stop_requested(before)) == (before, False)


def _status_of_form(page, address, token):
    with page.expect_navigation() as sent:
        page.evaluate(SEND, [address, token])
    return sent.value.status


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_the_colours_that_its_reader_prefers(page, address, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(address)
    paper = page.evaluate("getComputedStyle(document.querySelector('section')).backgroundColor")
    assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]


@pytest.fixture(scope="module")
def report(job, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    trimtuner("report", job, "-o", path)
    return path


@pytest.mark.parametrize("width", [390, 1000])
def test_neither_page_nor_report_scrolls_sideways(page, address, report, width):
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, address)
    assert not body_scrolls_sideways(page)
    page.goto(report.as_uri())
    page.locator("#trials tr[data-trial='0']").click()
    assert not body_scrolls_sideways(page)


def test_on_a_phone_the_letters_of_a_chart_keep_their_size(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, address)
    size = page.evaluate("document.querySelector('#tradeoff svg.chart text').getBoundingClientRect().height")
    assert size >= 11


def test_the_report_works_by_itself(page, report):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.locator("#tradeoff figure .scroll").first.focus()
    page.keyboard.press("End")
    assert "vm_type=" in page.locator("#tip").inner_text()
    page.fill("[data-filter]", "exit")
    page.locator("[data-count]", has_text="1 of 10 trials").wait_for()
    page.locator("#trials tr[data-trial='2']").click()
    assert page.locator("#trials tr[data-trial='2'] + tr").is_visible()
    page.fill("[data-filter]", "")
    page.locator("#trials tr[data-trial='0']").click()
    page.locator("#trials tr[data-trial='0'] + tr pre.log", has_text="::metric").wait_for()
    assert asked == [report.as_uri()]


def test_the_report_fits_its_paper_and_shows_there_what_is_folded(page, report, tmp_path):
    page.set_viewport_size({"width": 680, "height": 900})
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    assert not body_scrolls_sideways(page)
    assert page.locator("#answer details table").first.is_visible()
    assert not page.locator("nav").is_visible()
    written = Path(tmp_path / "report.pdf")
    page.pdf(path=written, format="A4")
    assert written.read_bytes().startswith(b"%PDF")


def test_several_studies_are_a_list_that_leads_to_each(page, job, tmp_path):
    other = write_job(tmp_path)
    with dashboard(job, other) as address:
        page.goto(address)
        assert page.locator("#studies tbody tr").count() == 2
        page.locator("#studies a").first.click()
        page.locator("#trials tr[data-trial]").first.wait_for()
        page.locator("a", has_text="all studies").click()
        page.locator("#studies", has_text="not begun").wait_for()


def test_the_button_asks_the_study_to_stop(page, tmp_path):
    path = write_job(tmp_path, trials=4, method="random", nap=0)
    trimtuner("run", path, "-q")
    with dashboard(path, "--allow-changes") as address:
        page.goto(address)
        page.locator("#trials tr[data-trial]").first.wait_for()
        form = page.locator("form[action$=stop]")
        form.locator("button").click()
        page.locator("dialog button", has_text="No").click()
        assert form.locator("[role=status]").inner_text() == ""
        form.locator("button").click()
        page.locator("dialog button", has_text="Yes").click()
        form.locator("[role=status]", has_text="asked to start no more trials").wait_for()


def test_failures_are_forgotten_by_a_button_once_that_is_confirmed(page, tmp_path):
    path = write_job(tmp_path, trials=3, fail="1", method="random", nap=0)
    trimtuner("run", path, "-q")
    with dashboard(path, "--allow-changes") as address:
        page.goto(address)
        form = page.locator("form[action$=forget]")
        form.locator("button").click()
        page.locator("dialog button", has_text="Yes").click()
        form.locator("[role=status]", has_text="forgotten: 1 failure").wait_for()
        page.locator("#trials tr[data-trial='1']", has_text="forgotten (exit)").wait_for()


def test_one_failure_is_forgotten_and_a_picked_configuration_is_tested_next_once_that_is_confirmed(page, tmp_path):
    path = write_job(tmp_path, trials=3, fail="1", method="random", nap=0)
    trimtuner("run", path, "-q")
    with dashboard(path, "--allow-changes") as address:
        opened(page, address)
        page.locator("#trials tr[data-trial='1']").click()
        page.locator("tr.detail button", has_text="Forget this failure").click()
        page.locator("dialog button", has_text="Yes").click()
        page.locator("#trials tr[data-trial='1']", has_text="forgotten (exit)").wait_for()
        page.locator("#trials tr[data-trial='0'] [data-pick]").click()
        for answer, said in (("No", ""), ("On 50 %", "enqueued: a run asks it before anything else")):
            page.locator("#tray button", has_text="Test it next").click()
            page.locator("dialog button", has_text=answer).click()
            page.locator("#tray > [role=status]", has_text=said).wait_for(state="attached")
    history = JobStudy.at(path).record.history()
    assert history.queued == ((dict(history.outcomes[0].trial.config), 0.5),)


def written_trials(folder):
    """A table of 1,000 trials, each with a cost of its own; one in seven has failed."""
    subject = real_subject()
    whole = next(one for one in subject.history.outcomes if one.failed is None)
    failed = replace(whole, failed="oom", measurements=())
    many = tuple(
        replace(whole if number % 7 else failed, trial=replace(whole.trial, number=number), cost=cost_of(number))
        for number in range(1000)
    )
    long = replace(subject, history=replace(subject.history, outcomes=many, pending=()))
    written = folder / "trials.html"
    table = section(trials.VIEW, html_of(trials.VIEW.shown_in_report(long)))
    written.write_text(
        f"<!DOCTYPE html><style>{style()}</style><main>{table}</main><script type='module'>{script()}</script>"
    )
    return written.as_uri()


def cost_of(number):
    return 0.1 + number * 7919 % 1000 / 1000


def test_a_filter_that_works_in_pieces_is_ended_by_the_next_one_and_keeps_the_order(page_with_scripts, tmp_path):
    page = page_with_scripts
    page.add_init_script("let moment = 0; performance.now = () => (moment += 1);")  # so that a piece is a few rows
    page.goto(written_trials(tmp_path))
    until(page, "document.querySelector('tbody.below')")
    told = """async () => {
        window.told = [];
        const count = document.querySelector("[data-count]");
        new MutationObserver(() => window.told.push(count.textContent)).observe(count, { childList: true });
        for (const words of ["no+such+words", "ok", "oom"]) {
            const changed = new Promise(done => window.addEventListener("hashchange", done, { once: true }));
            window.location.hash = `#trials?filter=${words}`;
            await changed;
        }
    }"""
    page.evaluate(told)
    until(page, "window.told.length")
    failed = range(0, 1000, 7)
    assert page.evaluate("window.told") == [f"{len(failed)} of 1000 trials"]
    assert numbers(page) == sorted(failed, reverse=True)[:80]
    page.locator("#trials th button", has_text="cost").click()
    cheapest = sorted(failed, key=cost_of)
    page.locator(f"#trials tbody:not(.above) tr[data-trial='{cheapest[0]}']:first-child").wait_for()
    assert numbers(page) == cheapest[:80]
    assert page.evaluate("window.told") == [f"{len(failed)} of 1000 trials"] * 2


def test_of_thousands_of_rows_only_those_in_sight_are_laid_out_and_all_can_be_reached(page, tmp_path):
    page.goto(written_trials(tmp_path))
    shown = page.locator("#trials tr[data-trial]:visible")
    until(page, "document.querySelector('tbody.below')")
    assert 0 < shown.count() < 200
    whole = page.evaluate("document.querySelector('.scroll.rows').scrollHeight")
    page.locator("#trials tr[data-trial='999'] td").nth(1).click()
    page.evaluate("document.querySelector('.scroll.rows').scrollTop = 1e6")
    page.locator("#trials tr[data-trial='0']").wait_for()
    assert shown.count() < 200
    page.evaluate("document.querySelector('.scroll.rows').scrollTop = 0")
    page.locator("#trials tr[data-trial='999'] + tr.detail").wait_for()  # still open
    page.locator("#trials tr[data-trial='999'] td").nth(1).click()
    assert page.evaluate("document.querySelector('.scroll.rows').scrollHeight") == pytest.approx(whole, rel=0.02)
    page.locator("#trials th button", has_text="trial").click()
    page.locator("#trials tr[data-trial='0']").wait_for()
    assert numbers(page)[:3] == [0, 1, 2]
    page.fill("[data-filter]", "no such words")
    page.locator("[data-count]", has_text="0 of 1000 trials").wait_for()


def test_studies_are_put_against_each_other(page, job, tmp_path):
    other = write_job(tmp_path, trials=3, method="random", nap=0)
    trimtuner("run", other, "-q")
    with dashboard(job, other) as address:
        page.goto(address)
        for tick in page.locator("#studies input").all():
            tick.check()
        page.locator("#studies button").click()
        assert page.locator("#against table.answer thead th").count() == 2
        assert page.locator("#against svg.chart path.line").count() == 2


def test_what_a_running_trial_reports_and_prints_is_followed(page, tmp_path):
    go = tmp_path / "go"
    path = write_job(tmp_path, trials=1, method="random", nap=0, until=go)
    script = tmp_path / "train.py"
    said = 'print("::metric " + json.dumps({"accuracy": 0.123, "fraction": fraction / 2}), flush=True)\nwhile'
    script.write_text(script.read_text().replace("while", said, 1))
    with dashboard(path) as address:
        run = start("run", path, "-q")
        try:
            page.goto(address)
            page.locator("#now li", has_text="accuracy 0.123").wait_for()
            assert page.locator("#now progress").get_attribute("value") == "0.5000"
            page.locator("#trials tr[data-trial='0']").click()
            page.locator("#trials pre.log", has_text="0.123").wait_for()
            go.touch()
            page.locator("#now", has_text="No trial is running.").wait_for()
            assert run.wait(PATIENCE_SECONDS) == 0
        finally:
            run.poll() is None and run.kill()


ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RULES_OF_COLOURS = ["color-contrast", "link-in-text-block"]


def violations(page, rules):
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("rules => axe.run({runOnly: rules, resultTypes: ['violations']})", rules)
    assert found["passes"] or found["inapplicable"]  # it has looked
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]


@pytest.mark.parametrize(
    ("scheme", "rules"),
    [
        pytest.param("light", ALL_RULES, id="light"),
        pytest.param("dark", RULES_OF_COLOURS, id="dark, where only colours differ"),
        pytest.param("dark", ALL_RULES, id="dark, all rules", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_on_page_and_report_nor_beside_each_other(page, address, report, scheme, rules):
    page.emulate_media(color_scheme=scheme)
    opened(page, address)
    assert violations(page, rules) == []
    page.locator("#trials tr[data-trial='0'] td").nth(1).click()
    for place in (0, 1):
        page.locator("#trials [data-pick]").nth(place).click()
    page.locator("#tray button").last.wait_for()
    assert violations(page, rules) == []
    page.locator("#tray button", has_text="L").or_(page.locator("#tray button", has_text="Compare")).first.click()
    assert violations(page, rules) == []
    page.goto(report.as_uri())
    assert violations(page, rules) == []


def test_the_first_screen_answers_without_scrolling(page, address):
    page.set_viewport_size({"width": 1440, "height": 900})
    opened(page, address)
    for name in ("answer", "spend", "now"):
        box = page.locator(f"#{name}").bounding_box()
        assert box["y"] + box["height"] <= 900, name
    told = page.locator("#answer").inner_text()
    for words in ("runs and meets every limit with probability", "to spare", "train.py", "Why this one"):
        assert words in told


def test_on_a_phone_the_same_comes_in_one_column_in_the_same_order(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, address)
    boxes = [page.locator(f"#{view.name}").bounding_box() for view in VIEWS]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    assert len({round(box["x"]) for box in boxes}) == 1


def test_what_was_recommended_last_is_there_when_the_page_is_and_is_never_being_read(page, job):
    with dashboard(job) as address:
        page.goto(address)
        told = page.locator("#answer").inner_text()
        assert "vm_type" in told
        assert "train.py" in told
        assert "being read" not in page.content()
        opened(page, page.url)
        assert "runs and meets every limit" in page.locator("#answer").inner_text()
