"""The server: what is answered. It reads; only where it was asked to may it ask a study to stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from trimtuner.commands.dashboard.access import LOCAL, LOGIN, Access, Guarded
from trimtuner.commands.dashboard.pages import home_page, stop_form, studies_table, study_page
from trimtuner.commands.dashboard.renderer import Renderer, Shown
from trimtuner.errors import TrimTunerError
from trimtuner.jobs.studies import JobStudy
from trimtuner.views import every
from trimtuner.views.document import asset, goal_text
from trimtuner.views.trials import newest_first, table_rows, trial_detail
from trimtuner.views.words import count_of

_ROWS_AT_ONCE = 250
_MOST_DIGITS = 18  # of a number in an address; Python refuses to read thousands of them
_MOST_FORM_BYTES = 4096
_KINDS = {"style.css": "text/css", "page.js": "text/javascript", "live.js": "text/javascript"}

Handler = Callable[[Request], Awaitable[Response]]
StudyHandler = Callable[[Shown, Request], Awaitable[Response]]


class _ShortNumber(IntegerConvertor):
    regex = f"[0-9]{{1,{_MOST_DIGITS}}}"


register_url_convertor("number", _ShortNumber())


class Dashboard:
    """Studies by number; names are only ever shown."""

    def __init__(self, jobs: Sequence[JobStudy], token: str | None = None, hosts: Collection[str] = LOCAL) -> None:
        self._shown = [Shown(of.job.name, of.job.path, of) for of in jobs]
        self._access = Access(token, hosts)
        self._renderer = Renderer()

    def app(self) -> Starlette:
        """What a server serves: nothing in it changes anything."""
        return self._app(lambda _: "")

    def app_that_may_stop(self) -> Starlette:
        """The same, with a button that asks a study to start no more trials."""
        stop = Route("/study/{number:number}/stop", self._of(self._stop), methods=["POST"])
        return self._app(lambda number: stop_form(number, self._access.form_token), stop)

    def close(self) -> None:
        """End what works for it."""
        self._renderer.close()

    def _app(self, button_of: Callable[[int], str], *further: Route) -> Starlette:
        async def study(shown: Shown, request: Request) -> Response:
            await run_in_threadpool(self._renderer.open, shown)
            number, back = request.path_params["number"], '<a href="/">all studies</a>'
            return HTMLResponse(study_page(shown, number, back if len(self._shown) > 1 else "", button_of(number)))

        async def login(request: Request) -> Response:
            return self._access.login(request)

        routes = [
            Route("/", self._home),
            Route(LOGIN, login),
            Route("/studies", self._studies),
            Route("/static/{name}", self._static),
            Route("/study/{number:number}", self._of(study)),
            Route("/study/{number:number}/state", self._of(self._state)),
            Route("/study/{number:number}/view/{view}", self._of(self._view)),
            Route("/study/{number:number}/trials", self._of(self._trials)),
            Route("/study/{number:number}/trial/{trial:number}", self._of(self._trial)),
            Route("/study/{number:number}/log/{trial:number}", self._of(self._log)),
            *further,
        ]
        return Starlette(routes=routes, middleware=[Middleware(Guarded, access=self._access)])

    def _of(self, handler: StudyHandler) -> Handler:
        async def of_study(request: Request) -> Response:
            number = int(request.path_params["number"])
            if number >= len(self._shown):
                return PlainTextResponse("there is no such study", 404)
            return await handler(self._shown[number], request)

        return of_study

    async def _home(self, _request: Request) -> Response:
        if len(self._shown) == 1:
            return RedirectResponse("/study/0", 303)
        return HTMLResponse(await run_in_threadpool(self._listed, home_page))

    async def _studies(self, _request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(self._listed, studies_table))

    def _listed(self, written: Callable[[Sequence[Shown]], str]) -> str:
        for shown in self._shown:
            self._renderer.open(shown)
        return written(self._shown)

    async def _state(self, shown: Shown, _request: Request) -> Response:
        """Which version of each view there is."""
        await run_in_threadpool(self._renderer.refresh, shown)
        made = {effort: rendered.state for effort, rendered in shown.rendered.items()}
        states = {view.name: made.get(view.effort) for view in every.VIEWS}
        said = count_of(shown.runs, "run") if shown.runs else "no run"
        fitting = "; the model is being fitted anew" if shown.pending else ""
        goal = "" if shown.subject is None else goal_text(shown.subject)
        return JSONResponse(
            {"views": states, "goal": goal, "said": f"{said} at work{fitting}", "trouble": shown.trouble}
        )

    async def _view(self, shown: Shown, request: Request) -> Response:
        name = request.path_params["view"]
        found = next((one.html[name] for one in shown.rendered.values() if name in one.html), None)
        return PlainTextResponse("not there", 404) if found is None else HTMLResponse(found)

    async def _trials(self, shown: Shown, request: Request) -> Response:
        """The next rows of the table, from a trial's number down."""
        below = request.query_params.get("below", "")
        subject = shown.subject
        if subject is None or not below.isascii() or not below.isdigit() or len(below) > _MOST_DIGITS:
            return PlainTextResponse("not there", 404)
        found = [row for row in newest_first(subject) if row.trial < int(below)][:_ROWS_AT_ONCE]
        return HTMLResponse(table_rows(subject, found))

    async def _trial(self, shown: Shown, request: Request) -> Response:
        trial = int(request.path_params["trial"])
        found = () if shown.subject is None else newest_first(shown.subject)
        row = next((one for one in found if one.trial == trial), None)
        return PlainTextResponse("there is no such trial", 404) if row is None else HTMLResponse(trial_detail(row))

    async def _log(self, shown: Shown, request: Request) -> Response:
        """By numbers only: no path is ever taken from an address."""
        if shown.watched is None:
            return PlainTextResponse("the study has not begun yet", 404)
        text = await run_in_threadpool(shown.watched.log, int(request.path_params["trial"]))
        if text is None:
            return PlainTextResponse("no attempt at this trial was started", 404)
        return PlainTextResponse(text)

    async def _stop(self, shown: Shown, request: Request) -> Response:
        """What ``trimtuner stop`` does; only for a form that one of our own pages has sent."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_FORM_BYTES:
                return PlainTextResponse("too long", 413)
        given = parse_qs(body.decode("utf-8", "replace")).get("form_token", [""])[0]
        if not self._access.is_own_form(request, given):
            return PlainTextResponse("this form is not of this page", 403)
        if shown.watched is None:
            return PlainTextResponse("the study has not begun yet", 404)
        try:
            await run_in_threadpool(_ask_to_stop, shown.of)
        except TrimTunerError as error:
            return PlainTextResponse(f"not asked to stop: {error}", 503)
        return PlainTextResponse("asked to start no more trials; those running go on to their end")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _KINDS:
            return PlainTextResponse("not there", 404)
        return Response(asset(name), media_type=f"{_KINDS[name]}; charset=utf-8")


def _ask_to_stop(of: JobStudy) -> None:
    _, memory = of.open_to_run()
    memory.record.request_stop()
