"""Forms as browsers send them, without files."""

from urllib.parse import parse_qsl

from starlette.requests import Request

MAX_FIELDS = 100


def media_type(request: Request) -> str:
    """Of the body, lower case, without parameters; "" where nothing is said of it."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def form_of(request: Request) -> dict[str, str]:
    """The fields of an urlencoded body, the last one of each name; nothing of any other body. The body can still be
    read afterwards."""
    if media_type(request) != "application/x-www-form-urlencoded":
        return {}
    try:
        return dict(
            parse_qsl((await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        )
    except ValueError:  # no text, or more fields than a form of ours has
        return {}
