"""Results in words: the tier line, statuses, errors and the numbers beside them. Every surface takes them from here.

What a verb shows as a whole is in app.present_search, app.present_index, app.present_base and so on.
"""

import time
from typing import Any, assert_never

from app.discovery import Located
from app.present_safe import json_safe, name, one_line
from domain.errors import CorpusEmptyError, IndexInconsistentError, KnowledgeError
from domain.settings import Settings
from domain.status import Absence, DegradeCause, DropReason, SearchNote, SearchStatus, Standing, Tier, TierKind

Json = dict[str, Any]
_NANOSECONDS = 1_000_000_000
MAX_REASON_CHARS = 200
NO_INDEX = "there is no index yet"


def tier_line(tier: Tier) -> str:
    """The one line that says what ranks answers (S1-16, S1-17)."""
    match tier.kind:
        case TierKind.LEXICAL:
            return "tier: lexical (FTS5) - no embeddings configured"
        case TierKind.LEXICAL_ASKED:
            return "tier: lexical (FTS5) - asked for by mode"
        case TierKind.HYBRID:
            return f"tier: hybrid (FTS5 + vectors, RRF) - model={one_line(tier.model)} dim={tier.dimension}"
        case TierKind.VECTOR:
            return f"tier: vectors - asked for by mode - model={one_line(tier.model)} dim={tier.dimension}"
        case TierKind.DEGRADED:
            cause = degrade_cause_words(tier.cause or DegradeCause.EMBEDDINGS)
            reason = one_line(tier.reason, limit=MAX_REASON_CHARS)
            return f"tier: hybrid -> DEGRADED to lexical ({cause}{f': {reason}' if reason else ''})"
    assert_never(tier.kind)


def degrade_cause_words(cause: DegradeCause) -> str:
    match cause:
        case DegradeCause.EMBEDDINGS:
            return "embeddings unreachable"
        case DegradeCause.TIMEOUT:
            return "embeddings server timed out"
        case DegradeCause.CANCELED:
            return "canceled"
        case DegradeCause.INDEX_META:
            return "index metadata unreadable"
        case DegradeCause.NO_VECTORS:
            return "no vectors yet"
        case DegradeCause.CHANGED:
            return "embeddings changed"
    assert_never(cause)


def degraded_note_words(cause: DegradeCause) -> str:
    """What an answer by words alone is to be taken for, in a sentence."""
    match cause:
        case DegradeCause.EMBEDDINGS:
            return "only words were searched: the query could not be embedded; see `knowledge doctor`"
        case DegradeCause.TIMEOUT:
            return "only words were searched: the vector of the query did not come in time"
        case DegradeCause.CANCELED:
            return "only words were searched: the search was canceled before the query had a vector"
        case DegradeCause.INDEX_META:
            return "only words were searched: what the index says of its vectors cannot be read; see `knowledge verify`"
        case DegradeCause.NO_VECTORS:
            return "only words were searched: the vectors are not there yet"
        case DegradeCause.CHANGED:
            return "only words were searched: the vectors are not those of the configuration"
    assert_never(cause)


def index_line(located: Located, settings: Settings) -> str:
    """Which index a command has worked with, and why this one."""
    match located.how:
        case "named":
            why = f"configuration {located.config_path}"
        case "found":
            why = f"configuration {located.config_path}, found here or above"
        case "store":
            why = "found here or above"
        case "directory":
            why = "named by KNOWLEDGE_DIRECTORY"
        case "nothing":
            why = "default place"
        case _:
            assert_never(located.how)
    return f"index: {name(str(settings.home))} ({name(why)})"


def not_built_message(located: Located, settings: Settings, absence: Absence = Absence.NEVER_BUILT) -> tuple[str, str]:
    """Message and hint where there is no index to ask: why, and the places that were looked at."""
    command = "knowledge index" if settings.roots else "knowledge index YOUR_FOLDER"
    named = f" --config {located.config_path}" if located.how == "named" else ""
    at = f"the index at {settings.home}"
    restored = f"`knowledge restore{named} --force FILE` where there is a backup"
    match absence:
        case Absence.NEVER_BUILT:
            return (
                f"{NO_INDEX} at {settings.home}{_looked_words(located)}",
                f"build it: `{command}{named}`; or name another one with --config",
            )
        case Absence.CUT_SHORT:
            return f"{at} was begun, and cut short before it held anything", f"build it: `{command}{named}`"
        case Absence.LOST:
            return (
                f"{at} is lost: knowledge.db is not there, or empty, although runs on record have filled it",
                f"make it again from the files: `{command}{named}`; or {restored}",
            )
        case Absence.RECORD_LOST:
            return (
                f"{at} cannot be used: state.db, the record of its folders and runs, is not there beside knowledge.db",
                f"{restored}; else start anew: `knowledge reset{named} --force`, then `{command}{named}`",
            )
    assert_never(absence)


def _looked_words(located: Located) -> str:
    if located.how == "nothing":
        return f"; neither knowledge.yaml nor an index lies in {', '.join(str(p) for p in located.places)}"
    if located.config_path is not None:
        return f", where the configuration {located.config_path} puts it"
    return ""


def search_status_words(status: SearchStatus, *, has_results: bool) -> str:
    """What the status means, in a sentence; "" where the hits speak for themselves."""
    match status:
        case SearchStatus.OK:
            return "" if has_results else "nothing found"
        case SearchStatus.INDEX_NOT_BUILT:
            return NO_INDEX
        case SearchStatus.INDEX_EMPTY:
            return standing_words(Standing.EMPTY)
        case SearchStatus.INDEX_INCOMPLETE:
            found = "these are the hits so far" if has_results else "nothing found so far"
            return f"{standing_words(Standing.INCOMPLETE)}: {found}"
        case SearchStatus.INDEX_INCONSISTENT:
            return _standing_sentence(Standing.INCONSISTENT)
        case SearchStatus.INDEX_OUTDATED:
            found = "these are its hits" if has_results else "nothing found in it"
            return f"{_standing_sentence(Standing.OUTDATED)}; {found}"
        case SearchStatus.QUERY_EMPTY:
            return "the query holds nothing to search for"
    assert_never(status)


