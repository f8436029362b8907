"""The server: what is answered. It reads; only where it was asked to may it stop a study or forget its failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from itertools import chain
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from trimtuner.commands.dashboard.access import LOCAL, LOGIN, Access, Guarded
from trimtuner.commands.dashboard.pages import (
    Forms,
    against_page,
    change_forms,
    forget_form,
    home_page,
    is_failure,
    studies_table,
    study_page,
)
from trimtuner.commands.dashboard.recorded import InRecord, RecordWatched
from trimtuner.commands.dashboard.renderer import Renderer, Shown
from trimtuner.errors import InputError, TrimTunerError
from trimtuner.jobs.studies import JobStudy
from trimtuner.problem.expressions import Value
from trimtuner.views import every
from trimtuner.views.document import goal_text, live_script, style
from trimtuner.views.marking import key_of
from trimtuner.views.standing import MOST_AGAINST
from trimtuner.views.trials import Row, newest_first, table_rows, trial_detail
from trimtuner.views.words import count_of

_ROWS_AT_ONCE = 250
_MOST_DIGITS = 18  # of a number in an address; Python refuses to read thousands of them
_MOST_FORM_BYTES = 4096
_LOOK_SECONDS = 0.3  # between looks at the record, while somebody watches
_SILENT_LOOKS = 33  # after which a line is sent all the same, so that a lost browser is noticed
_FILES = {"style.css": ("text/css", style), "page.js": ("text/javascript", live_script)}

Change = Callable[[JobStudy, Mapping[str, str]], str]  # of a study, as a form says; what was done, in words
Handler = Callable[[Request], Awaitable[Response]]
StudyHandler = Callable[[Shown, Request], Awaitable[Response]]


class _ShortNumber(IntegerConvertor):
    regex = f"[0-9]{{1,{_MOST_DIGITS}}}"


register_url_convertor("number", _ShortNumber())


class Dashboard:
    """Studies by number; names are only ever shown."""

    def __init__(
        self,
        jobs: Sequence[JobStudy],
        token: str | None = None,
        hosts: Collection[str] = LOCAL,
        records: Sequence[RecordWatched] = (),
    ) -> None:
        self._shown = [Shown(of.job.name, of.job.path, of) for of in jobs]
        self._records = records  # whose studies are only listed
        self._access = Access(token, hosts)
        self._renderer = Renderer()
        self.is_ending: Callable[[], bool] = lambda: False  # then no answer goes on for ever

    def app(self) -> Starlette:
        """What a server serves: nothing in it changes anything."""
        return self._app(Forms())

    def app_that_may_change(self) -> Starlette:
        """The same, with forms that stop a study, take its failures back, and put a configuration first."""
        token = self._access.form_token
        changes: tuple[tuple[str, Change], ...] = (
            ("stop", _ask_to_stop),
            ("forget", _forget_failures),
            ("enqueue", _enqueue),
        )
        routes = [
            Route(f"/study/{{number:number}}/{name}", self._of(self._changing(change)), methods=["POST"])
            for name, change in changes
        ]
        forms = Forms(
            of_study=lambda number: change_forms(f"/study/{number:d}", self._shown[number], token),
            of_trial=lambda number, row: forget_form(f"/study/{number:d}", self._shown[number], row, token),
        )
        return self._app(forms, *routes)

    def read_ahead(self) -> None:
        """Read the records, so that who opens the page need not wait for that; and fit the model of a single study."""
        if self._is_single:
            self._renderer.refresh(self._shown[0])
        else:
            self._versions()

    def close(self) -> None:
        """End what works for it."""
        self._renderer.close()

    def _app(self, forms: Forms, *further: Route) -> Starlette:
        async def study(shown: Shown, request: Request) -> Response:
            await run_in_threadpool(self._renderer.glance, shown)
            number, back = request.path_params["number"], '<a href="/">all studies</a>'
            return HTMLResponse(study_page(shown, number, "" if self._is_single else back, forms.of_study(number)))

        async def trial(shown: Shown, request: Request) -> Response:
            row = _row(shown, int(request.path_params["trial"]))
            if row is None:
                return PlainTextResponse("there is no such trial", 404)
            return HTMLResponse(trial_detail(row) + forms.of_trial(request.path_params["number"], row))

        async def login(request: Request) -> Response:
            return self._access.login(request)

        routes = [
            Route("/", self._home),
            Route(LOGIN, login),
            Route("/studies", self._studies),
            Route("/events", self._all_events),
            Route("/against", self._against),
            Route("/static/{name}", self._static),
            Route("/study/{number:number}", self._of(study)),
            Route("/study/{number:number}/state", self._of(self._state)),
            Route("/study/{number:number}/events", self._of(self._events)),
            Route("/study/{number:number}/view/{view}", self._of(self._view)),
            Route("/study/{number:number}/trials", self._of(self._trials)),
            Route("/study/{number:number}/trial/{trial:number}", self._of(trial)),
            Route("/study/{number:number}/log/{trial:number}", self._of(self._log)),
            *further,
        ]
        return Starlette(routes=routes, middleware=[Middleware(Guarded, access=self._access)])

    def _of(self, handler: StudyHandler) -> Handler:
        async def of_study(request: Request) -> Response:
            number = int(request.path_params["number"])
            if number >= len(self._shown):
                return PlainTextResponse("there is no such study, or its job file was not given", 404)
            return await handler(self._shown[number], request)

        return of_study

    async def _home(self, _request: Request) -> Response:
        if self._is_single:
            return RedirectResponse("/study/0", 303)
        return HTMLResponse(await run_in_threadpool(self._listed, home_page))

    async def _studies(self, _request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(self._listed, studies_table))

    async def _against(self, request: Request) -> Response:
        """Several studies beside each other, by their numbers."""
        given = request.query_params.getlist("study")[:MOST_AGAINST]
        numbers = [int(one) for one in given if one.isascii() and one.isdigit() and len(one) <= _MOST_DIGITS]
        await run_in_threadpool(self._versions)
        every_one = self._listed_studies()
        known = [every_one[number].standing for number in numbers if number < len(every_one)]
        found = [one for one in known if one is not None]
        if len(found) < 2:
            return PlainTextResponse("tick at least two studies that have begun; go back to: /", 404)
        return HTMLResponse(against_page(found))

    async def _all_events(self, request: Request) -> Response:
        """A line whenever one of the studies has changed."""

        async def told() -> str:
            return json.dumps(await run_in_threadpool(self._versions))

        return self._stream(request, told)

    @property
    def _is_single(self) -> bool:
        return len(self._shown) == 1 and not self._records

    def _listed_studies(self) -> list[Shown | InRecord]:
        """Those with a page first, by their numbers; then those that only a record tells of."""
        with_page = {shown.name for shown in self._shown}
        others = (one for record in self._records for one in record.studies())
        return [*self._shown, *(one for one in others if one.name not in with_page)]

    def _versions(self) -> list[str]:
        found = self._listed_studies()
        for one in found:
            if isinstance(one, InRecord):
                one.look()
            else:
                self._renderer.look(one)
        return [one.looked_at for one in found]

    def _listed(self, written: Callable[[Sequence[Shown | InRecord]], str]) -> str:
        self._versions()
        return written(self._listed_studies())

    async def _state(self, shown: Shown, _request: Request) -> Response:
        """Which version of each view there is."""
        return JSONResponse(await run_in_threadpool(self._told, shown))

    def _told(self, shown: Shown) -> dict[str, object]:
        self._renderer.refresh(shown)
        made = {view.name: shown.made(view) for view in every.VIEWS}
        states = {name: None if one is None else one.state for name, one in made.items()}
        goal = "" if shown.subject is None else goal_text(shown.subject)
        return {"views": states, "goal": goal, "said": shown.said, "trouble": shown.trouble}

    async def _events(self, shown: Shown, request: Request) -> Response:
        """The same as server-sent events: at once, and then whenever it has changed."""

        async def told() -> str:
            return json.dumps(await run_in_threadpool(self._told, shown))

        return self._stream(request, told)

    async def _view(self, shown: Shown, request: Request) -> Response:
        view = next((one for one in every.VIEWS if one.name == request.path_params["view"]), None)
        found = None if view is None else shown.made(view)
        if view is None or found is None:
            return PlainTextResponse("not there", 404)
        return HTMLResponse(found.html[view.name])

    async def _trials(self, shown: Shown, request: Request) -> Response:
        """The next rows of the table, from a trial's number down."""
        below = request.query_params.get("below", "")
        subject = shown.subject
        if subject is None or not below.isascii() or not below.isdigit() or len(below) > _MOST_DIGITS:
            return PlainTextResponse("not there", 404)
        return HTMLResponse(table_rows(subject, newest_first(subject, _ROWS_AT_ONCE, int(below))))

    async def _log(self, shown: Shown, request: Request) -> Response:
        """By numbers only: no path is ever taken from an address."""
        if shown.watched is None:
            return PlainTextResponse("the study has not begun yet", 404)
        text = await run_in_threadpool(shown.watched.log, int(request.path_params["trial"]))
        if text is None:
            return PlainTextResponse("no attempt at this trial was started", 404)
        return PlainTextResponse(text)

    def _changing(self, change: Change) -> StudyHandler:
        """A handler that makes a change, only for a form that one of our own pages has sent."""

        async def changed(shown: Shown, request: Request) -> Response:
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > _MOST_FORM_BYTES:
                    return PlainTextResponse("too long", 413)
            form = {name: told[0] for name, told in parse_qs(body.decode("utf-8", "replace")).items()}
            if not self._access.is_own_form(request, form.get("form_token", "")):
                return PlainTextResponse("this form is not of this page", 403)
            if shown.watched is None:
                return PlainTextResponse("the study has not begun yet", 404)
            try:
                return PlainTextResponse(await run_in_threadpool(change, shown.of, form))
            except TrimTunerError as error:
                return PlainTextResponse(f"not done: {error}", 503)

        return changed

    def _stream(self, request: Request, told: Callable[[], Awaitable[str]]) -> Response:
        """What is told, whenever it is another than before, until the browser goes away."""

        async def lines() -> AsyncIterator[str]:
            last, silent = "", 0
            while not (self.is_ending() or await request.is_disconnected()):
                now = await told()
                silent += 1
                if now != last or silent > _SILENT_LOOKS:
                    last, silent = now, 0
                    yield f"data: {now}\n\n"
                await asyncio.sleep(_LOOK_SECONDS)

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return PlainTextResponse("not there", 404)
        kind, content = _FILES[name]
        return Response(content(), media_type=f"{kind}; charset=utf-8")


