"""What a search is asked, and what it answers: frozen values, one for every field that a surface shows."""

from typing import Literal, NamedTuple

from msgspec import Struct, field

from domain.status import DropReason, SearchNote, SearchStatus, Tier
from store.port import StoreIdentity, Visibility
from store.vector_port import VectorMethod

DEFAULT_TOP_K = 5
MAX_TOP_K = 20
LEAST_SIMILARITY = -1.0  # of a cosine: leaves nothing out

MatchedIn = Literal["body", "heading_path", "names"]
Mode = Literal["auto", "lexical", "vector", "hybrid"]
"""What is to rank (R5). `auto`: words and meaning where embeddings are configured, else words."""


class SearchRequest(Struct, frozen=True):
    """A search; raises nothing. `top_k` None is the configured count; any other is brought into 1..20."""

    query: str
    top_k: int | None = None
    configured_top_k: int = DEFAULT_TOP_K
    root: str = ""  # a root's name; "" = all
    path_glob: str = ""  # "" = all; see retrieval.path_filter
    all_chunks: bool = False  # copies of a body are hits of their own
    full: bool = False  # fill `content`
    visibility: Visibility = field(default_factory=Visibility.everything)
    mode: Mode = "auto"
    min_similarity: float = LEAST_SIMILARITY  # cosine; candidates of the vector lane below it are dropped and counted
    depth: int | None = None  # so many hits, whatever the counts above say: for measuring rankings, not for surfaces

    @property
    def effective_top_k(self) -> int:
        if self.depth is not None:
            return self.depth
        wanted = self.configured_top_k if self.top_k is None else self.top_k
        return max(1, min(wanted, MAX_TOP_K))


class DroppedTerm(Struct, frozen=True):
    """A part of the query, as written, that was not searched for."""

    term: str
    reason: DropReason


class DidYouMean(Struct, frozen=True):
    """A term that no chunk holds, and the nearest words, best first. Never applied unasked."""

    term: str
    suggestions: tuple[str, ...]


class Lanes(Struct, frozen=True):
    """A hit's rank in each lane, from 1; None where the lane does not hold it."""

    words: int | None = None
    literal: int | None = None
    substring: int | None = None
    vector: int | None = None


class SearchHit(Struct, frozen=True):
    """One result. Offsets of `matches` are characters into `snippet`, half-open, ascending, apart."""

    rank: int  # from 1
    citation: str
    path: str  # the document's key
    ordinal: int
    title: str
    heading_path: str
    start_line: int
    end_line: int
    snippet: str  # one line
    matches: tuple[tuple[int, int], ...]
    matched_in: tuple[MatchedIn, ...]
    content: str | None  # the whole body, where the request is `full`
    score: float  # of the fusion; a rank that a rule gave may stand above a better score
    lanes: Lanes
    also_in: tuple[str, ...]  # citations of other hits with the same body
    root: str
    document_sha256: str  # hexadecimal, of the file's bytes
    indexed_ns: int
    modified_ns: int
    similarity: float | None = None  # cosine, with a vector lane


class VectorFacts(NamedTuple):
    """What an answer says of the vector tier."""

    method: VectorMethod = "none"  # how the nearest vectors were found
    pending_documents: int = 0  # stored for words, without vectors
    pending_chunks: int = 0
    building: str = ""  # the model of a set that is made beside the one that answers; "" for none
    dropped_below_similarity: int = 0  # candidates of the vector lane


NO_VECTOR_FACTS = VectorFacts()


class SearchAnswer(Struct, frozen=True):
    """The answer to one search. `results` in rank order, at most the effective count."""

    status: SearchStatus
    identity: StoreIdentity
    results: tuple[SearchHit, ...] = ()
    dropped_terms: tuple[DroppedTerm, ...] = ()
    did_you_mean: tuple[DidYouMean, ...] = ()
    notes: tuple[SearchNote, ...] = ()
    tier: Tier = Tier.LEXICAL
    mode: Mode = "lexical"  # what ranked, whatever was asked for; never "auto"
    vectors: VectorFacts = NO_VECTOR_FACTS
