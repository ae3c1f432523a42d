"""Runs as rows of a table: what each is at, how far it is, and the buttons for what may be asked of it."""

import json
from collections.abc import Iterator, Mapping, Sequence

from app.present import ago, duration, utc
from app.present_pages import run_heading
from app.present_runs import asked_words, now_words
from app.runs import ShownRun
from server.pages.layout import Visit
from server.pages.markup import NOTHING, Html, joined, tag
from store.run_port import RunRecord

_GOOD, _BAD = ("done",), ("failed", "interrupted")
_UNPAUSABLE = ("verify", "compact")


def runs_table(visit: Visit, runs: Sequence[ShownRun], now_ns: int) -> Html:
    head = tag("tr", [tag("th", label, scope="col") for label in ("Run", "What it is at", "Asked for")])
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", [_row(visit, shown, now_ns) for shown in runs])),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Runs",
    )


def _row(visit: Visit, shown: ShownRun, now_ns: int) -> Html:
    run = shown.run
    link = tag("a", f"{run.id}", href=visit.link(f"/operations/runs/{run.id}"), aria_label=f"Run {run.id}")
    return tag(
        "tr",
        tag("td", link),
        tag(
            "td",
            tag("span", asked_words(run), class_="asked"),
            tag("span", visit.told(now_words(shown, now_ns)), class_=f"state {state_class(run)}"),
            progress_bar(run),
            run_buttons(visit, shown),
        ),
        tag(
            "td",
            tag("time", ago(run.queued_ns or run.started_ns, now_ns), datetime=utc(run.queued_ns or run.started_ns)),
        ),
        data_run=run.id,
        data_state=run.state,
    )


def state_class(run: RunRecord) -> str:
    """How it is coloured; the words say the same."""
    if run.state in _GOOD:
        return "good"
    if run.state in _BAD:
        return "bad"
    return "warn" if run.ended_ns is not None or run.state in ("waiting", "paused", "needs_approval") else "busy"


def progress_bar(run: RunRecord) -> Html:
    """Nothing for a run that has ended or counts nothing; without a value while nobody knows how much there is."""
    if run.ended_ns is not None or run.state in ("queued", "interrupted") or not run.progress:
        return NOTHING
    whole = run.progress.get("to_check", 0)
    is_known = bool(run.progress.get("is_plan_complete")) and whole > 0
    value = min(run.progress.get("checked", 0), whole) if is_known else None
    return tag("progress", value=value, max=whole if is_known else None, aria_label=f"How far run {run.id} is")


def run_buttons(visit: Visit, shown: ShownRun) -> Html:
    """Only for who may operate. They are of no use without JavaScript, which shows them."""
    if not visit.may_operate:
        return NOTHING
    buttons = list(_buttons(visit, shown.run))
    return tag("span", buttons, class_="actions", hidden=True) if buttons else NOTHING


def _buttons(visit: Visit, run: RunRecord) -> Iterator[Html]:
    if run.state == "needs_approval":
        yield tag("a", "Look at the removals", class_="button", href=visit.link(f"/operations/runs/{run.id}"))
    if run.ended_ns is not None or run.state == "interrupted":
        if run.kind in ("index", "reindex", "verify", "compact") and run.state != "done":
            yield action(f"/v1/runs/{run.id}/retry", "Do it again", about=f"run {run.id}")
        return
    is_pausable = run.kind not in _UNPAUSABLE or run.state == "queued"
    if run.state == "paused" or run.requested == "pause":
        yield action(f"/v1/runs/{run.id}/resume", "Go on", about=f"with run {run.id}")
    elif is_pausable:
        yield action(f"/v1/runs/{run.id}/pause", "Pause", about=f"run {run.id}")
    asked = f"End run {run.id}? What it has written stays."
    yield action(f"/v1/runs/{run.id}/cancel", "End", about=f"run {run.id}", asks=asked)


def action(
    path: str,
    label: str,
    *,
    about: str = "",
    asks: str = "",
    body: Mapping[str, object] | None = None,
    suffix: str = "",
) -> Html:
    """A button that POSTs; `asks`: a question that comes first; `suffix` tells buttons of the same address apart."""
    return tag(
        "button",
        label,
        tag("span", f" {about}", class_="aside") if about else NOTHING,
        type="button",
        id=f"do{path.replace('/', '-')}{suffix}",
        data_post=path,
        data_body=json.dumps(body) if body else None,
        data_asks=asks or None,
    )


def run_facts(shown: ShownRun, now_ns: int) -> Html:
    """What is on record of one run, as terms and values."""
    run = shown.run
    rows = [("Asked for", utc(run.queued_ns or run.started_ns) or "")]
    rows += [("Begun", utc(run.started_ns) or "")] * bool(run.generation)
    if run.ended_ns is not None:
        rows.append(("Ended", utc(run.ended_ns) or ""))
    took_s = ((run.ended_ns or now_ns) - run.started_ns) / 1e9
    rows += [("Took" if run.ended_ns is not None else "For", duration(round(took_s)))] * bool(run.generation)
    counters = run.progress if run.ended_ns is None else run.counts
    rows += [(key.replace("_", " ").capitalize(), f"{number:,}") for key, number in counters.items() if number]
    return tag("dl", [joined(tag("dt", label), tag("dd", value)) for label, value in rows], class_="numbers")


def title_of(run: RunRecord) -> str:
    return run_heading(run.id, asked_words(run))
