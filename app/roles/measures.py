"""What each role tells of itself and, in the role that others ask, of the whole service.

`ROLE_MEASURES` says which role exports which measure; docs/reference-metrics.md is a table of the same.
"""

from typing import get_args

from domain import measures as work
from domain.files import Reason
from domain.telemetry import Measure
from store.run_port import RUN_ENDINGS, RunState

ROLE_NAMES = ("scheduler", "worker", "writer", "serve")
RUN_STATES: tuple[str, ...] = get_args(RunState)
ENDINGS = tuple(state for state in RUN_STATES if state in RUN_ENDINGS)
FAILURE_REASONS = tuple(reason.value for reason in Reason)
SAMPLES = ("queue", "state", "index")

# of any role
ROLE_ACTIVE = Measure("knowledge_role_active", "gauge", "Whether the role does its work: 1 or 0.", ("role",))
ROLE_STANDBY = Measure(
    "knowledge_role_standby", "gauge", "Whether the role stands by while another one does the work.", ("role",)
)
ROLE_WAITING = Measure(
    "knowledge_role_waiting",
    "gauge",
    "Whether the role waits for something that its work needs; its page /readyz says for what.",
    ("role",),
)

# scheduler
RUNS_ENDED = Measure(
    "knowledge_runs_ended_total", "counter", "Runs that this scheduler has ended, by their state.", ("state",), ENDINGS
)
WORKERS_DIED = Measure(
    "knowledge_workers_died_total", "counter", "Workers that were gone without having left; their pages run again."
)

# writer
CALLS_ANSWERED = Measure(
    "knowledge_calls_answered_total", "counter", "Commands of other processes that the writer has carried out."
)

# of the whole service: the queue
QUEUE_UP = Measure("knowledge_queue_up", "gauge", "Whether the queue answers: 1 or 0.")
QUEUE_JOBS = Measure(
    "knowledge_queue_jobs", "gauge", "Pages in the queue, waiting or in hand: to be read, to be written.", ("stage",)
)
QUEUE_OLDEST = Measure(
    "knowledge_queue_oldest_seconds",
    "gauge",
    "How long the oldest of them has been there; 0 = there is none.",
    ("stage",),
)
QUEUE_PARKED = Measure(
    "knowledge_queue_parked",
    "gauge",
    "Jobs put aside because nobody could read them, or their run was over; capped at 100.",
)
QUEUE_MEMORY = Measure("knowledge_queue_memory_bytes", "gauge", "Memory that the queue's server uses.")
QUEUE_MEMORY_LIMIT = Measure(
    "knowledge_queue_memory_limit_bytes", "gauge", "Memory from which on it refuses work; 0 = it never does."
)
ROLES = Measure(
    "knowledge_roles",
    "gauge",
    "Processes of the service that live, by role and whether they are `active` or on `standby`.",
    ("role", "standing"),
)

# of the whole service: runs, failures, schedules
RUN_STATE = Measure(
    "knowledge_run_state", "gauge", "1 for the state of the run that goes on; all 0 = none does.", ("state",)
)
RUN_SINCE = Measure(
    "knowledge_run_state_since_timestamp_seconds", "gauge", "Since when that run is in its state; none: no value."
)
RUN_PROGRESSED = Measure(
    "knowledge_run_progressed_timestamp_seconds", "gauge", "When a number of that run last changed; none: no value."
)
RUNS_QUEUED = Measure("knowledge_runs_queued", "gauge", "Runs that wait for their turn.")
LAST_RUN = Measure(
    "knowledge_last_run", "gauge", "1 for the state in which the newest run that is over has ended.", ("state",)
)
FAILURES = Measure(
    "knowledge_failures",
    "gauge",
    "Files that could not be read, embedded or stored, by reason and whether they are tried again (`open`), are not"
    " (`quarantined`), or are to be left (`ignored`).",
    ("reason", "standing"),
)
REMOVALS_HELD = Measure(
    "knowledge_removals_held", "gauge", "Documents whose removal waits for somebody to approve it.", ("root",)
)
SCHEDULE_SUCCESS = Measure(
    "knowledge_schedule_last_success_timestamp_seconds",
    "gauge",
    "When a run of the schedule last ended well; 0 = none has yet.",
    ("schedule",),
)
SCHEDULE_NEXT = Measure(
    "knowledge_schedule_next_timestamp_seconds", "gauge", "The schedule's next tick.", ("schedule",)
)
SCHEDULE_SKIPPED = Measure(
    "knowledge_schedule_skipped_ticks", "gauge", "Ticks of the schedule that found another run going on.", ("schedule",)
)
SCHEDULE_OVERDUE = Measure(
    "knowledge_schedule_overdue",
    "gauge",
    "Whether two ticks of the schedule, and an hour, have passed without a run that ended well: 1 or 0.",
    ("schedule",),
)

