"""Parameters of a query and bodies of a request, read into structs: unknown and repeated ones are refused by name."""

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from msgspec import Struct
from starlette.requests import Request

from app.present_safe import one_line
from domain.decoding import UNDECODABLE
from domain.errors import UsageError
from retrieval.query_text import MAX_QUERY_CHARS

Parameters = TypeVar("Parameters", bound=Struct)
MAX_PARAMETERS = 100
MAX_TEXT_CHARS = 8_192  # of a path, a citation, a pattern
MAX_SHOWN_CHARS = 40
MAX_TOLD_CHARS = 200
QUERY = "q"  # the one that may be longer
_WORDS = {
    "Expected `int`, got `str`": "a whole number in digits is expected",
    "Expected `float`, got `str`": "a number is expected",
    "Expected `bool`, got `str`": "true or false is expected",
}


def query_of(request: Request, kind: type[Parameters]) -> Parameters:
    """Raises UsageError for a parameter that is unknown, comes twice, is no Unicode text or is not of its type."""
    pairs = _pairs(request.scope["query_string"])
    given = dict(pairs)
    known = kind.__struct_encode_fields__
    if unknown := sorted(given.keys() - set(known)):
        raise UsageError(f"there is no parameter {_shown(unknown[0])}", hint=_known_words(known))
    if len(pairs) != len(given):
        twice = next(name for name in given if sum(name == other for other, _ in pairs) > 1)
        raise UsageError(f"{twice} comes twice", hint="give each parameter once")
    for name, text in given.items():
        _refuse_unfit(name, text)
    try:
        asked = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(_told(error), hint=_known_words(known)) from None
    for name, text in given.items():
        if isinstance(value := getattr(asked, name, None), int) and not isinstance(value, bool) and str(value) != text:
            raise UsageError(f"{name} is a whole number in digits, not {_shown(text)}")
    return asked


def refuse_query(request: Request) -> None:
    """Raises UsageError where there is a parameter: the endpoint takes none."""
    if request.scope["query_string"]:
        query_of(request, _Nothing)


async def body_of(request: Request, kind: type[Parameters]) -> Parameters:
    """The body, a JSON object. Raises UsageError for what is none, and for fields that are unknown or not of their type
    (where `kind` forbids unknown ones)."""
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except msgspec.ValidationError as error:
        raise UsageError(_told(error), hint=_known_words(kind.__struct_encode_fields__)) from None
    except UNDECODABLE as error:
        raise UsageError(f"the body is no JSON: {one_line(str(error), limit=MAX_TOLD_CHARS)}") from None


def path_text(request: Request, name: str) -> str:
    """The part of the path that a route gives this name. Raises UsageError for what is no Unicode text."""
    raw: bytes = request.scope.get("raw_path") or b""
    if b"%" in raw:
        try:
            unquote_to_bytes(raw.partition(b"?")[0]).decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError("the path is no text in UTF-8", hint="percent-encode the bytes of its UTF-8") from None
    text: str = request.path_params[name]
    _refuse_unfit(name, text)
    return text


class _Nothing(Struct):
    pass


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise UsageError(
            "the query string is no text in UTF-8",
            hint="percent-encode the bytes of its UTF-8; halves of a pair are none",
        ) from None
    except ValueError:
        raise UsageError(f"there are more than {MAX_PARAMETERS} parameters", hint="give each once") from None


def _refuse_unfit(name: str, text: str) -> None:
    most = MAX_QUERY_CHARS if name == QUERY else MAX_TEXT_CHARS
    if len(text) > most:
        raise UsageError(f"{name} has {len(text):,} characters; {most:,} are taken", hint="give a shorter one")
    if "\x00" in text:
        raise UsageError(f"{name} holds a NUL character", hint="leave it out: no text of the index has one")


def _known_words(known: Sequence[str]) -> str:
    return f"there are: {', '.join(known)}" if known else "it takes none"


def _told(error: msgspec.MsgspecError) -> str:
    """`top_k: Expected `int` <= 20`; in a query string every value is a text, which is no news."""
    what, _, place = str(error).partition(" - at `$")
    what = _WORDS.get(what, what)
    name = place.strip(".`")
    return one_line(f"{name}: {what}" if name else what, limit=MAX_TOLD_CHARS)


def _shown(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}...")
