"""Who may ask the dashboard: its own machine, or who has the token; and what every answer tells the browser."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

LOCAL = ("localhost", "127.0.0.1", "::1")
_COOKIE = "trimtuner"
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
    """The rules; without a token only the names of this machine are answered to."""

    def __init__(self, token: str | None, hosts: Sequence[str] = LOCAL) -> None:
        self._token, self._hosts = token, frozenset(hosts)
        self.form_token = secrets.token_urlsafe(24)  # only a page of ours knows it

    def refusal(self, request: Request) -> Response | None:
        """Another name for this machine may be a page elsewhere that borrows the browser; no token, no answer."""
        if self._token is None and request.url.hostname not in self._hosts:
            return PlainTextResponse("this page answers to localhost only", 403)
        if self._token is not None and not self._has_token(request):
            return PlainTextResponse("a token is needed: open the address that trimtuner dashboard printed", 401)
        return None

    def login(self, request: Request) -> Response:
        """The token comes once in the address, and from then on in a cookie that no script reads."""
        given = request.query_params.get("token", "")
        if self._token is None or not secrets.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse("this token is not right", 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", path="/")
        return response

    def is_own_form(self, request: Request, given: str) -> bool:
        """Whether a form was sent by a page of ours: from our own address, with the token that only our pages have."""
        origin = urlsplit(request.headers.get("origin", ""))
        is_same = bool(origin.netloc) and origin.netloc == request.headers.get("host")
        return is_same and secrets.compare_digest(given.encode(), self.form_token.encode())

    def _has_token(self, request: Request) -> bool:
        given = request.cookies.get(_COOKIE) or request.headers.get("authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(given.encode(), (self._token or "").encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
