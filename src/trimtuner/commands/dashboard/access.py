"""Who may ask the dashboard: who was led here by an address of ours and has the token; and what every answer says."""

from __future__ import annotations

import re
import secrets
import socket
from collections.abc import Collection, Sequence
from ipaddress import ip_address

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trimtuner.errors import InputError

LOCAL = ("localhost", "127.0.0.1", "[::1]")  # as they are written in an address
LOGIN = "/login"
_NAME = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.ASCII)
_NOT_OURS = (
    "this page does not answer to the name and port in this address: open the link that trimtuner dashboard printed. "
    "For a proxy, a tunnel or another name, start it with --allow-host NAME, or NAME:PORT, as in the address you open."
)
_NO_TOKEN = "a token is needed: copy the link that trimtuner dashboard printed into the address bar"  # noqa: S105
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Access:
    """The rules: ``hosts`` is every name with its port under which a browser may ask, as it writes them."""

    def __init__(self, token: str | None, hosts: Collection[str]) -> None:
        self._token, self._hosts = token, frozenset(hosts)
        self.form_token = secrets.token_urlsafe(24)  # only a page of ours knows it

    def refusal(self, request: Request) -> Response | None:
        """Another name for this machine may be a page elsewhere that borrows the browser; no token, no answer."""
        if self._host(request) is None:
            return PlainTextResponse(_NOT_OURS, 403)
        if self._token is not None and request.scope["path"] != LOGIN and not self._has_token(request):
            return PlainTextResponse(_NO_TOKEN, 401)
        return None

    def login(self, request: Request) -> Response:
        """The token comes once in the address, and from then on in a cookie that no script reads."""
        given = request.query_params.get("token", "")
        if self._token is None or not secrets.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse(f"this token is not right. {_NO_TOKEN}", 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie(request), self._token, httponly=True, samesite="strict", path="/")
        return response

    def is_own_form(self, request: Request, given: str) -> bool:
        """Whether a form was sent by a page of ours: from our own address, with the token that only our pages have."""
        scheme, _, host = request.headers.get("origin", "").partition("://")
        is_ours = scheme in ("http", "https") and host in self._hosts  # a proxy may encrypt
        return is_ours and secrets.compare_digest(given.encode(), self.form_token.encode())

    def _host(self, request: Request) -> str | None:
        """What was sent, if it is one of ours; ``request.url`` has our own address in place of a malformed one."""
        sent = [host.lower() for host in request.headers.getlist("host")]
        return sent[0] if len(sent) == 1 and sent[0] in self._hosts else None

    def _cookie(self, request: Request) -> str:
        """A name for each port: a browser sends a machine's cookies to all of its ports."""
        port = (self._host(request) or "").rpartition(":")[2]
        return f"trimtuner-{port if port.isdigit() else 80}"

    def _has_token(self, request: Request) -> bool:
        sent = request.cookies.get(self._cookie(request))
        given = sent or request.headers.get("authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(given.encode(), (self._token or "").encode())


class Guarded:
    """A server that is asked only what the rules allow, and whose every answer carries the headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse before anything else is looked at."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._access.refusal(Request(scope)) if scope["type"] == "http" else None
        await (self._app if refused is None else refused)(scope, receive, send_with_headers)


def own_hosts(host: str, address: str, port: int, further_names: Sequence[str]) -> frozenset[str]:
    """Every ``Host`` that a browser sends which was led here by an address of ours, and no other."""
    known, bound = [host, address], ip_address(address)
    if bound.is_loopback or bound.is_unspecified:
        known += LOCAL
    if bound.is_unspecified:
        known += _names_of_this_machine()
    names = {written(one) for one in known if one}
    usual = names if port == 80 else set()  # a browser leaves out the usual port
    further = {one for name in further_names for one in _further_hosts(name.lower(), port)}
    return frozenset(usual | further | {f"{name}:{port}" for name in names})


def written(host: str) -> str:
    """As a browser writes it in an address."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return host.lower()
    return f"[{address}]" if address.version == 6 else str(address)


def _names_of_this_machine() -> list[str]:
    """What others may call it; what it does not know itself is for ``--allow-host``."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except OSError:  # a name that only others know
        found = []
    return [name, *(full_name for _, _, _, full_name, _ in found), *(str(place[0]) for *_, place in found)]


def _further_hosts(name: str, port: int) -> tuple[str, ...]:
    """Without a port: at ours, or at the usual one of a proxy."""
    matched = _NAME.fullmatch(name)
    if matched is None:
        raise InputError(
            f"--allow-host {name!r} is not a name; write it as in an address: example.com, example.com:8443"
        )
    return (name, f"{name}:{port}") if matched[1] is None else (name,)