def _row(shown: Shown, trial: int) -> Row | None:
    found = () if shown.subject is None else newest_first(shown.subject, 1, trial + 1)
    return next((one for one in found if one.trial == trial), None)


def _ask_to_stop(of: JobStudy, _form: Mapping[str, str]) -> str:
    _, memory = of.open_to_run()
    memory.record.request_stop()
    return "asked to start no more trials; those running go on to their end"


def _forget_failures(of: JobStudy, form: Mapping[str, str]) -> str:
    """All of them, or the one of a trial."""
    failed = [one.trial.number for one in of.record.history().outcomes if is_failure(one)]
    chosen = [number for number in failed if form.get("trial", str(number)) == str(number)]
    _, memory = of.open_to_run()
    memory.forget(chosen)
    return f"forgotten: {count_of(len(chosen), 'failure')}; what they cost stays charged"


def _picked(of: JobStudy, key: str) -> Mapping[str, Value]:
    """The configuration that a mark of the page stands for: of a trial, or of a space that can be counted through."""
    history, space = of.record.history(), of.problem.space
    tested = (trial.config for trial in (*history.pending, *(one.trial for one in history.outcomes)))
    said = [] if history.last_recommended is None else [history.last_recommended[0]]
    pool = space.pool() if space.is_enumerable else ()
    counted = (pool.configuration(position) for position in range(len(pool))) if pool else ()
    found = next((config for config in chain(tested, said, counted) if key_of(config) == key), None)
    if found is None:
        raise InputError("this configuration was not tested yet; write it under 'Enqueue a configuration'")
    return found


def _enqueue(of: JobStudy, form: Mapping[str, str]) -> str:
    try:
        fraction = float(form.get("fraction", ""))
        config = _picked(of, form["picked"]) if "picked" in form else json.loads(form.get("config", ""))
    except (ValueError, RecursionError) as error:
        raise InputError(f'a configuration is JSON such as {{"x": 1}}, a share a number such as 0.5: {error}') from None
    study, _ = of.open_to_run()
    study.enqueue(config, fraction)
    return "enqueued: a run asks it before anything else"
