"""What is measured while pages are planned, read, embedded and written. The names are part of the interface."""

from domain.files import Outcome
from domain.telemetry import Measure

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_NUMBERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0)
_BYTES = tuple(float(1 << shift) for shift in range(12, 27, 2))

# embedding
EMBEDDING_REQUESTS = Measure(
    "knowledge_embedding_requests_total",
    "counter",
    "Requests to the embeddings server, by how they ended: answered (`ok`), not reached (`connection`, `timeout`),"
    " told to come later (`busy`), refused or answered wrongly (`rejected`), answered by another model (`changed`),"
    " given up by us (`cancelled`).",
    ("outcome",),
    ("ok", "connection", "timeout", "busy", "rejected", "changed", "cancelled"),
)
EMBEDDING_SECONDS = Measure(
    "knowledge_embedding_request_seconds",
    "histogram",
    "How long a request to the embeddings server took, however it ended.",
    buckets=_SECONDS,
)
EMBEDDING_BATCH = Measure(
    "knowledge_embedding_batch_texts", "histogram", "Texts in one request to the embeddings server.", buckets=_NUMBERS
)
EMBEDDING_RETRIES = Measure(
    "knowledge_embedding_retries_total", "counter", "Requests that were sent again because the server was away."
)
EMBEDDING_HALVINGS = Measure(
    "knowledge_embedding_halvings_total",
    "counter",
    "Batches that were cut in two because the server refused them, or is known not to take as much.",
)

# reading
PAGES_CHECKED = Measure("knowledge_pages_checked_total", "counter", "Pages (groups of files) that were read and cut.")
CHECK_SECONDS = Measure(
    "knowledge_page_check_seconds",
    "histogram",
    "How long it took to read and cut the files of a page, without its vectors.",
    buckets=_SECONDS,
)
FILES_CHECKED = Measure(
    "knowledge_files_checked_total",
    "counter",
    "Files that were read, by what came of it: to be stored (`document`), as before (`unchanged`), `skipped`,"
    " `failed`. A page that is read twice counts twice.",
    ("outcome",),
    ("document", "unchanged", "skipped", "failed"),
)
CHUNKS_CUT = Measure("knowledge_chunks_cut_total", "counter", "Chunks that were cut from files.")

# writing
PAGES_WRITTEN = Measure("knowledge_pages_written_total", "counter", "Pages that were committed.")
FILES_WRITTEN = Measure(
    "knowledge_files_written_total",
    "counter",
    "Files of committed pages, by how they ended.",
    ("outcome",),
    tuple(outcome.value for outcome in Outcome if outcome not in (Outcome.MOVED, Outcome.REMOVED)),
)
CHUNKS_WRITTEN = Measure("knowledge_chunks_written_total", "counter", "Chunks of committed pages.")
COMMITS = Measure("knowledge_write_commits_total", "counter", "Groups of pages that were committed.")
GROUP_PAGES = Measure("knowledge_write_group_pages", "histogram", "Pages in a committed group.", buckets=_NUMBERS)
GROUP_DOCUMENTS = Measure(
    "knowledge_write_group_documents", "histogram", "Documents in a committed group.", buckets=_NUMBERS
)
GROUP_BYTES = Measure("knowledge_write_group_bytes", "histogram", "Bytes of text in a committed group.", buckets=_BYTES)
LOCK_HOLD_SECONDS = Measure(
    "knowledge_write_lock_hold_seconds",
    "histogram",
    "How long a group held the write lock of the index.",
    buckets=_SECONDS,
)
WRITE_WAIT_SECONDS = Measure(
    "knowledge_write_wait_seconds",
    "histogram",
    "How long a page waited for the writer to begin with its group, once it had been handed over.",
    buckets=_LONG_SECONDS,
)

# dispatching
PAGES_DONE = Measure("knowledge_pages_done_total", "counter", "Pages of runs that came back as committed.")
PAGE_SECONDS = Measure(
    "knowledge_page_latency_seconds",
    "histogram",
    "From the moment a page is queued until it is committed: waiting, reading, vectors, writing.",
    buckets=_LONG_SECONDS,
)
