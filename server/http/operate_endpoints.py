"""What an operator asks of runs and failures over HTTP; the service's scheduler carries it out."""

import hashlib
import time
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from app.approving import require_approvable
from app.beside_service import require_scheduler
from app.failures import ignore, of_keys, of_reason, on_record, retry, to_retry
from app.present import Json
from app.present_failures import ignore_json, retry_json
from app.present_runs import run_json
from app.run_request import RunRequest
from app.runs import ShownRun, again, ask_run, known_run, require_ended, shown_run
from app.submitting import index_request_of, submit
from domain.errors import UsageError
from domain.layout import BaseLayout
from server.http.answer_shapes_runs import IgnoredShape, RetriedShape, RunShape
from server.http.answers import json_answer
from server.http.parameters import body_of, refuse_query
from server.http.parts import Endpoint, HttpParts, caller_of
from server.http.reading import opened
from server.http.recorded import recorded, run_of
from store.run_port import RunKind, RunRecord, Wish

MAX_KEY_CHARS = 200
MAX_PATHS = 1000
_Paths = Annotated[tuple[str, ...], Meta(max_length=MAX_PATHS, description="Paths of the index: documents or folders.")]


class RunBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Which run is to begin."""

    kind: Annotated[RunKind, Meta(description="What is to be done.")] = "index"
    roots: Annotated[tuple[str, ...], Meta(max_length=MAX_PATHS, description="Names of roots; none: all of them.")] = ()
    rehash: Annotated[bool, Meta(description="Read every file, also those that seem unchanged.")] = False
    re_embed: Annotated[bool, Meta(description="With the kind reindex: make every vector anew.")] = False
    deep: Annotated[bool, Meta(description="With the kind verify: read every text, too.")] = False


class ApproveBody(Struct, frozen=True, forbid_unknown_fields=True):
    digest: Annotated[
        str, Meta(pattern="^[0-9a-f]{12,64}$", description="Of the list as it was looked at; its first 12 digits do.")
    ]


class RetryBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One of the three."""

    paths: _Paths = ()
    all: Annotated[bool, Meta(description="All of them, but for those that are ignored.")] = False
    reason: Annotated[str | None, Meta(description="Files that failed for this reason.")] = None


class IgnoreBody(Struct, frozen=True, forbid_unknown_fields=True):
    paths: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=MAX_PATHS, description="Paths of the index: documents or folders."),
    ]
    undo: Annotated[bool, Meta(description="Ignore them no longer.")] = False


