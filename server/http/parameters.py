"""Parameters of a query and bodies of a request, read into structs: unknown and repeated ones are refused by name."""

from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request

from domain.errors import UsageError

Parameters = TypeVar("Parameters", bound=Struct)


def query_of(request: Request, kind: type[Parameters]) -> Parameters:
    """Raises UsageError for a parameter that is unknown, comes twice or is not of its type."""
    pairs = request.query_params.multi_items()
    given = dict(pairs)
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    if unknown := sorted(given.keys() - set(known)):
        raise UsageError(f"there is no parameter {unknown[0]!r}", hint=f"there are: {', '.join(known)}")
    if len(pairs) != len(given):
        raise UsageError("a parameter comes twice", hint="give each once")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"a parameter is not what it should be: {error}") from None
