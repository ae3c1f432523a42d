"""What an answer says beside its hits: the state of the index behind it, and where the documents are published."""

from app.present import Json, utc
from app.present_search import IndexState
from app.wiring import ReadableBase
from domain.errors import UsageError
from domain.settings import Settings
from retrieval.answer import SearchAnswer
from store.port import Visibility


def refuse_unknown_root(base: ReadableBase, root: str) -> None:
    """Raises UsageError naming the roots there are; "" is all of them."""
    if not root:
        return
    names = [record.name for record in base.state.roots()]
    if root not in names:
        raise UsageError(f"there is no root {root!r}", hint=f"there are: {', '.join(names) or 'none'}")


def urls_of(settings: Settings, base: ReadableBase, found: SearchAnswer) -> dict[str, str]:
    """Citation -> URL, for hits of roots with a link template."""
    if not any(root.link for root in settings.roots):
        return {}
    from app.links import link_templates, url_of

    templates = link_templates(settings.roots, base.state.roots())
    return {
        hit.citation: url_of(*templates[hit.root], hit.path, hit.heading_path, hit.start_line)
        for hit in found.results
        if hit.root in templates
    }


def index_state(base: ReadableBase) -> IndexState:
    with base.store.snapshot() as snapshot:
        documents = snapshot.counts(visibility=Visibility.everything()).documents
    return IndexState(
        home=str(base.layout.home),
        documents=documents,
        failed=sum(one.files for one in base.state.failure_counts() if one.standing != "ignored"),
        run_in_progress=_run_in_progress(base),
    )


def _run_in_progress(base: ReadableBase) -> Json | None:
    latest = next(iter(base.state.runs(limit=1)), None)
    if latest is None or latest.ended_ns is not None:
        return None
    from store.lock import is_held

    if not is_held(base.layout.lock):
        return None
    return {"id": latest.id, "kind": latest.kind, "started_at": utc(latest.started_ns)}
