"""What answers over HTTP have beside those of the command line: pages, exports, and what callers are not shown."""

from collections.abc import Sequence
from typing import Any

from app.mcp_cursor import Cursor, digest
from app.present import NO_INDEX, Json
from app.present_match import match_json
from domain.errors import KnowledgeError, NotBuiltError
from domain.settings import Settings
from retrieval.match_answer import MatchAnswer, MatchRequest
from store.port import StoreIdentity

_CHANGED = "the index has changed since the documents before: some may come twice, or not at all"


def state_of(identity: StoreIdentity) -> str:
    """A state of the store as cursors name it."""
    return digest(identity.store_uuid, identity.commit_seq)


def match_page_json(answer: MatchAnswer, request: MatchRequest, now_ns: int, about: str, cursor: Cursor | None) -> Json:
    """`match --json` with `next_cursor`: null where no document is behind these."""
    value = match_json(answer, request, now_ns)
    state = state_of(answer.identity)
    if cursor is not None and cursor.state != state:
        value["note"] = f"{value['note']}; {_CHANGED}"
    goes_on = answer.is_truncated and answer.documents
    end = answer.offset + len(answer.documents)
    value["next_cursor"] = Cursor(about, end, state).format() if goes_on else None
    return value


def export_end_json(returned: int, error: KnowledgeError | None = None) -> Json:
    """The last line of an export: without it, or with `whole` false, some of the set is missing."""
    value: Json = {"whole": error is None, "returned": returned}
    if error is not None:
        value["error"] = {"code": error.code, "message": error.message, "hint": error.hint}
    return value


def not_built_for_readers() -> NotBuiltError:
    """For callers who may not operate: nothing of where it was looked for."""
    return NotBuiltError(NO_INDEX, hint="whoever runs the service makes it: `knowledge index`")


def without_places(value: Json) -> Json:
    """The same without paths of the machine."""
    told = value | {"home": None}
    if "roots" in value:
        told["roots"] = [root | {"path": None} for root in value["roots"]]
    return told


def machine_places(settings: Settings) -> list[str]:
    """Paths that sentences may name, the longest first."""
    places = [settings.home, *(root.path for root in settings.roots), settings.config_path]
    return sorted({str(place) for place in places if place is not None}, key=len, reverse=True)


def told_to_readers(error: KnowledgeError, settings: Settings) -> KnowledgeError:
    """The error for callers who are told of no place on this machine; it may be the same one, changed."""
    if isinstance(error, NotBuiltError):
        return not_built_for_readers()
    places = machine_places(settings)
    error.message, error.hint = without_named(error.message, places), without_named(error.hint, places)
    return error


def without_named(value: Any, places: Sequence[str]) -> Any:
    """The same with `...` for each of these places, in sentences too."""
    if isinstance(value, str):
        for place in places:
            value = value.replace(place, "...")
        return value
    if isinstance(value, list):
        return [without_named(one, places) for one in value]
    if isinstance(value, dict):
        return {key: without_named(one, places) for key, one in value.items()}
    return value
