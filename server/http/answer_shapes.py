"""The top-level fields of every answer to a read, for the OpenAPI document; docs/reference-json.md says what they mean.

Only described here: answers are made in app.present*. Tests hold the two together, field for field.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from domain.status import MatchStatus, NoMatchCause, SearchStatus, Standing
from retrieval.answer import Mode
from retrieval.vocabulary import Field, Sort

Tier = Annotated[str, Meta(description="The line that says what ranks answers.")]
Note = Annotated[str | None, Meta(description="What else is to be said, in words.")]
Time = Annotated[str | None, Meta(description="ISO 8601 in UTC.")]
Place = Annotated[str | None, Meta(description="A path of the server's machine; null for those who may only read.")]
NextCursor = Annotated[str | None, Meta(description="What to give as `cursor` for what follows; null at the end.")]
Rows = list[dict[str, Any]]


class ErrorShape(Struct, forbid_unknown_fields=True):
    code: str
    message: str
    hint: str


class SearchShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: SearchStatus
    mode: Mode
    note: Note
    dropped_terms: Rows
    did_you_mean: Rows
    index: dict[str, Any] | None
    vector_search: str
    dropped_below_similarity: int
    results: Rows
    error: ErrorShape | UnsetType = UNSET


class MatchShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: MatchStatus
    compiled: str | None
    matched: Annotated[int | None, Meta(description="Documents in all, whatever the limit.")]
    indexed_documents: int | None
    note: Note
    no_match_cause: NoMatchCause | None
    index: dict[str, Any] | None
    terms: Rows
    returned: int | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET
    documents: Rows | UnsetType = UNSET
    next_cursor: NextCursor | UnsetType = UNSET
    error: ErrorShape | UnsetType = UNSET


class MatchLine(Struct, forbid_unknown_fields=True):
    """A line: the first has the fields of `match` without its documents, the last `whole`, the others a document."""

    tier: Tier | UnsetType = UNSET
    status: MatchStatus | UnsetType = UNSET
    compiled: str | UnsetType | None = UNSET
    matched: int | UnsetType | None = UNSET
    indexed_documents: int | UnsetType | None = UNSET
    note: Note | UnsetType = UNSET
    no_match_cause: NoMatchCause | UnsetType | None = UNSET
    index: dict[str, Any] | UnsetType | None = UNSET
    terms: Rows | UnsetType = UNSET
    path: str | UnsetType = UNSET
    citation: str | UnsetType = UNSET
    ordinal: int | UnsetType = UNSET
    title: str | UnsetType = UNSET
    body_matches: int | UnsetType = UNSET
    heading_matches: int | UnsetType = UNSET
    total_chunks: int | UnsetType = UNSET
    whole: Annotated[bool, Meta(description="true: nothing is missing.")] | UnsetType = UNSET
    returned: int | UnsetType = UNSET
    error: ErrorShape | UnsetType = UNSET


class WordsShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: SearchStatus
    pattern: str | None
    field: Field | None
    matched: int | None
    note: Note
    sort: Sort | UnsetType = UNSET
    words: Rows | UnsetType = UNSET
    error: ErrorShape | UnsetType = UNSET


class DocumentsShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: Standing
    note: Note
    documents: Rows
    next_cursor: NextCursor


class DocumentShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: str
    path: str
    root: str
    title: str
    size_bytes: int
    chunk_count: int
    metadata: dict[str, Any]
    warnings: list[str]
    document_sha256: str
    indexed_at: Time
    modified_at: Time
    first_line: int
    is_part: bool
    content: str


class ChunkShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: str
    citation: str
    path: str
    root: str
    title: str
    size_bytes: int
    chunk_count: int
    metadata: dict[str, Any]
    warnings: list[str]
    document_sha256: str
    indexed_at: Time
    modified_at: Time
    chunks: Rows


class SourcesShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: Standing
    home: Place
    documents: int
    roots: Rows


class StatsShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: Standing
    home: Place
    documents: int
    chunks: int
    skipped: int
    failed: int
    vectors: int
    vectors_linked: int
    vectors_from_parts: int
    vectors_unused: int
    vector_bytes: int
    vector_search: str
    pending_vectors: int
    embedding_model: str | None
    embedding_served_model: str | None
    embedding_dimension: int | None
    embedding_normalised: bool | None
    vectors_building: bool
    database_bytes: int
    wal_bytes: int
    state_bytes: int
    format_version: int
    commit_seq: int
    store_uuid: str
    substring_index: str
    complete_at: Time
    modified_at: Time


class OpenApiShape(Struct, forbid_unknown_fields=True):
    openapi: str
    info: dict[str, Any]
    servers: Rows
    paths: dict[str, Any]
    components: dict[str, Any]
