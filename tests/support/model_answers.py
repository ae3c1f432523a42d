"""What an index holds and answers, held against an oracle of it: documents, who has a word, citations, vectors.

Each check says in words what is wrong; [] where nothing is.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from app.enumerating import enumerate_base
from app.searching import answer, query_meaning
from app.showing import KnownPlaces, ShownChunk, ShowRequest, show
from app.wiring import ReadableBase, readable_base
from domain.citations import Citation
from domain.layout import BaseLayout
from domain.settings import Settings
from domain.status import MatchStatus
from retrieval.answer import MAX_TOP_K, SearchHit, SearchRequest
from retrieval.match_answer import MatchRequest
from retrieval.search import search
from store.connection import open_reader
from tests.support.audit import audit
from tests.support.drifts import open_plain
from tests.support.embedding_server import is_vector_of, vector_array_of
from tests.support.model_oracle import ROOT_NAME, Oracle, Stored
from tests.support.model_texts import STEM_OF, all_words
from tests.support.vector_runs import sent_text_of

NOWHERE = KnownPlaces((), (), Path("/"), "")
_CHUNKS = (
    "SELECT key, ordinal, lead, body, tail, heading_path, names, start_line, end_line, in_tri, title, chunk_count,"
    " warnings, hex(file_hash), hex(content_hash), hex(text_hash), vector_state FROM documents"
    " JOIN chunks ON chunks.document = documents.id ORDER BY key, ordinal"
)
_VECTORS = (
    "SELECT key, ordinal, heading_path, body, lead, embeddings.vector, vector_links.identity FROM documents"
    " JOIN chunks ON chunks.document = documents.id LEFT JOIN vector_links ON vector_links.chunk = chunks.id"
    " LEFT JOIN embeddings ON embeddings.id = vector_links.embedding ORDER BY key, ordinal"
)
_TABLES = ("chunks_fts", "chunks_fts_exact", "chunks_fts_tri")


def database_of(home: Path) -> Path:
    return BaseLayout(home).database


def stored_in(home: Path) -> Stored:
    """By path below the root: the text put together from its chunks. {} where nothing is stored yet."""
    found: dict[str, list[str]] = {}
    for key, _, lead, body, tail, *_ in _rows(home, _CHUNKS):
        parts = found.setdefault(key.removeprefix(f"{ROOT_NAME}/"), [""])
        parts[-1:] = [lead, body, tail]  # the tail of a document stands behind its last chunk alone
    return {path: "".join(parts).encode() for path, parts in found.items()}


def check_documents(home: Path, oracle: Oracle) -> list[str]:
    """Every document that must be there, byte for byte, and no other."""
    found, due = stored_in(home), oracle.stored
    problems = [f"missing: {path}" for path in sorted(due.keys() - found.keys())]
    problems += [f"a ghost: {path}" for path in sorted(found.keys() - due.keys())]
    return problems + [
        f"another text: {path}" for path in sorted(due.keys() & found.keys()) if due[path] != found[path]
    ]


def check_words(settings: Settings, oracle: Oracle, words: Iterable[str]) -> list[str]:
    """`match` gives the complete set for each word, `search` no document that has it not, each citation resolves."""
    with readable_base(settings) as base:
        return [problem for word in words for problem in (*_match(base, oracle, word), *_search(base, oracle, word))]


def _match(base: ReadableBase, oracle: Oracle, word: str) -> list[str]:
    found = enumerate_base(base, MatchRequest(word, limit=None))
    due = oracle.match(STEM_OF.get(word, word))
    keys = {document.path for document in found.documents}
    problems = [] if keys == due else [f"match {word}: {sorted(keys ^ due)[:4]} differ"]
    if found.status is not (MatchStatus.OK if oracle.stored else MatchStatus.CORPUS_EMPTY):
        problems.append(f"match {word}: says {found.status}")
    return problems + [
        f"match {word}: {document.citation} does not hold it"
        for document in found.documents
        if STEM_OF.get(word, word) not in all_words(_cited(base, document.citation).encode(), "x.txt")
    ]


def _search(base: ReadableBase, oracle: Oracle, word: str) -> list[str]:
    stem = STEM_OF.get(word, word)
    due = oracle.search(stem)
    with base.store.snapshot() as snapshot:
        hits = search(snapshot, SearchRequest(word, top_k=MAX_TOP_K, mode="lexical", full=True)).results
    keys = {Citation.parse(citation).key for hit in hits for citation in (hit.citation, *hit.also_in)}
    problems = [f"search {word}: {sorted(keys - due)[:4]} hold it not"] if keys - due else []
    if len(hits) < MAX_TOP_K and due - keys:
        problems.append(f"search {word}: {sorted(due - keys)[:4]} are missing")
    return problems + [f"search {word}: {hit.citation} does not hold it" for hit in hits if not _holds(base, hit, stem)]


def _holds(base: ReadableBase, hit: SearchHit, stem: str) -> bool:
    """Whether what a hit cites is there and holds the word: in its text, its breadcrumb or its names."""
    names = f"{hit.path} {hit.title}" if "names" in hit.matched_in else ""
    return stem in all_words(f"{_cited(base, hit.citation)} {names}".encode(), "x.txt")


def _cited(base: ReadableBase, citation: str) -> str:
    """Breadcrumb and text of a citation; raises where it does not resolve."""
    shown = show(base.store.reader(), ShowRequest(citation), NOWHERE)
    assert isinstance(shown, ShownChunk)
    return " ".join(f"{chunk.heading_path} {chunk.body}" for chunk in shown.chunks)


def check_store(home: Path, dimension: int = 0) -> list[str]:
    """The independent audit; with vectors, each is a pure function of its chunk's text, and none is missing."""
    problems = audit(database_of(home), vector_of=_vector_of if dimension else None)
    if dimension:
        for key, ordinal, heading_path, body, lead, vector, _ in _rows(home, _VECTORS):
            if vector is not None and not is_vector_of(vector, sent_text_of("", heading_path, body, lead), dimension):
                problems.append(f"{key}#{ordinal}: a vector that is not of its text")
    return problems


