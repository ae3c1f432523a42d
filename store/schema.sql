-- knowledge.db, format 2. Everything here is derived from the files: a change of any object is a new format
-- version (store.format_gate), never a migration. Statements are separated by a line that holds only `;`.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID
;
-- One row a document. Times are nanoseconds since the epoch, sizes bytes; inode and device are folded into
-- signed 64 bits. (generation, observed_ns) is the fence of a write (R25).
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    item_id TEXT,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    device INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL,
    observed_ns INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    created_generation INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL CHECK (chunk_count >= 1),
    file_hash BLOB NOT NULL CHECK (length(file_hash) = 32),
    content_hash BLOB NOT NULL CHECK (length(content_hash) = 32),
    vector_state TEXT NOT NULL DEFAULT 'none' CHECK (vector_state IN ('none', 'pending', 'ready')),
    title TEXT NOT NULL,
    warnings TEXT NOT NULL,
    indexed_ns INTEGER NOT NULL,
    tail TEXT NOT NULL
) STRICT
;
-- Lead and body of a document's chunks in order, then its tail, are its text character for character (R13). The
-- long columns stand last: what is read or tested without them need not follow their overflow pages.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    document INTEGER NOT NULL REFERENCES documents (id),
    ordinal INTEGER NOT NULL,
    in_tri INTEGER NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    text_hash BLOB NOT NULL,
    names TEXT NOT NULL,
    heading_path TEXT NOT NULL,
    lead TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT
;
CREATE UNIQUE INDEX chunks_by_document ON chunks (document, ordinal)
;
CREATE VIEW chunks_tri_source AS
    SELECT id, body, heading_path, names FROM chunks WHERE in_tri = 1
;
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    body, heading_path, names,
    content='chunks', content_rowid='id', tokenize='porter unicode61'
)
;
CREATE VIRTUAL TABLE chunks_fts_exact USING fts5(
    body, heading_path, names,
    content='chunks', content_rowid='id', tokenize='unicode61'
)
;
CREATE VIRTUAL TABLE chunks_fts_tri USING fts5(
    body, heading_path, names,
    content='chunks_tri_source', content_rowid='id', tokenize='trigram'
)
;
-- Names of the real words (exact) and of the stems; one row a term, with its number of chunks.
CREATE VIRTUAL TABLE chunks_vocabulary USING fts5vocab('chunks_fts_exact', 'row')
;
CREATE VIRTUAL TABLE chunks_stems USING fts5vocab('chunks_fts', 'row')
;
-- A deleted key's fence, kept until older runs are over.
CREATE TABLE tombstones (
    key TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    observed_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID
;
-- Files that are not indexed, with the reason and what stat said: the next run need not read them again (R33).
CREATE TABLE skipped_files (
    key TEXT PRIMARY KEY,
    root TEXT NOT NULL,
    reason TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    device INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL,
    generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID
