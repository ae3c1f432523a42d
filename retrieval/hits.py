"""Candidates become hits: copies folded, cut to the count, with citation and snippet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.citations import Citation
from retrieval.answer import MatchedIn, SearchHit, SearchRequest
from retrieval.fusion import LaneRanks, lanes_of
from retrieval.matching import Matcher
from retrieval.snippet import make_snippet
from store.port import FoundChunk, SearchSnapshot


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunks that may become hits, best first, with what the fusion knows of each."""

    ordered: tuple[FoundChunk, ...]
    ranks: LaneRanks
    scores: Mapping[int, float]


def make_hits(
    snapshot: SearchSnapshot, request: SearchRequest, candidates: Candidates, matcher: Matcher
) -> tuple[SearchHit, ...]:
    """The first of the candidates; chunks with the same body are one, unless all are wanted (R32)."""
    groups = [[chunk] for chunk in candidates.ordered]
    if not request.all_chunks:
        groups = fold_copies(candidates.ordered)
    groups = groups[: request.effective_top_k]
    matcher.learn(snapshot, [text for chunk, *_ in groups for text in _searched(chunk)])
    return tuple(_make_hit(rank, group, candidates, matcher, request.full) for rank, group in enumerate(groups, 1))


def _searched(chunk: FoundChunk) -> tuple[str, str, str]:
    return chunk.body, chunk.heading_path, chunk.names


def fold_copies(ordered: Sequence[FoundChunk]) -> list[list[FoundChunk]]:
    """Chunks with the same body, together, at the place of the first. Chunks without a body are no copies."""
    groups: dict[object, list[FoundChunk]] = {}
    for chunk in ordered:
        groups.setdefault(chunk.text_hash if chunk.body else chunk.id, []).append(chunk)
    return list(groups.values())


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
    )