def check_covered(home: Path) -> list[str]:
    """Every chunk has a vector."""
    rows = _rows(home, _VECTORS)
    return [f"{key}#{ordinal}: without a vector" for key, ordinal, *_, vector, _ in rows if vector is None]


def check_meaning(settings: Settings, home: Path, places: Sequence[int]) -> list[str]:
    """A search by meaning for the very text of a chunk: the first hit is it, or a chunk with the same text. `places`
    choose among the chunks with a body, in their order; those of a heading alone stand behind all others (R13)."""
    rows = [row for row in _rows(home, _VECTORS) if row[3]]
    problems = []
    with readable_base(settings) as base, query_meaning(settings.embeddings) as meaning:
        for place in places if rows else ():
            key, ordinal, heading_path, body, lead, *_ = rows[place % len(rows)]
            text = sent_text_of("", heading_path, body, lead)
            if text != text.strip() or len(text) > 4000:
                continue  # a query is stripped, and cut
            found = answer(base.store, SearchRequest(text, top_k=1, mode="vector", all_chunks=True), meaning)
            same = {f"{r[0]}#{r[1]}" for r in rows if sent_text_of("", *r[2:5]) == text}
            if not found.results or found.results[0].citation not in same:
                problems.append(f"by meaning: {key}#{ordinal} is not the nearest to its own text")
    return problems


def check_fresh(home: Path, fresh: Path) -> list[str]:
    """Two indexes of one tree are equal: documents, chunks, entries of full text, vectors."""
    problems = []
    for name, statement in (("chunks", _CHUNKS), ("vectors", _VECTORS)):
        if name == "vectors" and not _has_vectors(fresh):
            continue
        one, other = (set(map(_comparable, _rows(place, statement))) for place in (home, fresh))
        problems += [f"{name} differ from a fresh index: {sorted(map(str, one ^ other))[:2]}"] * (one != other)
    for table in _TABLES:
        mine, its = (_entries(place, table) for place in (home, fresh))
        problems += [f"{table} differs from a fresh index: {sorted(map(str, mine ^ its))[:3]}"] * (mine != its)
    return problems


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[:-1] if isinstance(row[-1], int) else row  # the number of an identity is each base's own


def _has_vectors(home: Path) -> bool:
    return bool(_rows(home, "SELECT 1 FROM sqlite_schema WHERE name = 'embeddings'"))


def _entries(home: Path, table: str) -> set[tuple[Any, ...]]:
    """Every entry of a full-text table, by the document and the chunk that it stands for."""
    with closing(open_plain(database_of(home))) as connection:
        connection.execute(f"CREATE VIRTUAL TABLE temp.entries USING fts5vocab('main', '{table}', 'instance')")
        return set(
            connection.execute(
                "SELECT term, key, ordinal, col, offset FROM temp.entries JOIN chunks ON chunks.id = doc"
                " JOIN documents ON documents.id = document"
            ).fetchall()
        )


def _vector_of(text: str, dimension: int) -> bytes:
    return np.asarray(vector_array_of(text, dimension), dtype="<f4").tobytes()


def _rows(home: Path, statement: str) -> list[tuple[Any, ...]]:
    """[] where there is no database yet, or an empty file."""
    database = database_of(home)
    if not database.exists() or database.stat().st_size == 0:
        return []
    with closing(open_reader(database)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'documents'").fetchall():
            return []
        return connection.execute(statement).fetchall()
