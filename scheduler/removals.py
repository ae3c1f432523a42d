"""The guard over removals (R34): which stored documents a run may remove, and which it must hold. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from store.port import RemovalCandidate

HELD_ABOVE_SHARE = 0.20
HELD_ABOVE_COUNT = 50


@dataclass(frozen=True, slots=True)
class RemovalVerdict:
    """What becomes of a root's candidates; `cause` is a stable code, "" where nothing is held."""

    apply: tuple[RemovalCandidate, ...]
    held: int
    cause: str


def judge_removals(
    candidates: Sequence[RemovalCandidate],
    *,
    documents_before: int,
    files_met: int,
    moved: frozenset[str],
    walk_ended_well: bool,
    allow_mass: bool,
) -> RemovalVerdict:
    """Judge one root's candidates after its adds and updates are committed.

    Nothing goes when a part of the root could not be read, or when it shows no file at all (S0-32, P8); more than
    50 documents and more than a fifth of the root are held. A document whose content was met at another path is
    moved, not lost: it does not count.
    """
    if not candidates:
        return RemovalVerdict((), 0, "")
    if not walk_ended_well:
        return RemovalVerdict((), len(candidates), "source_unreadable")
    if files_met == 0 and documents_before > 0:
        return RemovalVerdict((), len(candidates), "source_empty")
    lost = sum(candidate.key not in moved for candidate in candidates)
    is_mass = lost > HELD_ABOVE_COUNT and lost > documents_before * HELD_ABOVE_SHARE
    if is_mass and not allow_mass:
        kept = tuple(candidate for candidate in candidates if candidate.key in moved)
        return RemovalVerdict(kept, len(candidates) - len(kept), "removals_held")
    return RemovalVerdict(tuple(candidates), 0, "")
