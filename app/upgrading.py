"""`knowledge upgrade`: an index of another format is made anew beside the old one, and takes its place (R3, S0-57).

The new knowledge.db is made in a folder of the home by an ordinary run over the files, with the vectors of the old one
to begin with. Until one rename the old index stands as it was: whoever has it open goes on reading. What was cut short
is gone on with; an upgrade that fails or is held says nothing in state.db that the old index does not bear out.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from msgspec import Struct
from msgspec.structs import replace

from app.beside_service import refuse_beside_service
from app.dry_run import forecast
from app.index_request import Announce, EmbeddingNotice, IndexRequest
from app.indexing import Running, carry_out
from app.outcomes import Outcomes
from app.planning import RootRun
from app.progress import RunProgress
from app.receipts import not_built, run_record
from app.run_ending import EndedRun, record_end, recorded_failure
from app.upgrade_guard import compare
from app.upgrade_report import TakenVectors, UpgradeReport, UpgradeRequest, UpgradeStatus
from app.upgrade_roots import upgrade_scopes
from app.upgrade_staging import OLD_STANDS, can_go_on, check, needed_bytes, prepare, switch
from app.upgrade_vectors import found_vectors, take_over, vector_plan
from app.wiring import WritableBase, locked_home
from domain.errors import (
    EmbeddingsChangedError,
    EmbeddingsUnavailableError,
    InterruptedRunError,
    KnowledgeError,
)
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.pending_restore import remove_staging, settle_restore
from store.rebuilding import apply_substring_index, highest_generation_or_zero
from store.run_port import RunRecord
from store.sqlite import open_store_writer
from store.state import SqliteStateStore
from store.upgrade_source import OldStore, read_old_store

PURPOSE = "knowledge upgrade"


class _Upgrade(Struct, frozen=True):
    """An upgrade under way, over the base whose lock is held."""

    settings: Settings
    request: UpgradeRequest
    layout: BaseLayout
    state: SqliteStateStore
    old: OldStore
    progress: RunProgress
    announce: Announce


def upgrade(
    settings: Settings,
    request: UpgradeRequest,
    progress: RunProgress,
    announce: Announce = lambda notice: None,
) -> UpgradeReport:
    """Make an index of another format anew and let it take over; nothing where the format is this program's.

    `announce` is told before the first text goes to an embeddings server. Raises NotBuiltError, LockedError,
    FormatError (of a newer format, of another program), IntegrityError, DiskFullError, StorageError, and what a run
    raises; the old index stands as it was then.
    """
    began_s = time.monotonic()
    layout = BaseLayout(settings.home)
    settle_restore(layout)
    old = read_old_store(layout.database, base_id=_base_id(layout))
    if old is None:
        _drop_needless(settings, layout)
        return UpgradeReport(layout.home, UpgradeStatus.CURRENT, None)
    if request.dry_run:
        return replace(_foreseen(settings, request, layout, old), elapsed_s=time.monotonic() - began_s)
    refuse_beside_service(layout)
    with locked_home(settings, PURPOSE) as layout, closing(SqliteStateStore(layout.state)) as state:
        old = read_old_store(layout.database, base_id=state.base_id())
        if old is None:  # somebody was quicker
            return UpgradeReport(layout.home, UpgradeStatus.CURRENT, None)
        report = _upgraded(_Upgrade(settings, request, layout, state, old, progress, announce))
    stopped_by = report.index.stopped_by if report.index is not None else None
    if stopped_by is not None and report.status is UpgradeStatus.UPGRADED:
        done = "the upgrade is done, and words are searched; `knowledge index` makes the vectors that are missing"
        raise EmbeddingsUnavailableError(stopped_by.message, hint=f"{stopped_by.hint}; {done}") from stopped_by
    return replace(report, elapsed_s=time.monotonic() - began_s)


def _base_id(layout: BaseLayout) -> str:
    if any(files.lstat_or_none(path) is None for path in (layout.state, layout.database)):
        raise not_built(layout)
    with closing(SqliteStateStore(layout.state, read_only=True)) as state:
        return state.base_id()


def _drop_needless(settings: Settings, layout: BaseLayout) -> None:
    """What an upgrade has left of an index that is of this program's format by now."""
    if files.lstat_or_none(layout.upgrade_staging) is not None:
        with locked_home(settings, PURPOSE):
            remove_staging(layout.upgrade_staging)


def _foreseen(settings: Settings, request: UpgradeRequest, layout: BaseLayout, old: OldStore) -> UpgradeReport:
    """What an upgrade would begin with; nothing is written."""
    found = found_vectors(layout.database, old.meta, settings, re_embed=request.re_embed)
    is_continued = not request.re_embed and can_go_on(layout.upgrading, old.meta["base_id"], settings)
    return UpgradeReport(
        layout.home,
        UpgradeStatus.POSSIBLE,
        old.version,
        old.difference,
        old.documents,
        TakenVectors(found.number, found.left),
        needed_bytes=needed_bytes(layout, old, is_continued=is_continued),
        free_bytes=files.free_bytes(layout.home),
        is_continued=is_continued,
    )


