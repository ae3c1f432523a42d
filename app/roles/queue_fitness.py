"""Whether the queue's server is fit to hold work, and the clocks agree: looked at when a role comes up, and now and
then, and said in its log and in its status. None of it stops the role: it works all the same, at the risk that is told.
"""

import asyncio
from collections.abc import Callable

from app.roles.runtime import Runtime
from domain.errors import QueueError
from scheduler.queue.address import QueueAddress
from scheduler.queue.probe import SAFE_POLICY, QueueFacts, probe

LOOK_EVERY_S = 60.0
LOOK_AGAIN_S = 2.0  # while nobody answers
CLOCK_LIMIT_S = 2.0


def clock_worries(facts: QueueFacts) -> list[str]:
    """Of a role that notes when it has read a file: what is wrong with its clock, in a sentence; [] = nothing."""
    if abs(facts.clock_ahead_s) <= CLOCK_LIMIT_S:
        return []
    where = "ahead of" if facts.clock_ahead_s > 0 else "behind"
    return [f"the queue's clock is {abs(facts.clock_ahead_s):.0f} s {where} this machine's: set both by NTP"]


def worries(facts: QueueFacts) -> list[str]:
    """The same of a role that trusts the queue with work."""
    if facts.memory_policy in ("", SAFE_POLICY):
        return clock_worries(facts)
    lossy = "the queue drops waiting work without an error when its memory is short"
    return [f"{lossy} (maxmemory-policy {facts.memory_policy}): set {SAFE_POLICY}", *clock_worries(facts)]


async def watch_queue_fitness(
    runtime: Runtime, address: QueueAddress, judge: Callable[[QueueFacts], list[str]] = worries
) -> None:
    """Until cancelled. Each worry is logged once, until it has gone and come back."""
    told: set[str] = set()
    while True:
        try:
            facts = await asyncio.to_thread(probe, address)
        except QueueError:  # whoever needs the queue says so
            await asyncio.sleep(LOOK_AGAIN_S)
            continue
        now = judge(facts)
        for worry in now:
            if _kind(worry) not in told:
                runtime.log.warning("queue_unfit", message=worry)
        told = {_kind(worry) for worry in now}
        runtime.status.warns = "; ".join(now)
        await asyncio.sleep(LOOK_EVERY_S)


def _kind(worry: str) -> str:
    """A worry without its number, which changes from look to look."""
    return worry.split("'s clock")[0] if "'s clock" in worry else worry
