"""What a request is refused with before any endpoint sees it: a problem (RFC 9457), like the endpoints' own."""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from server.http.answers import HEADERS, PROBLEM_TYPE


class RequestRefusedError(Exception):
    """Raised where a refusal is found out inside of a request; `response` is what is answered."""

    def __init__(self, response: Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


def refused(
    status: int, code: str, detail: str, hint: str = "", *, headers: Mapping[str, str] | None = None
) -> Response:
    """`code` is stable; neither text says anything of the index or of a secret."""
    value = {
        "type": "about:blank",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "hint": hint or None,
    }
    return Response(msgspec.json.encode(value), status, {**HEADERS, **(headers or {})}, PROBLEM_TYPE)
