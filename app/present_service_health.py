"""The health of a service as JSON."""

from typing import TYPE_CHECKING

from app.index_numbers import IndexNumbers
from app.present import Json, error_json, utc
from app.service_health import ServiceHealth

if TYPE_CHECKING:
    from scheduler.queue.numbers import QueueNumbers


def health_json(health: ServiceHealth, now_ns: int) -> Json:
    problem = error_json(health.problem)["error"] if health.problem is not None else None
    return {
        "at": utc(now_ns),
        "index": _index_json(health.index) if health.index is not None else None,
        "problem": problem,
        "disk_free_bytes": health.disk_free_bytes,
        "queue": _queue_json(health.queue) if health.queue is not None else None,
        "roles": _roles_json(health.queue) if health.queue is not None else None,
        "scheduler": health.scheduler or None,
        "writer": health.writer or None,
        "run": health.run,
        "queued_runs": health.queued_runs,
        "failures": dict(health.failures) or None,
    }


def lasting(value: Json) -> Json:
    """What of it stays the same for as long as nothing happens: no ages, and not when it was looked at."""
    index, queue = value["index"], value["queue"]
    ages = ("checkpoint_age_seconds", "oldest_reader_seconds")
    return {
        **value,
        "at": None,
        "index": index and {key: number for key, number in index.items() if key not in ages},
        "queue": queue and {"jobs": queue["jobs"], "parked": queue["parked"]},
        "disk_free_bytes": None,  # whatever else is written on that disk
    }


def _index_json(seen: IndexNumbers) -> Json:
    quick, rows, log = seen
    return {
        "database_bytes": quick.database_bytes,
        "free_bytes": quick.free_bytes,
        "log_bytes": quick.log_bytes,
        "log_waiting_bytes": log.waiting_bytes if log is not None else None,
        "checkpoint_age_seconds": round(log.age_s) if log is not None else None,
        "oldest_reader_seconds": round(log.oldest_reader_s) if log and log.oldest_reader_s is not None else None,
        "full_text_segments": quick.segments,
        "documents": rows.documents,
        "chunks": rows.chunks,
        "vectors": rows.vectors,
        "dead_vectors": rows.unused_vectors,
        "dead_vector_share": round(rows.unused_vectors / rows.vectors, 4) if rows.vectors else 0.0,
    }


def _queue_json(queue: "QueueNumbers") -> Json:
    return {
        "jobs": dict(queue.jobs),
        "oldest_seconds": {stage: round(age_s) for stage, age_s in queue.oldest_s.items()},
        "parked": queue.parked,
        "memory_bytes": queue.memory_bytes,
        "memory_limit_bytes": queue.memory_limit_bytes,
    }


def _roles_json(queue: "QueueNumbers") -> list[Json]:
    """Processes that live, by their leases."""
    names = sorted({role for role, _ in queue.roles})
    return [
        {"role": role, "active": queue.roles.get((role, True), 0), "standby": queue.roles.get((role, False), 0)}
        for role in names
    ]