async def start_run(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    asked = request_of(await body_of(request, RunBody))
    key = _key_of(request)
    what = hashlib.sha256(msgspec.json.encode(asked.to_json())).hexdigest()
    return _run_answer(parts, await parts.in_thread(_start, parts, request, asked, key, what))


def request_of(body: RunBody) -> RunRequest:
    """Raises UsageError for what does not go together."""
    if body.kind in ("verify", "compact") and (body.roots or body.rehash):
        raise UsageError(
            f"roots and rehash are not for the kind {body.kind}", hint="leave them out: it is of the whole index"
        )
    if body.re_embed and body.kind != "reindex":
        raise UsageError("re_embed goes with the kind reindex", hint="or leave it out: what is stored is used again")
    if body.deep and body.kind != "verify":
        raise UsageError("deep goes with the kind verify", hint="leave it out")
    return RunRequest(
        kind=body.kind,
        roots=body.roots,
        reindex=body.kind == "reindex",
        re_embed=body.re_embed,
        rehash=body.rehash,
        deep=body.deep,
    )


def _start(parts: HttpParts, request: Request, asked: RunRequest, key: str, what: str) -> ShownRun:
    def begin() -> int:
        with recorded(parts, request) as state:
            index_request_of(asked, state.roots())
        return _submitted(parts, asked).id

    return shown_run(parts.settings, parts.asked.once(key, what, begin))


def _key_of(request: Request) -> str:
    """Idempotency-Key, of this caller alone; "" without one. Raises UsageError for an unfit one."""
    keys = request.headers.getlist("idempotency-key")
    if not keys:
        return ""
    if len(keys) != 1 or not (keys[0].isascii() and keys[0].isprintable() and 0 < len(keys[0]) <= MAX_KEY_CHARS):
        raise UsageError(
            f"Idempotency-Key is one text of 1 to {MAX_KEY_CHARS} printable ASCII characters", hint="a UUID does well"
        )
    caller = caller_of(request)
    return f"{caller.kind}\0{caller.name}\0{keys[0]}"


def _submitted(parts: HttpParts, asked: RunRequest) -> RunRecord:
    require_scheduler(BaseLayout(parts.settings.home))
    return submit(parts.settings, asked, "api")


def _run_answer(parts: HttpParts, shown: ShownRun) -> Response:
    """202 for as long as it goes on, with the place where it is looked at."""
    answer = json_answer(run_json(shown, time.time_ns()), 202 if shown.run.ended_ns is None else 200)
    answer.headers["location"] = f"{parts.base_path}/v1/runs/{shown.run.id}"
    return answer


async def pause_run(parts: HttpParts, request: Request) -> Response:
    return await _ask(parts, request, "pause")


async def resume_run(parts: HttpParts, request: Request) -> Response:
    return await _ask(parts, request, "")


async def cancel_run(parts: HttpParts, request: Request) -> Response:
    return await _ask(parts, request, "cancel")


async def _ask(parts: HttpParts, request: Request, wish: Wish) -> Response:
    """What is asked is on record then; nobody waits here until it is done."""
    refuse_query(request)
    return _run_answer(parts, await parts.in_thread(_asked, parts, request, run_of(request), wish))


def _asked(parts: HttpParts, request: Request, run_id: int, wish: Wish) -> ShownRun:
    with recorded(parts, request) as state:
        known_run(state, run_id)
    ask_run(parts.settings, run_id, wish, within_s=0)
    return shown_run(parts.settings, run_id)


async def retry_run(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return _run_answer(parts, await parts.in_thread(_done_again, parts, request, run_of(request)))


def _done_again(parts: HttpParts, request: Request, run_id: int) -> ShownRun:
    with recorded(parts, request) as state:
        require_ended(BaseLayout(parts.settings.home), state, run_id)
        asked = again(state, run_id)
    return shown_run(parts.settings, _submitted(parts, asked).id)


async def approve_run(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    body = await body_of(request, ApproveBody)
    return _run_answer(parts, await parts.in_thread(_approved, parts, request, run_of(request), body.digest))


def _approved(parts: HttpParts, request: Request, run_id: int, digest: str) -> ShownRun:
    with recorded(parts, request) as state:
        run, held = require_approvable(state, run_id, digest)
    asked = RunRequest(roots=run.roots, approve=run_id, digest=held.digest)
    return shown_run(parts.settings, _submitted(parts, asked).id)


async def retry_failures(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    body = await body_of(request, RetryBody)
    of_reason(body.reason)
    if (bool(body.paths), body.all, body.reason is not None).count(True) != 1:
        raise UsageError("say which files are to be tried again: paths, all, or reason", hint="give one of them")
    value = await parts.in_thread(_retried, parts, request, body)
    return json_answer(value, 202 if value["run"] is not None else 200)


def _retried(parts: HttpParts, request: Request, body: RetryBody) -> Json:
    with opened(parts, request) as base:
        if body.paths:
            rows = of_keys(base.state, body.paths)
        else:
            rows = [row for row in on_record(base.state, body.reason) if row.standing != "ignored"]
        asked = to_retry(base, parts.settings, rows)
    if asked.paths:
        require_scheduler(BaseLayout(parts.settings.home))
    ran = retry(
        parts.settings, asked, lambda paths: _submitted(parts, RunRequest(paths=tuple(str(path) for path in paths)))
    ).ran
    run = None if ran is None else run_json(shown_run(parts.settings, ran.id), time.time_ns())
    return retry_json(asked, run)


async def ignore_failures(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    body = await body_of(request, IgnoreBody)
    return json_answer(await parts.in_thread(_ignored, parts, request, body))


def _ignored(parts: HttpParts, request: Request, body: IgnoreBody) -> Json:
    with opened(parts, request) as base:
        rows = of_keys(base.state, body.paths)
    return ignore_json(ignore(parts.settings, rows, undo=body.undo), undo=body.undo)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "POST", "/v1/runs", start_run, "startRun",
        "Have the service begin a run; with an Idempotency-Key, once.", scope="operate", body=RunBody, returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/runs/{run:int}/pause", pause_run, "pauseRun",
        "Have a run stand still once the files in work are done.", scope="operate", returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/runs/{run:int}/resume", resume_run, "resumeRun",
        "Have a run that stands still go on.", scope="operate", returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/runs/{run:int}/cancel", cancel_run, "cancelRun",
        "End a run; what was written stays.", scope="operate", returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/runs/{run:int}/retry", retry_run, "retryRun",
        "Do a run that has ended once more.", scope="operate", returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/runs/{run:int}/approve", approve_run, "approveRemovals",
        "Let the documents go whose removal a run has held: exactly those.", scope="operate", body=ApproveBody,
        returns=RunShape,
    ),
    Endpoint(
        "POST", "/v1/failures/retry", retry_failures, "retryFailures",
        "Try files that failed again, now; also those that are quarantined.", scope="operate", body=RetryBody,
        returns=RetriedShape,
    ),
    Endpoint(
        "POST", "/v1/failures/ignore", ignore_failures, "ignoreFailures",
        "Leave files that failed alone, or (undo) ignore them no longer.", scope="operate", body=IgnoreBody,
        returns=IgnoredShape,
    ),
)  # fmt: skip
