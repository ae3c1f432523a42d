"""The guard over removals (R34): which stored documents a run may remove, and which it must hold. Pure."""

from typing import Literal

from msgspec import Struct

HELD_ABOVE_SHARE = 0.20
HELD_ABOVE_COUNT = 50


class RemovalVerdict(Struct, frozen=True):
    """What becomes of a root's candidates; `cause` is a stable code, "" where nothing is held."""

    apply: Literal["all", "moved", "nothing"]
    held: int
    cause: str


def judge_removals(
    *,
    candidates: int,
    moved: int,
    documents_before: int,
    files_met: int,
    walk_ended_well: bool,
    allow_mass: bool,
) -> RemovalVerdict:
    """Judge one root's candidates after its adds and updates are committed.

    `candidates` counts stored documents whose file was not met or can no longer be indexed, `moved` those of them
    whose content was met at another path. Nothing goes when a part of the root could not be read, or when it shows
    no file at all (S0-32, P8); more than 50 documents and more than a fifth of the root are held. A moved document
    is not lost: it does not count, and always goes.
    """
    if not candidates:
        return RemovalVerdict("all", 0, "")
    if not walk_ended_well:
        return RemovalVerdict("nothing", candidates, "source_unreadable")
    if files_met == 0 and documents_before > 0:
        return RemovalVerdict("nothing", candidates, "source_empty")
    lost = candidates - moved
    if lost > HELD_ABOVE_COUNT and lost > documents_before * HELD_ABOVE_SHARE and not allow_mass:
        return RemovalVerdict("moved", lost, "removals_held")
    return RemovalVerdict("all", 0, "")
