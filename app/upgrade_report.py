"""What `knowledge upgrade` is asked and what it has done, as values; the words are made in app.present_upgrade."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from app.outcomes import IndexReport
from app.removing import HeldRemovals
from store.upgrade_vectors import LeftVectors

HELD_STATUS = 3


class UpgradeStatus(StrEnum):
    """How an upgrade has ended. `possible`: it was only asked for."""

    CURRENT = "current"
    POSSIBLE = "possible"
    UPGRADED = "upgraded"
    HELD = "held"


class UpgradeRequest(Struct, frozen=True):
    """What the command line asks for."""

    dry_run: bool = False
    re_embed: bool = False  # no vector is taken, and an upgrade that was cut short begins again
    allow_mass_delete: bool = False  # switch, however many documents of the old index are missing in the new one
    worker_processes: int | None = None  # None: chosen by the size of the run


class TakenVectors(NamedTuple):
    """Vectors of the old index: how many were taken (or may be), and which were not."""

    number: int = 0
    left: tuple[LeftVectors, ...] = ()


class MissingDocuments(NamedTuple):
    """Documents of the old index that the new one does not have: their files are gone, or could not be read."""

    number: int
    first: tuple[str, ...]
    not_compared: int | None = 0  # documents of the old index whose keys cannot be read; None: nobody knows how many


NO_VECTORS_TAKEN = TakenVectors()
NOTHING_MISSING = MissingDocuments(0, ())


class UpgradeReport(Struct, frozen=True):
    """How an upgrade has ended. Sizes in bytes; None where something is not known."""

    home: Path
    status: UpgradeStatus
    from_version: int | None
    difference: str = ""  # why the old index is not opened
    documents_before: int | None = None
    vectors: TakenVectors = NO_VECTORS_TAKEN
    needed_bytes: int | None = None  # these two only where it was only asked for
    free_bytes: int | None = None
    is_continued: bool = False  # an upgrade that was cut short, or held, was gone on with
    index: IndexReport | None = None
    missing: MissingDocuments = NOTHING_MISSING
    held: tuple[HeldRemovals, ...] = ()
    elapsed_s: float = 0.0

    @property
    def exit_status(self) -> int:
        """3 where nothing was switched, or where files failed; the new index stands all the same then."""
        if self.status is UpgradeStatus.HELD:
            return HELD_STATUS
        return self.index.exit_status if self.index is not None else 0
