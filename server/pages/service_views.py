"""Schedules, folders, the queue and the store, as the overview of operations shows them."""

from collections.abc import Iterator, Sequence

from app.present import Json, count, duration, size
from app.present_pages import (
    folder_kind_words,
    no_folders_words,
    no_queue_words,
    no_schedules_words,
    role_words,
    stage_words,
)
from app.present_safe import name
from app.present_schedules import NO_SCHEDULER, last_words, local_time
from app.schedule_status import SchedulesStatus, ScheduleStatus
from app.status import BaseStatus, RootStatus
from server.pages.layout import Visit, hint_words, notices
from server.pages.markup import NOTHING, Html, joined, tag

NOT_KNOWN = "not known"


def numbers(rows: Sequence[tuple[str, str]], *, big: bool = False) -> Html:
    """Terms and their values."""
    entries = [tag("div", tag("dt", label), tag("dd", value)) for label, value in rows]
    return tag("dl", entries, class_="tiles big" if big else "tiles")


def schedules_list(status: SchedulesStatus, now_ns: int) -> Html:
    if not status.schedules:
        return tag("p", hint_words(no_schedules_words()), class_="empty")
    head = tag("tr", [tag("th", label, scope="col") for label in ("Schedule", "Next", "Last")])
    rows = [_schedule(schedule, now_ns) for schedule in status.schedules]
    return joined(
        notices([] if status.scheduler else [NO_SCHEDULER], "warn"),
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", rows)),
            class_="scroll",
            tabindex="0",
            role="region",
            aria_label="Schedules",
        ),
    )


def _schedule(status: ScheduleStatus, now_ns: int) -> Html:
    schedule = status.schedule
    first, *others = status.next_ns
    soon = f"{local_time(first, schedule)}, in {duration((first - now_ns) // 1_000_000_000)}"
    later = ", ".join(local_time(tick_ns, schedule) for tick_ns in others)
    return tag(
        "tr",
        tag("td", name(schedule.name), tag("span", f"{schedule.kind} at {schedule.cron}", class_="aside-line")),
        tag("td", soon, tag("span", f"then {later}", class_="aside-line") if later else NOTHING),
        tag("td", last_words(status, now_ns)),
    )


def folders_table(visit: Visit, status: BaseStatus) -> Html:
    """Where they lie is shown to those who may operate."""
    if not status.roots:
        return tag("p", hint_words(no_folders_words()), class_="empty")
    labels = ("Folder", "Documents", "Passages", "Skipped", "Failed")
    head = tag("tr", [tag("th", label, scope="col") for label in labels])
    return tag(
        "div",
        tag(
            "table",
            tag("thead", head),
            tag("tbody", [_folder(root, has_path=visit.may_operate) for root in status.roots]),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Folders",
    )


def _folder(root: RootStatus, *, has_path: bool) -> Html:
    told = folder_kind_words(root)
    return tag(
        "tr",
        tag(
            "td",
            name(root.name),
            tag("span", name(root.path), class_="path") if has_path else NOTHING,
            tag("span", told, class_="state warn") if told else NOTHING,
        ),
        [tag("td", number, class_="number") for number in (root.documents, root.chunks, root.skipped, root.failed)],
    )


def queue_numbers(health: Json) -> Html:
    """What waits, stage by stage, and who works; words where there is no queue, or nobody knows."""
    queue = health["queue"]
    if queue is None:
        return tag("p", hint_words(no_queue_words()), class_="empty")
    rows = [(stage_words(stage), _waiting(queue, stage)) for stage in queue["jobs"]]
    rows += [("Set aside for the embeddings server", f"{queue['parked']:,}")] * bool(queue["parked"])
    rows += [(role_words(one["role"]), _living(one)) for one in health["roles"] or ()]
    return numbers(rows)


def _waiting(queue: Json, stage: str) -> str:
    jobs, oldest_s = queue["jobs"][stage], queue["oldest_seconds"].get(stage, 0)
    return f"{jobs:,}, the oldest for {duration(oldest_s)}" if jobs and oldest_s else f"{jobs:,}"


def _living(one: Json) -> str:
    standby = f", {one['standby']} in reserve" if one["standby"] else ""
    return f"{one['active']} active{standby}"


def store_numbers(health: Json) -> Html:
    index = health["index"]
    if index is None:
        return tag("p", "There is no store to look at.", class_="empty")
    return numbers(list(_store_rows(index, health["disk_free_bytes"])))


def _store_rows(index: Json, disk_free_bytes: int | None) -> Iterator[tuple[str, str]]:
    yield "Database", size(index["database_bytes"])
    yield "Empty pages in it", size(index["free_bytes"])
    yield "Write-ahead log", size(index["log_bytes"])
    waiting = index["log_waiting_bytes"]
    yield "Of the log, not folded in", size(waiting) if waiting is not None else NOT_KNOWN
    oldest_s = index["oldest_reader_seconds"]
    yield "Oldest reader", duration(oldest_s) if oldest_s is not None else NOT_KNOWN
    yield "Full-text segments", f"{index['full_text_segments']:,}"
    if index["vectors"]:
        yield "Vectors", f"{index['vectors']:,}"
        dead = f"{count(index['dead_vectors'], 'vector')} ({index['dead_vector_share']:.1%})"
        yield "Kept for texts that are gone", dead
    yield "Free on the disk", size(disk_free_bytes) if disk_free_bytes is not None else NOT_KNOWN