# of the whole service: the index and its disk
INDEX_BYTES = Measure("knowledge_index_bytes", "gauge", "Size of the index's database file, without its log.")
INDEX_FREE = Measure("knowledge_index_free_bytes", "gauge", "Of it, pages that hold nothing and are used again.")
LOG_BYTES = Measure("knowledge_log_bytes", "gauge", "Size of the write-ahead log on disk.")
LOG_WAITING = Measure(
    "knowledge_log_waiting_bytes", "gauge", "Of it, what the database file does not have yet (checkpoint lag)."
)
CHECKPOINT_AGE = Measure(
    "knowledge_checkpoint_age_seconds",
    "gauge",
    "For how long something has waited in the log without any of it being folded in; 0 = nothing waits.",
)
OLDEST_READER = Measure(
    "knowledge_oldest_reader_seconds",
    "gauge",
    "For how long one reader at least has kept the log from being folded in; 0 = none does; no value where the system"
    " does not tell.",
)
SEGMENTS = Measure(
    "knowledge_full_text_segments", "gauge", "Segments of the full-text tables together; a search reads all of them."
)
DOCUMENTS = Measure("knowledge_documents", "gauge", "Documents in the index.")
CHUNKS = Measure("knowledge_chunks", "gauge", "Chunks in the index.")
VECTORS = Measure("knowledge_vectors", "gauge", "Vectors in use or kept, of the identity that answers.")
DEAD_VECTORS = Measure("knowledge_dead_vectors_ratio", "gauge", "Share of them that no chunk uses now; 0 to 1.")
DISK_FREE = Measure("knowledge_disk_free_bytes", "gauge", "Free space on the disk of the index.")
DISK_RESERVE = Measure(
    "knowledge_disk_reserve_bytes", "gauge", "Free space below which writing waits: twice the log and the reserve."
)
SAMPLED = Measure(
    "knowledge_sampled_timestamp_seconds",
    "gauge",
    "When the queue, state.db and the index were last looked at with success.",
    ("of",),
)

_EVERY = (ROLE_ACTIVE, ROLE_STANDBY, ROLE_WAITING)
ROLE_MEASURES: dict[str, tuple[Measure, ...]] = {
    "scheduler": (*_EVERY, work.PAGES_DONE, work.PAGE_SECONDS, RUNS_ENDED, WORKERS_DIED),
    "worker": (
        *_EVERY,
        work.PAGES_CHECKED,
        work.CHECK_SECONDS,
        work.FILES_CHECKED,
        work.CHUNKS_CUT,
        work.EMBEDDING_REQUESTS,
        work.EMBEDDING_SECONDS,
        work.EMBEDDING_BATCH,
        work.EMBEDDING_RETRIES,
        work.EMBEDDING_HALVINGS,
    ),
    "writer": (
        *_EVERY,
        work.PAGES_WRITTEN,
        work.FILES_WRITTEN,
        work.CHUNKS_WRITTEN,
        work.COMMITS,
        work.GROUP_PAGES,
        work.GROUP_DOCUMENTS,
        work.GROUP_BYTES,
        work.LOCK_HOLD_SECONDS,
        work.WRITE_WAIT_SECONDS,
        CALLS_ANSWERED,
    ),
    "serve": (
        *_EVERY,
        QUEUE_UP,
        QUEUE_JOBS,
        QUEUE_OLDEST,
        QUEUE_PARKED,
        QUEUE_MEMORY,
        QUEUE_MEMORY_LIMIT,
        ROLES,
        RUN_STATE,
        RUN_SINCE,
        RUN_PROGRESSED,
        RUNS_QUEUED,
        LAST_RUN,
        FAILURES,
        REMOVALS_HELD,
        SCHEDULE_SUCCESS,
        SCHEDULE_NEXT,
        SCHEDULE_SKIPPED,
        SCHEDULE_OVERDUE,
        INDEX_BYTES,
        INDEX_FREE,
        LOG_BYTES,
        LOG_WAITING,
        CHECKPOINT_AGE,
        OLDEST_READER,
        SEGMENTS,
        DOCUMENTS,
        CHUNKS,
        VECTORS,
        DEAD_VECTORS,
        DISK_FREE,
        DISK_RESERVE,
        SAMPLED,
    ),
}
