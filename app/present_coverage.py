"""`sources --coverage` in words and as JSON."""

from collections.abc import Iterator, Mapping

from app.coverage import RootCoverage
from app.discovery import Located
from app.present import Json, count, index_line, note_lines, tier_line
from app.present_reasons import reason_words
from app.present_safe import name, one_line
from app.present_sources import sources_json
from app.status import BaseStatus, RootStatus
from domain.settings import Settings
from domain.status import Tier

MAX_PROBLEMS = 5  # of a root, in words


def coverage_text(
    status: BaseStatus, covered: Mapping[str, RootCoverage], tier: Tier, located: Located, settings: Settings
) -> str:
    """`423 / 501` for each root, and what has become of the others."""
    head = [tier_line(tier), index_line(located, settings), *note_lines(status.standing)]
    lines: list[str] = []
    for root in status.roots:
        lines += _root_lines(root, covered.get(root.name))
    known = {root.name for root in status.roots}
    for root_name, one in covered.items():  # configured, and not in any run yet
        if root_name not in known:
            lines += [f"{name(root_name)}: {share_words(one)}", *(f"  {line}" for line in rest_words(one))]
    return "\n".join([*head, *(lines or ["no root yet"])]) + "\n"


def coverage_json(status: BaseStatus, covered: Mapping[str, RootCoverage], settings: Settings) -> Json:
    """As `sources`, with `coverage` for each root (null: not looked at)."""
    value = sources_json(status, settings, None)
    for root in value["roots"]:
        one = covered.get(root["name"])
        root["coverage"] = _coverage_json(one) if one is not None else None
    return value


def _root_lines(root: RootStatus, one: RootCoverage | None) -> Iterator[str]:
    if one is None:
        held = count(root.documents, "document")
        yield f"{name(root.name)} = {name(root.path)}: {held}, no longer in the configuration"
        return
    held = f"; {count(root.documents, 'document')} in the index" if one.problems else ""
    yield f"{name(root.name)} = {name(root.path)}: {share_words(one)}{held}"
    yield from (f"  {line}" for line in rest_words(one))


def share_words(one: RootCoverage) -> str:
    return f"{one.indexed:,} / {one.seen:,} files indexed"


def rest_words(one: RootCoverage) -> Iterator[str]:
    """What of the seen files is not indexed, then what else is to be known."""
    for reason, number in sorted(one.skipped.items(), key=lambda pair: (-pair[1], pair[0].value)):
        yield f"{number:,} skipped: {reason_words(reason.value)}"
    told = (
        (one.failed, "failed when they were last read; see `knowledge status`"),
        (one.new, "new: the next run reads them"),
        (one.changed, "of those indexed may have changed since: the next run reads them again"),
        (one.stale, "of those indexed failed when they were last read: their older text answers"),
        (one.leaving, "more in the index, whose files are gone or are skipped now: the next run removes them"),
    )
    yield from (f"{number:,} {words}" for number, words in told if number)
    for folder, problem in one.problems[:MAX_PROBLEMS]:
        yield f"not known what lies in {name(folder)}: {one_line(problem, 200)}"
    if len(one.problems) > MAX_PROBLEMS:
        yield f"nor in {count(len(one.problems) - MAX_PROBLEMS, 'more folder')}"


def _coverage_json(one: RootCoverage) -> Json:
    return {
        "seen": one.seen,
        "indexed": one.indexed,
        "skipped": {reason.value: number for reason, number in sorted(one.skipped.items())},
        "failed": one.failed,
        "new": one.new,
        "changed": one.changed,
        "stale": one.stale,
        "leaving": one.leaving,
        "problems": [{"path": folder, "detail": detail} for folder, detail in one.problems],
    }
