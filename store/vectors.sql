-- The vector tables of knowledge.db, format 2: made whole in the transaction that pins the first identity, and not
-- before (S0-04). As in schema.sql, a change of any object is a new format version.

CREATE TABLE vector_identities (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('building', 'active', 'retired')),
    model TEXT NOT NULL,
    served_model TEXT NOT NULL,
    dimension INTEGER NOT NULL CHECK (dimension >= 1),
    normalised INTEGER NOT NULL CHECK (normalised IN (0, 1)),
    query_prefix TEXT NOT NULL,
    document_prefix TEXT NOT NULL,
    canary BLOB NOT NULL,
    created_ns INTEGER NOT NULL
) STRICT
;
-- One identity answers, one is built beside it; any number wait to be collected.
CREATE UNIQUE INDEX vector_identities_by_state ON vector_identities (state) WHERE state <> 'retired'
;
-- One row a text really sent and identity (R4): little-endian float32, unit length. Ids ascend and are never used
-- again, so that a reader finds what is new behind the last one it has seen.
CREATE TABLE embeddings (
    id INTEGER PRIMARY KEY,
    identity INTEGER NOT NULL REFERENCES vector_identities (id),
    sent_hash BLOB NOT NULL CHECK (length(sent_hash) = 16),
    parts INTEGER NOT NULL CHECK (parts >= 1),
    vector BLOB NOT NULL
) STRICT
;
CREATE UNIQUE INDEX embeddings_by_text ON embeddings (identity, sent_hash)
;
CREATE INDEX embeddings_from_parts ON embeddings (identity) WHERE parts > 1
;
CREATE TABLE vector_links (
    chunk INTEGER NOT NULL REFERENCES chunks (id),
    identity INTEGER NOT NULL,
    embedding INTEGER NOT NULL REFERENCES embeddings (id),
    PRIMARY KEY (chunk, identity)
) STRICT, WITHOUT ROWID
;
CREATE INDEX vector_links_by_embedding ON vector_links (embedding)
;
-- Derived from embeddings (store.vector_blocks): ids as little-endian int64, and for each a row of sign bits. A block
-- may still name an embedding that is gone.
CREATE TABLE vector_blocks (
    id INTEGER PRIMARY KEY,
    identity INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 1),
    embedding_ids BLOB NOT NULL,
    bits BLOB NOT NULL
) STRICT
;
-- What is counted on the path of every search: nothing but the entries of this index is read.
CREATE INDEX documents_pending ON documents (chunk_count) WHERE vector_state = 'pending'
