"""The style sheet, the scripts and the icon: files beside this module; another content has another address."""

from base64 import b64encode
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from domain.errors import NotFoundError
from server.http.parts import HttpParts

FOLDER = "static"
_TYPES = {
    "pages.css": "text/css; charset=utf-8",
    "pages.js": "text/javascript; charset=utf-8",
    "operations.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}  # another content has another address
_ASKED_AGAIN = {"cache-control": "no-cache"}
_HEADERS = {"x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin"}


class Asset(NamedTuple):
    content: bytes
    media_type: str
    version: str  # of the content


@cache
def asset(name: str) -> Asset:
    """Raises NotFoundError for what is none of ours: no other file is ever read."""
    if name not in _TYPES:
        raise NotFoundError(f"there is no file {name[:80]!r}", hint=f"there are: {', '.join(_TYPES)}")
    content = Path(__file__).with_name(FOLDER).joinpath(name).read_bytes()
    return Asset(content, _TYPES[name], blake2b(content, digest_size=6).hexdigest())


class Style(NamedTuple):
    """The style sheet as it stands in each page, and its name in the policy of content."""

    text: str
    source: str  # 'sha256-...', https://www.w3.org/TR/CSP3/#grammardef-hash-source


@cache
def style() -> Style:
    """Within the page, without a request of its own: the page is painted a third earlier. Indents are left out."""
    lines = asset("pages.css").content.decode().splitlines()
    text = "\n".join(line.strip() for line in lines)
    return Style(text, f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'")


def address(base_path: str, name: str) -> str:
    return f"{base_path}/{FOLDER}/{name}?v={asset(name).version}"


async def file(_parts: HttpParts, request: Request) -> Response:
    found = asset(request.path_params["name"])
    is_known = request.query_params.get("v") == found.version
    headers = _HEADERS | (_KEPT if is_known else _ASKED_AGAIN) | {"etag": f'"{found.version}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
