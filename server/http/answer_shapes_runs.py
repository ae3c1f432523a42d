"""The top-level fields of every answer about runs, failures, schedules and health, for the OpenAPI document;
docs/reference-json.md and docs/reference-http-runs.md say what they mean. Tests hold them to the answers, field for
field."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from server.http.answer_shapes import ErrorShape, NextCursor, Note, Place, Rows, SourcesShape, Tier, Time
from store.run_port import Change, RunState

RunNumber = Annotated[int, Meta(description="The number of the run.")]
Numbers = dict[str, int]
ExitStatus = Annotated[int | None, Meta(description="Of a command line that had done it; null while it goes on.")]


class HeldShape(Struct, forbid_unknown_fields=True):
    count: int
    first: list[str]
    digest: str | None


class RunShape(Struct, forbid_unknown_fields=True):
    id: RunNumber
    kind: str
    trigger: str
    schedule: str | None
    roots: list[str]
    full: bool
    state: RunState
    cause: str
    message: Note
    hint: str | None
    requested: Literal["pause", "cancel"] | None
    generation: int | None
    queued_at: Time
    started_at: Time
    since_at: Time
    ended_at: Time
    counts: Numbers
    progress: dict[str, int | bool]
    progressed_at: Time
    still_seconds: int
    standstill: dict[str, Any] | None
    files_per_second: float | None
    remaining_seconds: int | None
    awaits_scheduler: bool
    exit_status: ExitStatus


class RunShownShape(RunShape, forbid_unknown_fields=True):
    removals_held: HeldShape | None


class RunEventShape(RunShape, forbid_unknown_fields=True):
    words: Annotated[str, Meta(description="What it is at, in a line for people.")]


class RunsShape(Struct, forbid_unknown_fields=True):
    exit_status: int
    runs: list[RunShape]
    next_cursor: NextCursor


class ChangesShape(Struct, forbid_unknown_fields=True):
    run: RunNumber
    change: Change
    paths: list[str]
    next_cursor: NextCursor


class ChangeLine(Struct, forbid_unknown_fields=True):
    """A line: the first has `run`, the last `whole`, the others `change` and `path`."""

    run: RunNumber | UnsetType = UNSET
    change: Change | UnsetType = UNSET
    path: str | UnsetType = UNSET
    whole: Annotated[bool, Meta(description="true: nothing is missing.")] | UnsetType = UNSET
    returned: int | UnsetType = UNSET
    error: ErrorShape | UnsetType = UNSET


class HeldRemovalsShape(Struct, forbid_unknown_fields=True):
    run: RunNumber
    count: Annotated[int | None, Meta(description="Of the whole list; null behind the first page.")]
    digest: Annotated[str | None, Meta(description="Of the whole list; null behind the first page.")]
    approvable: bool
    because: Annotated[str | None, Meta(description="Why they cannot be approved, in a few words.")]
    removals: Rows
    next_cursor: NextCursor


class FailuresShape(Struct, forbid_unknown_fields=True):
    status: str
    exit_status: int
    open: int
    quarantined: int
    ignored: int
    failures: Rows
    next_cursor: NextCursor


class SchedulesShape(Struct, forbid_unknown_fields=True):
    status: str
    home: Place
    base: Place
    identity: str
    scheduler: str | None
    note: Note
    schedules: Rows


class ChecksShape(Struct, forbid_unknown_fields=True):
    tier: Tier
    status: Literal["pass", "warning", "not_run", "fail"]
    exit_status: int
    checks: Rows


class CoverageShape(SourcesShape, forbid_unknown_fields=True):
    """As `sources`, with `coverage` for each root."""

    at: Annotated[Time, Meta(description="When the folders were looked at.")]


class HealthShape(Struct, forbid_unknown_fields=True):
    at: Time
    index: dict[str, Any] | None
    problem: Annotated[ErrorShape | None, Meta(description="Why the index cannot be looked at.")]
    disk_free_bytes: int | None
    queue: Annotated[dict[str, Any] | None, Meta(description="null: this process has no connection to a queue.")]
    roles: Rows | None
    scheduler: str | None
    writer: str | None
    run: Annotated[int | None, Meta(description="The run that goes on.")]
    queued_runs: int | None
    failures: Numbers | None


class EventShape(Struct, forbid_unknown_fields=True):
    """The data of an event without a name. Of those called `end` it is `run` and `state`, of `problem` an `error`."""

    runs: list[RunEventShape]
    health: HealthShape | None


class RetriedShape(Struct, forbid_unknown_fields=True):
    status: str
    exit_status: ExitStatus
    files: int
    gone: list[str]
    not_tried: list[str]
    run: RunShape | None


class IgnoredShape(Struct, forbid_unknown_fields=True):
    status: str
    exit_status: int
    ignored: bool
    changed: list[str]
