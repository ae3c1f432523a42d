"""Candidates become hits: copies folded, cut to the count, with citation and snippet."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from domain.citations import Citation
from retrieval.answer import MatchedIn, SearchHit, SearchRequest
from retrieval.fusion import LaneRanks, lanes_of
from retrieval.matching import Matcher
from retrieval.snippet import make_snippet
from store.port import ChunkSketch, FoundChunk, SearchSnapshot


class Candidates(NamedTuple):
    """The chunks that may become hits, best first, with what the fusion knows of each."""

    ordered: tuple[ChunkSketch, ...]
    ranks: LaneRanks
    scores: Mapping[int, float]
    similarities: Mapping[int, float] = {}  # cosines, of the chunks in the vector lane


def make_hits(
    snapshot: SearchSnapshot, request: SearchRequest, candidates: Candidates, matcher: Matcher
) -> tuple[SearchHit, ...]:
    """The first of the candidates; chunks with the same body are one, unless all are wanted (R32)."""
    groups = fold_copies(candidates.ordered, all_chunks=request.all_chunks)[: request.effective_top_k]
    ids = [chunk_id for group in groups for chunk_id in group]
    found = {chunk.id: chunk for chunk in snapshot.found_chunks(ids, visibility=request.visibility)}
    hydrated = [[found[chunk_id] for chunk_id in group if chunk_id in found] for group in groups]
    present = [group for group in hydrated if group]
    matcher.learn(snapshot, [text for chunk, *_ in present for text in _searched(chunk)])
    return tuple(_make_hit(rank, group, candidates, matcher, request.full) for rank, group in enumerate(present, 1))


def fold_copies(ordered: Sequence[ChunkSketch], *, all_chunks: bool) -> list[list[int]]:
    """Ids of chunks with the same body, together, at the place of the first; without a body none is a copy."""
    if all_chunks:
        return [[chunk.id] for chunk in ordered]
    groups: dict[object, list[int]] = {}
    for chunk in ordered:
        groups.setdefault(chunk.text_hash if chunk.has_body else chunk.id, []).append(chunk.id)
    return list(groups.values())


def _searched(chunk: FoundChunk) -> tuple[str, str, str]:
    return chunk.body, chunk.heading_path, chunk.names


def _make_hit(
    rank: int, group: Sequence[FoundChunk], candidates: Candidates, matcher: Matcher, full: bool
) -> SearchHit:
    chunk, *copies = group
    in_body, in_heading, in_names = map(matcher.spans, _searched(chunk))
    text, spans = (chunk.body, in_body) if chunk.body else (chunk.heading_path, in_heading)
    snippet, matches = make_snippet(text, spans)
    matched: dict[MatchedIn, bool] = {
        "body": bool(in_body),
        "heading_path": bool(in_heading),
        "names": bool(in_names),
    }
    return SearchHit(
        rank=rank,
        citation=Citation(chunk.key, chunk.ordinal).format(),
        path=chunk.key,
        ordinal=chunk.ordinal,
        title=chunk.title,
        heading_path=chunk.heading_path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        snippet=snippet,
        matches=matches,
        matched_in=tuple(column for column, matched_here in matched.items() if matched_here),
        content=chunk.body if full else None,
        score=candidates.scores[chunk.id],
        lanes=lanes_of(candidates.ranks, chunk.id),
        also_in=tuple(Citation(copy.key, copy.ordinal).format() for copy in copies),
        root=chunk.root,
        document_sha256=chunk.file_hash.hex(),
        indexed_ns=chunk.indexed_ns,
        modified_ns=chunk.mtime_ns,
        similarity=candidates.similarities.get(chunk.id),
    )
