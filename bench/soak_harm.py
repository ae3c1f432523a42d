"""What is done to a service during a soak, and how long it takes until everything goes on."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.soak_plan import Asked, Incident, Pass, Plan
from bench.soak_service import Soaking

AWAY_S = 2.0  # the queue, between its end and its next start
GOES_ON_WITHIN_S = 900.0
Sign = Callable[[], float | None]  # when it came, in seconds of the soak; None: not yet


class Planned(NamedTuple):
    at_s: float
    begin: Callable[[], None]
    end: Callable[[], None]
    away_s: float
    name: str
    signs: Callable[[float], dict[str, Sign]]  # of that everything goes on, after this time


@dataclass(slots=True)
class _Open:
    """An incident that is not over yet."""

    planned: Planned
    began_s: float
    back_s: float | None = None
    signs: dict[str, Sign] = field(default_factory=dict)
    took_s: dict[str, float] = field(default_factory=dict)


class Harm:
    """`look` is to be called again and again: it begins what is due, and notes what has come back."""

    def __init__(
        self, it: Soaking, plan: Plan, so_far: Callable[[], list[Asked]], passes: list[Pass], began_s: float
    ) -> None:
        self._it = it
        self._so_far = so_far
        self._passes = passes
        self._began_s = began_s
        self._open: list[_Open] = []
        self.incidents: list[Incident] = []
        outage_s = plan.outage_ends_s - plan.outage_s
        self._planned = [
            Planned(plan.writer_killed_s, self._kill_writer, self._start_writer, 0.0, "writer killed", self._of_writer),
            Planned(plan.queue_restarted_s, it.broker.stop, it.broker.start, AWAY_S, "queue restarted", self._of_queue),
            Planned(plan.outage_s, it.model.take_down, it.model.bring_up, outage_s, "embeddings away", self._of_model),
        ]

    def look(self) -> None:
        now_s = time.monotonic() - self._began_s
        while self._planned and self._planned[0].at_s <= now_s:
            planned = self._planned.pop(0)
            self._open.append(_Open(planned, now_s))
            planned.begin()
        for one in list(self._open):
            self._look_at(one)

    def finish(self) -> None:
        """What has not gone on by the end, and does not within a quarter of an hour, never has (infinity)."""
        latest_s = time.monotonic() + GOES_ON_WITHIN_S
        while self._planned or self._open:
            self.look()
            self._it.revive()
            for one in list(self._open) if time.monotonic() > latest_s else []:
                self._close(one, {name: float("inf") for name in one.signs} | one.took_s)
            time.sleep(0.2)

    def _look_at(self, one: _Open) -> None:
        now_s = time.monotonic() - self._began_s
        if one.back_s is None:
            if now_s < one.began_s + one.planned.away_s:
                return
            one.planned.end()
            one.back_s = time.monotonic() - self._began_s
            one.signs = one.planned.signs(one.back_s)
        for name, sign in one.signs.items():
            if name not in one.took_s and (came_s := sign()) is not None:
                one.took_s[name] = round(came_s - one.back_s, 2)
        if len(one.took_s) == len(one.signs):
            self._close(one, one.took_s)

    def _close(self, one: _Open, took_s: dict[str, float]) -> None:
        self._open.remove(one)
        back_s = one.began_s if one.back_s is None else one.back_s
        self.incidents.append(Incident(one.planned.name, round(one.began_s, 1), round(back_s, 1), took_s))
        print(f"  {self.incidents[-1]}", flush=True)

    def _kill_writer(self) -> None:
        self._it.kill("writer")

    def _start_writer(self) -> None:
        self._it.service.start("writer")

    def _of_writer(self, after_s: float) -> dict[str, Sign]:
        writer = self._it.service.of("writer")[-1]
        is_active: Sign = lambda: self._now_s() if '"active"' in writer.said() else None  # noqa: E731
        return {"a writer is at work": is_active} | self._of_queue(after_s)

    def _of_queue(self, after_s: float) -> dict[str, Sign]:
        """The run that was cut into, or the next one."""
        return {"a run has ended well": lambda: self._run_ended_s(after_s)}

    def _of_model(self, after_s: float) -> dict[str, Sign]:
        return {"an answer has meaning again": lambda: self._hybrid_s(after_s)} | self._of_queue(after_s)

    def _now_s(self) -> float:
        return time.monotonic() - self._began_s

    def _run_ended_s(self, after_s: float) -> float | None:
        return next((one.ended_s for one in self._passes if one.ended_s > after_s and one.ended_well), None)

    def _hybrid_s(self, after_s: float) -> float | None:
        found = (one for one in self._so_far() if one.at_s > after_s and one.tier == "hybrid")
        return next((one.at_s + one.ms / 1000 for one in found), None)
