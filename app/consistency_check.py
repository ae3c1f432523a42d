"""The check that knowledge.db can be what the runs in state.db have left, as `doctor` and `verify` make it (S2-21)."""

from collections.abc import Sequence
from typing import NamedTuple

from app.consistency import standing_among
from app.present import standing_words
from domain.checks import CheckResult, failed, not_run, passed
from domain.status import Standing
from store.port import StoreIdentity
from store.run_port import RunRecord
from store.state_port import RootRecord

NAME = "index_consistent"


class Recorded(NamedTuple):
    """What state.db knows of the base, read before knowledge.db is looked at (see app.consistency); `base_id` None: it
    cannot be read, or there is none, which a check of its own tells."""

    base_id: str | None
    roots: Sequence[RootRecord]
    runs: Sequence[RunRecord]  # the newest first


def check_consistent(recorded: Recorded, identity: StoreIdentity, documents: int) -> CheckResult:
    """A blank index under runs that have filled it is fatal; one that is older than they left it answers."""
    if recorded.base_id is None:
        return not_run(NAME, "state.db does not say which runs there were")
    standing = standing_among(identity, documents, recorded.runs, recorded.roots)
    match standing:
        case Standing.INCONSISTENT:
            hint = "run `knowledge index`, or `knowledge restore --force FILE` where there is a backup"
            return failed(NAME, standing_words(standing), hint)
        case Standing.OUTDATED:
            detail = f"{standing_words(standing)}: it is of generation {identity.generation}"
            return failed(NAME, detail, "run `knowledge index`: it reads what is missing", is_fatal=False)
        case _:
            return passed(NAME, f"generation {identity.generation}; {standing_words(standing)}")


def check_complete(identity: StoreIdentity, documents: int) -> CheckResult:
    """Whether a full run has seen all of the folders, and found something: else an answer of nothing means little."""
    name = "index_complete"
    if identity.complete_ns is None:
        return failed(name, standing_words(Standing.INCOMPLETE), "run `knowledge index`", is_fatal=False)
    if not documents:
        hint = "`knowledge sources --coverage` says what lies in the folders, and why it is not indexed"
        return failed(name, standing_words(Standing.EMPTY), hint, is_fatal=False)
    return passed(name, standing_words(Standing.COMPLETE))
