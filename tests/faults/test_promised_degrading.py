"""Searches over a server of embeddings in every kind of trouble (P16): words answer, and the first line says why."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.present import tier_line
from app.query_embedder import QueryEmbedder
from app.searching import answer
from domain.errors import EmbeddingsChangedError
from domain.settings import EmbeddingsSettings
from domain.status import DegradeCause
from retrieval.answer import SearchAnswer, SearchRequest
from tests.support.embedding_lies import LIES
from tests.support.embedding_server import Behaviour, EmbeddingServer, embedding_server
from tests.support.figures import Figure, NoteFigure
from tests.support.meaning import DIMENSION, IDENTITY, TEXTS, MeaningBase, paths

TIMEOUT_S = 0.5  # what hangs is given up then
LOST, LATE = DegradeCause.EMBEDDINGS, DegradeCause.TIMEOUT
OTHER_WORDS = "please wait: dimension mismatch, canceled, timeout, index_meta"  # nothing is decided by them
STATUSES = (400, 401, 403, 404, 413, 422, 429, 500, 502, 503)
TRICKS = ("redirect", "redirect_malformed", "not_http", "half_body", "endless", "gzip_bomb")
TROUBLES: dict[str, tuple[dict[str, Any], DegradeCause]] = {
    **{f"status {status}": ({"status": status, "error_words": OTHER_WORDS}, LOST) for status in STATUSES},
    **{trick: ({"trick": trick}, LOST) for trick in TRICKS},
    **{trick: ({"trick": trick}, LATE) for trick in ("hang", "drip")},
    **{lie: ({"lie": lie}, LOST) for lie in (*LIES, "disconnect") if lie != "wrong_dimension"},
}


@pytest.fixture
def base(tmp_path: Path) -> MeaningBase:
    """Five documents with their vectors."""
    made = MeaningBase(tmp_path / "home")
    made.put(TEXTS, made.pin())
    return made


@pytest.fixture
def server(base: MeaningBase) -> Iterator[EmbeddingServer]:
    """Of the model that the vectors are of."""

    def values(text: str) -> list[float]:
        numbers: list[float] = np.frombuffer(base.fake.vector_of(text), dtype="<f4").tolist()
        return numbers

    with embedding_server(dimension=DIMENSION, model=IDENTITY.served_model, vector_for=values) as running:
        yield running


def behave(server: EmbeddingServer, **changes: Any) -> None:
    """Honest but for these changes."""
    usual = Behaviour(DIMENSION, IDENTITY.served_model, vector_for=server.behaviour.vector_for)
    for name in ("status", "error_words", "trick", "lie"):
        setattr(server.behaviour, name, changes.get(name, getattr(usual, name)))


@contextmanager
def embedder_of(url: str, timeout_s: float) -> Iterator[QueryEmbedder]:
    made = QueryEmbedder(
        EmbeddingsSettings(
            base_url=url,
            model=IDENTITY.model,
            timeout_s=timeout_s,
            query_prefix=IDENTITY.query_prefix,
            document_prefix=IDENTITY.document_prefix,
        )
    )
    try:
        yield made
    finally:
        made.close()


def asked(base: MeaningBase, query: str, url: str, timeout_s: float = 30.0) -> SearchAnswer:
    with embedder_of(url, timeout_s) as embedder, base.opened() as store:
        return answer(store, SearchRequest(query), embedder.meaning())


def wrong_of(found: SearchAnswer, cause: DegradeCause) -> str:
    """What of a degraded answer is not as it should be; "" where all is."""
    line = tier_line(found.tier)
    if found.tier.cause is not cause:
        return f"cause {found.tier.cause}"
    if not line.startswith("tier: hybrid -> DEGRADED to lexical ("):
        return line
    return "" if set(paths(found)) == {"d/letters.md"} else f"hits {paths(found)}"


def test_whatever_ails_the_model_words_answer_and_the_tier_line_says_why(
    base: MeaningBase, server: EmbeddingServer, note_figure: NoteFigure
) -> None:
    """P16: by the step that failed, never by what its error says."""
    begun_s = time.monotonic()
    wrong: dict[str, str] = {}
    for name, (trouble, cause) in TROUBLES.items():
        behave(server, **trouble)
        wrong[name] = wrong_of(asked(base, "river", server.url, TIMEOUT_S if cause is LATE else 30.0), cause)
    behave(server)
    wrong["no TLS"] = wrong_of(asked(base, "river", server.url.replace("http:", "https:")), LOST)
    wrong["no such host"] = wrong_of(asked(base, "river", "https://no-such-host.invalid/v1"), LOST)
    assert tier_line(asked(base, "river", server.url).tier).startswith("tier: hybrid (FTS5 + vectors, RRF)")
    server.take_down()
    wrong["nobody listens"] = wrong_of(asked(base, "river", server.url), LOST)
    bad = {name: said for name, said in wrong.items() if said}
    what = "kinds of trouble with a model, under a search"
    seconds = time.monotonic() - begun_s
    note_figure(Figure("degrading", ("P16",), what, len(wrong), len(wrong), len(bad), seconds=seconds))
    assert not bad


def test_another_dimension_is_an_error(base: MeaningBase, server: EmbeddingServer) -> None:
    """P16: it would be a comparison of things that cannot be compared."""
    behave(server, lie="wrong_dimension")
    with pytest.raises(EmbeddingsChangedError) as told:
        asked(base, "river", server.url)
    assert str(DIMENSION) in told.value.message
    assert "--reindex" in told.value.hint
