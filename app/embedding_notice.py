"""What a run says before the first text of a base goes to an embeddings server: where it goes, and how much."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from app.dry_run import TEXT_BYTES_PER_CHUNK, dry_run
from app.index_request import EmbeddingNotice, IndexRequest
from app.roots import RootScope
from app.wiring import RunBase
from domain.settings import Settings
from retrieval.query_vector import WantedVectors
from store.port import Visibility
from store.sqlite import SqliteStore


def embedding_notice(
    base: RunBase, settings: Settings, request: IndexRequest, scopes: Sequence[RootScope], host: str, model: str
) -> EmbeddingNotice:
    """Estimated from the plan of the run. A new set of vectors is one of all documents, also of those that the run
    does not look at: their stored texts are sent."""
    forecast = dry_run(settings, request)
    files, texts, text_bytes = forecast.add + forecast.check, forecast.chunks, forecast.text_bytes
    if _is_new_set(base, settings, request):
        documents, chunks = _stored_elsewhere(base, scopes)
        files, texts, text_bytes = files + documents, texts + chunks, text_bytes + chunks * TEXT_BYTES_PER_CHUNK
    return EmbeddingNotice(host, model, texts, files, text_bytes)


def _is_new_set(base: RunBase, settings: Settings, request: IndexRequest) -> bool:
    active, wanted = base.writer.vector_status().active, settings.embeddings
    if active is None or wanted is None or request.re_embed:
        return True
    return bool(WantedVectors.of(wanted).difference(active))


def _stored_elsewhere(base: RunBase, scopes: Sequence[RootScope]) -> tuple[int, int]:
    """Documents and chunks that are stored of what the run does not look at."""
    everything = Visibility.everything()
    with closing(SqliteStore(base.layout.database, base_id=None)) as store:
        snapshot = store.reader()
        total = snapshot.counts(visibility=everything)
        looked_at = [snapshot.counts(prefix, visibility=everything) for prefix in _prefixes(scopes)]
    documents = total.documents - sum(counts.documents for counts in looked_at)
    chunks = total.chunks - sum(counts.chunks for counts in looked_at)
    return max(0, documents), max(0, chunks)


def _prefixes(scopes: Sequence[RootScope]) -> Iterator[str]:
    for scope in scopes:
        if scope.files:
            yield from (scope.prefix + relative for relative in scope.files)
        else:
            yield scope.prefix + scope.start