def _upgraded(it: _Upgrade) -> UpgradeReport:
    """Run, check, compare and switch; each step leaves the old index as it was until the last one."""
    layout, state, old = it.layout, it.state, it.old
    is_continued = prepare(layout, old, state.base_id(), it.settings, afresh=it.request.re_embed)
    scopes = upgrade_scopes(it.settings, state.roots(), layout.database)
    record = replace(
        run_record("upgrade", tuple(scope.record.name for scope in scopes.in_key_order)),
        full=all(scope.is_full for scope in scopes.known),
    )
    floor = max(old.generation, highest_generation_or_zero(layout.upgrading.database) if is_continued else 0)
    run = state.begin_run(record, floor_generation=floor)
    outcomes = Outcomes(it.progress)
    with _told_as_upgrade(layout), recorded_failure(state, run, outcomes):
        ended, taken = _made(it, run, [RootRun(scope) for scope in scopes.in_key_order], outcomes)
        found = compare(
            layout.database,
            layout.upgrading.database,
            ended.roots,
            old_documents=old.documents,
            allow_mass=it.request.allow_mass_delete,
        )
        if found.held:
            state.end_run(run.id, "partial", ended.report.counts, found.held[0].cause)
        else:
            switch(layout)
            record_end(state, ended)
    return UpgradeReport(
        layout.home,
        UpgradeStatus.HELD if found.held else UpgradeStatus.UPGRADED,
        old.version,
        old.difference,
        old.documents,
        taken,
        is_continued=is_continued,
        index=ended.report,
        missing=found.missing,
        held=found.held,
    )


def _made(it: _Upgrade, run: RunRecord, roots: Sequence[RootRun], outcomes: Outcomes) -> tuple[EndedRun, TakenVectors]:
    """Fill the new knowledge.db, which nobody else knows yet; closed and checked at the end."""
    layout, settings = it.layout.upgrading, it.settings
    base_id = it.state.base_id()
    # every file is tried, also one that failed before; what the new index lacks is compared with the old one at the end
    request = IndexRequest(rehash=True, allow_mass_delete=True, worker_processes=it.request.worker_processes)
    files.clear_spool(layout)
    with closing(open_store_writer(layout, base_id=base_id, substring_index=settings.substring_index)) as writer:
        base = WritableBase(layout, it.state, writer)
        found = found_vectors(it.layout.database, it.old.meta, settings, re_embed=it.request.re_embed)
        taken = take_over(it.layout.database, found, base)
        vectors = vector_plan(base, settings, lambda host, model: it.announce(_notice(it, roots, host, model)))
        for root in roots:
            it.state.add_root(root.scope.record)
        apply_substring_index(writer.connection, layout.database, settings.substring_index)
        documents_before = writer.counts().documents
        ended = carry_out(Running(base, settings, request, run, roots, vectors, outcomes))
    check(layout, ended.report, documents_before)
    return ended, taken


def _notice(it: _Upgrade, roots: Sequence[RootRun], host: str, model: str) -> EmbeddingNotice:
    """Only where no vector was taken: every text of every file goes there."""
    foreseen = forecast(it.settings, IndexRequest(), [root.scope for root in roots], None)
    return EmbeddingNotice(host, model, foreseen.chunks, foreseen.add + foreseen.check, foreseen.text_bytes)


@contextmanager
def _told_as_upgrade(layout: BaseLayout) -> Iterator[None]:
    """Errors of a run, with what they mean for an upgrade."""
    try:
        yield
    except InterruptedRunError:
        words, hint = _left_behind(layout)
        raise InterruptedRunError(
            f"interrupted; {words}" if words else "interrupted at the last step", hint=hint
        ) from None
    except EmbeddingsChangedError as error:
        raise EmbeddingsChangedError(
            error.message, hint="run `knowledge upgrade --re-embed`: it makes every vector anew"
        ) from error
    except KnowledgeError as error:
        if OLD_STANDS not in error.hint:
            error.hint = "; ".join(filter(None, [error.hint, *_left_behind(layout)]))
        raise


def _left_behind(layout: BaseLayout) -> tuple[str, str]:
    """What an upgrade that did not come to its end leaves, "" after the rename that decides; and what is to be done."""
    if files.lstat_or_none(layout.upgrade_staging) is None:
        return "", "the next command finishes the upgrade"
    return OLD_STANDS, "run `knowledge upgrade` again: it goes on"
