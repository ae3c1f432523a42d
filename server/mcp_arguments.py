"""What the tools of MCP take: one struct a tool, from which the published schema is made; unknown names are refused."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from domain.errors import UsageError
from retrieval.answer import MAX_TOP_K, Mode

MAX_TEXT_CHARS = 8_192  # of a path, a citation, a pattern; queries are cut by the search itself
MAX_NEIGHBOURS = 50
Arguments = TypeVar("Arguments", bound=Struct)


def _a(description: str, **schema: Any) -> Any:
    return Meta(description=description, extra_json_schema=schema or None)


class SearchArguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, _a("What to search for, in words; text in double quotes is looked for exactly as written.")]
    top_k: Annotated[
        int | None,
        _a("How many hits; the operator's number when left out.", minimum=1, maximum=MAX_TOP_K),
    ] = None
    mode: Annotated[
        str,
        _a(
            "auto: words, and meaning where embeddings are configured; lexical: words; vector: meaning; hybrid: both.",
            enum=list(get_args(Mode)),
        ),
    ] = "auto"
    root: Annotated[str, _a("Only documents of this root.")] = ""
    path: Annotated[str, _a("Only documents whose path matches, such as guide/*.md.")] = ""
    cursor: Annotated[str, _a("next_cursor of an answer to the same arguments: what follows.")] = ""


class EnumerateArguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[
        str,
        _a(
            'Words that all must stand in a document; also "a phrase", -unwanted, heading:word, body:word. No OR, no *.'
        ),
    ]
    sort: Annotated[
        Literal["matches", "path"], _a("matches: those with the most passages that match first; path: by path.")
    ] = "matches"
    min_matches: Annotated[int, _a("Leave out documents with fewer passages that match.", minimum=1)] = 1
    root: Annotated[str, _a("Only documents of this root.")] = ""
    path: Annotated[str, _a("Only documents whose path matches, such as guide/*.md.")] = ""
    cursor: Annotated[str, _a("next_cursor of an answer to the same arguments: what follows.")] = ""


class ReadArguments(Struct, frozen=True, forbid_unknown_fields=True):
    citation: Annotated[str, _a("A passage, PATH#NUMBER, as an answer gave it. Either this or path.")] = ""
    path: Annotated[str, _a("A document, as an answer gave its path. Either this or citation.")] = ""
    before: Annotated[int, _a("With citation: so many passages before it.", minimum=0, maximum=MAX_NEIGHBOURS)] = 0
    after: Annotated[int, _a("With citation: so many passages after it.", minimum=0, maximum=MAX_NEIGHBOURS)] = 0
    lines: Annotated[str, _a("With path: only these lines, such as 10-20, 10- or 10.")] = ""
    document_sha256: Annotated[
        str, _a("document_sha256 of an earlier answer, whole or its beginning: the answer says whether it has changed.")
    ] = ""
    cursor: Annotated[str, _a("next_cursor of an answer to the same arguments: what follows.")] = ""


def schema_of(struct: type[Struct]) -> dict[str, Any]:
    """The JSON schema, with nothing to look up in it: some clients follow no references."""
    schemas, definitions = msgspec.json.schema_components([struct])
    del schemas
    (definition,) = definitions.values()
    return {key: value for key, value in definition.items() if key != "title"}


def arguments_from(struct: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """Raises UsageError naming the parameter and what it takes; a number is never read out of a text."""
    try:
        arguments = msgspec.convert(dict(given), struct)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"cannot take these arguments: {error}", hint=f"there are: {', '.join(struct.__struct_fields__)}"
        ) from None
    for key in struct.__struct_fields__:
        value = getattr(arguments, key)
        if isinstance(value, str):
            _refuse_unfit(key, value)
    return arguments


def _refuse_unfit(key: str, value: str) -> None:
    if key != "query" and len(value) > MAX_TEXT_CHARS:
        raise UsageError(f"{key} is longer than {MAX_TEXT_CHARS} characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{key} holds half a character: it is no Unicode text") from None
