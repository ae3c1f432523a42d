"""`knowledge doctor`: what of a base's surroundings is in order, what is not, and what mends it (S0-52, S1-44).

Looks only: nothing is made, changed or locked. Every check ends as passed, failed or not run; only a failed fatal one
decides the exit status.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from app.consistency_check import Recorded
from app.discovery import Located
from app.doctor_database import check_database
from app.doctor_queue import Probe, check_queue, probe_url
from app.doctor_roots import check_last_run, check_roots
from app.doctor_store import check_files
from domain.checks import CheckResult, failed, has_failed, not_run, passed
from domain.errors import KnowledgeError
from domain.layout import BaseLayout
from domain.settings import EmbeddingsSettings, Settings
from store import files
from store.engine import Engine, describe_engine
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_connection import RECORD_LOST, RECORD_LOST_HINT
from store.state_port import RootRecord

if TYPE_CHECKING:
    from app.doctor_embeddings import EmbeddingsProbe

FATAL_STATUS = 5


class _StateView(Struct, frozen=True):
    """What the other checks take from state.db."""

    results: tuple[CheckResult, ...] = ()
    base_id: str | None = None
    roots: tuple[RootRecord, ...] = ()
    runs: tuple[RunRecord, ...] = ()


def diagnose(
    settings: Settings,
    located: Located | None = None,
    *,
    probe_queue: Probe = probe_url,
    probe_embeddings: "EmbeddingsProbe | None" = None,
    engine: Callable[[], Engine] = describe_engine,
) -> tuple[CheckResult, ...]:
    """Every check, in the order in which one would look for the cause. Raises nothing of ours."""
    layout = BaseLayout(settings.home)
    results = [*_check_engine(engine), *check_files(layout, located.words() if located is not None else "")]
    is_safe = not has_failed(results, fatal_only=True)
    state = _read_state(layout) if is_safe else _StateView()
    results += state.results
    results += check_database(layout, Recorded(state.base_id, state.roots, state.runs), is_safe=is_safe)
    results += check_roots(settings, state.roots)
    if has_failed(state.results):
        results.append(not_run("last_run", "state.db cannot be read"))
    else:
        results.append(check_last_run(state.runs))
    results += check_queue(settings.queue, probe_queue)
    if settings.embeddings is not None:
        results += _check_embeddings(settings.embeddings, layout if is_safe else None, state.base_id, probe_embeddings)
    return tuple(results)


def _check_embeddings(
    settings: EmbeddingsSettings, layout: BaseLayout | None, base_id: str | None, probe: "EmbeddingsProbe | None"
) -> Iterator[CheckResult]:
    """Only where the tier is configured (S1-45): nothing of it is imported before. No layout: nothing to be opened."""
    from app.doctor_embeddings import check_embeddings, probe_model, stored_vectors

    stored = stored_vectors(layout, base_id) if layout is not None else None
    yield from check_embeddings(settings, stored, probe or probe_model)


def exit_status(results: Iterable[CheckResult]) -> int:
    """5 where something fatal has failed, else 0."""
    return FATAL_STATUS if has_failed(results, fatal_only=True) else 0


def _check_engine(engine: Callable[[], Engine]) -> Iterator[CheckResult]:
    upgrade = "install the pysqlite3 package, or a Python with a newer SQLite"
    try:
        found = engine()
    except KnowledgeError as error:
        yield failed("sqlite", error.message, error.hint)
        return
    yield passed("sqlite", f"SQLite {found.version} ({found.module})")
    if found.has_full_text:
        yield passed("full_text_compiled", "FTS5 with its tokenizers")
    else:
        yield failed("full_text_compiled", f"SQLite {found.version} has no FTS5, or lacks a tokenizer", upgrade)
    if found.can_load_extensions:
        yield passed("extensions", "sqlite-vec loads")
    else:
        yield failed(
            "extensions",
            "extensions cannot be loaded; searching by meaning is slower without, nothing else",
            upgrade,
            is_fatal=False,
        )


def _read_state(layout: BaseLayout) -> _StateView:
    """What state.db knows; nothing to say where there is no index yet."""
    try:
        if files.lstat_or_none(layout.state) is None:
            is_lost = files.lstat_or_none(layout.database) is not None
            return _StateView((failed("state", RECORD_LOST, RECORD_LOST_HINT),)) if is_lost else _StateView()
        state = SqliteStateStore(layout.state, read_only=True)
        try:
            base_id = state.base_id()
            seen = passed("state", f"base {base_id}")
            return _StateView((seen,), base_id, tuple(state.roots()), tuple(state.runs()))
        finally:
            state.close()
    except KnowledgeError as error:
        return _StateView((failed("state", error.message, error.hint),))