def standing_words(standing: Standing) -> str:
    """What the index as a whole is, in a sentence."""
    match standing:
        case Standing.COMPLETE:
            return "a full run has seen all of the folders"
        case Standing.EMPTY:
            return "the index holds no document: nothing was there to be indexed, or all of it was skipped"
        case Standing.INCOMPLETE:
            return "no run has seen all of the folders yet"
        case Standing.INCONSISTENT:
            return "the index is blank, although runs on record have filled it"
        case Standing.OUTDATED:
            return "the index is older than a full run on record has left it, as an old copy would be"
    assert_never(standing)


def _standing_sentence(standing: Standing) -> str:
    """The same, with what to do about it where it is no ordinary one."""
    advice = {
        Standing.INCONSISTENT: ": `knowledge doctor` says more, `knowledge index` fills it again",
        Standing.OUTDATED: ": `knowledge index` reads what is missing",
    }
    return standing_words(standing) + advice.get(standing, "")


def standing_notes(standing: Standing) -> list[str]:
    """What an answer that is not about the index as a whole has to say of it: one sentence, or none."""
    return [] if standing is Standing.COMPLETE else [_standing_sentence(standing)]


def note_lines(standing: Standing) -> list[str]:
    """The same as lines of a text."""
    return [f"note: {note}" for note in standing_notes(standing)]


def no_documents_error(standing: Standing) -> CorpusEmptyError:
    """What an answer about documents is where there is none: an empty one would be misread (S0-56)."""
    if standing is Standing.INCONSISTENT:
        hint = "the files themselves are as they were: nothing of them is lost"
        return IndexInconsistentError(_standing_sentence(standing), hint=hint)
    if standing is Standing.INCOMPLETE:
        return CorpusEmptyError(
            f"the index holds no document yet: {standing_words(standing)}",
            hint="`knowledge index` reads them; `knowledge status` says what runs, and how the last run ended",
        )
    return CorpusEmptyError(
        standing_words(standing),
        hint="`knowledge status` says what the roots hold; `knowledge index` brings them up to date",
    )


def drop_reason_words(reason: DropReason) -> str:
    match reason:
        case DropReason.TOO_SHORT:
            return "a single character"
        case DropReason.PUNCTUATION:
            return "no letter and no digit"
        case DropReason.TOO_COMMON:
            return "in more than half of the index"
        case DropReason.QUESTION_WORD:
            return "only asks"
        case DropReason.OVER_LIMIT:
            return "beyond the 40 rarest words"
        case DropReason.NOT_INDEXED:
            return "not a word for the index"
    assert_never(reason)


def search_note_words(note: SearchNote) -> str:
    match note:
        case SearchNote.QUERY_TRUNCATED:
            return "the query was too long and has been cut"
        case SearchNote.LITERAL_TRUNCATED:
            return "the literal text has too many candidates: some places may be missing"
        case SearchNote.LITERAL_NOT_FOUND:
            return "no place holds the text with punctuation or in quotes as it is written"
        case SearchNote.SUBSTRING_TRUNCATED:
            return "too many places hold text like this: some may be missing"
        case SearchNote.SUBSTRING_RELAXED:
            return "no place holds all of it: places that hold a part are shown"
        case SearchNote.NEAREST_BY_MEANING:
            return "no hit shares a word with the query: these are the nearest by meaning only"
    assert_never(note)


def error_text(error: KnowledgeError) -> str:
    """Message and hint on lines of their own, for a terminal."""
    lines = [f"error: {_lines(error.message)}"]
    if error.hint:
        lines.append(f"hint: {_lines(error.hint)}")
    return "\n".join(lines) + "\n"


def error_json(error: KnowledgeError) -> Json:
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


def unexpected_error(error: BaseException) -> KnowledgeError:
    """What nobody has foreseen, in one line."""
    told = one_line(str(error), limit=300)
    return KnowledgeError(
        f"unexpected {type(error).__name__}{f': {told}' if told else ''}",
        hint="`knowledge --debug ...` shows where it comes from; please report it",
    )


def json_text(value: object) -> str:
    """JSON in lines, in snake_case as the values are; safe to look at."""
    import json

    return json_safe(json.dumps(value, ensure_ascii=False, indent=2)) + "\n"


def utc(time_ns: int | None) -> str | None:
    """ISO 8601 in UTC, whole seconds."""
    if time_ns is None:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ns // _NANOSECONDS))


def age_seconds(time_ns: int | None, now_ns: int) -> int | None:
    return None if time_ns is None else max(0, (now_ns - time_ns) // _NANOSECONDS)


def ago(time_ns: int | None, now_ns: int) -> str:
    seconds = age_seconds(time_ns, now_ns)
    if seconds is None:
        return "never"
    return "just now" if seconds < 2 else f"{duration(seconds)} ago"


def duration(seconds: float) -> str:
    """The two largest units that matter: `0.42 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 days`."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest_s = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s" if rest_s else f"{minutes} min"
    hours, rest_min = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest_min} min" if rest_min else f"{hours} h"
    return f"{hours // 24} days"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `39,834 files`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def size(number_bytes: int) -> str:
    """Decimal units, as disks are sold."""
    amount, unit = float(number_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{number_bytes} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def _lines(text: str) -> str:
    return "\n".join(name(line) for line in text.splitlines()) or "(no message)"
