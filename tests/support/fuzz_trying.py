"""Many inputs to one surface: what came of each, how long it took, and which brought out what nobody is to see.

An input is made from a seed and its number alone: with KNOWLEDGE_TEST_SEED as it was, the number that a report names
makes it again.
"""

import faulthandler
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from domain.errors import KnowledgeError
from tests.support.depth import SEED
from tests.support.figures import Figure

ASKED = 10_000  # inputs a surface, by the release bar
HANG_S = 20.0  # tells a hang from a busy machine
BAR_S = 2.0  # the release bar: measured and told, on machines that are somebody's own
_STANDARD_ERROR = 2
SHOWN_CHARS = 600
SHOWN_FAULTS = 12
ROOT = Path(__file__).parents[2]
Outcome = Callable[[], str]
Value = TypeVar("Value")


def chooser(surface: str, number: int) -> Random:
    """The choices that make one input of a surface; a number of its own for whatever draws from it again."""
    return Random(f"{SEED} {surface} {number}")


@dataclass(slots=True)
class Trial:
    """Inputs tried so far. `outcomes` counts what came of them, in the words of the surface's own test."""

    surface: str
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""
    most_computing_s: float = 0.0  # of this process, for one input: a busy machine makes it no longer
    over_bar: int = 0
    computing_over_bar: int = 0
    tried: int = 0
    began_s: float = field(default_factory=time.monotonic)

    def take(self, shown: str, outcome: Outcome) -> None:
        """Try one input: `outcome` says in a word what came of it; what it raises is a fault. `shown`: its number, a
        colon, and what it is. Where it does not end, all threads are written to standard error after HANG_S."""
        self.tried += 1
        faulthandler.dump_traceback_later(HANG_S, file=_STANDARD_ERROR)
        began_s, computed_s = time.monotonic(), time.process_time()
        try:
            self.outcomes[outcome()] += 1
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            self.fault(shown, words_of(error))
        finally:
            took_s = time.monotonic() - began_s
            faulthandler.cancel_dump_traceback_later()
            self._note_computing(time.process_time() - computed_s)
        self.note_time(shown, took_s)

    def also(self, shown: str, outcome: Outcome) -> None:
        """What many inputs are put through together: neither counted nor timed, but its faults are faults."""
        try:
            outcome()
        except Exception as error:  # noqa: BLE001 - as above
            self.fault(shown, words_of(error))

    def _note_computing(self, computing_s: float) -> None:
        self.computing_over_bar += computing_s > BAR_S
        self.most_computing_s = max(self.most_computing_s, computing_s)

    def note_time(self, shown: str, took_s: float) -> None:
        self.over_bar += took_s > BAR_S
        if took_s > self.slowest_s:
            self.slowest_s, self.slowest = took_s, shown.partition(":")[0]
        if took_s > HANG_S:
            self.fault(shown, f"hangs: {took_s:.1f} s")

    def fault(self, shown: str, words: str) -> None:
        self.outcomes["FAULT"] += 1
        self.faults.append(f"{shown[:SHOWN_CHARS]}\n    {words}")

    def figure(self, promises: Sequence[str], what: str) -> Figure:
        counted = ", ".join(f"{count:,} {name}" for name, count in self.outcomes.most_common(8))
        return Figure(
            name=f"fuzz-{self.surface}",
            promises=tuple(promises),
            what=f"fuzz of {what}",
            tried=self.tried,
            bad=len(self.faults),
            asked=ASKED,
            seconds=time.monotonic() - self.began_s,
            detail=f"slowest {self.slowest_s:.2f} s by the clock (input {self.slowest}), {self.over_bar} over"
            f" {BAR_S:g} s; most computing {self.most_computing_s:.2f} s, {self.computing_over_bar} over; {counted}",
        )

    def report(self) -> str:
        """What is to be read where there was a fault."""
        more = len(self.faults) - SHOWN_FAULTS
        told = [*self.faults[:SHOWN_FAULTS], *([f"and {more} more"] if more > 0 else [])]
        return "\n".join([f"{len(self.faults)} of {self.tried} inputs to {self.surface} were bad:", *told])


def told(ask: Callable[[], object], found: str = "answered") -> str:
    """The outcome of what may be refused in our own words: the code of the refusal. Each has words, each is short."""
    try:
        ask()
    except KnowledgeError as error:
        assert error.code not in ("unexpected", "store_refused"), f"{error.code}: {error}"
        assert error.message and len(error.message) + len(error.hint) < 20_000, "a message without bounds"
        return f"refused ({error.code})"
    return found


def words_of(error: BaseException) -> str:
    """The exception, and where in this project it came from."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if str(ROOT) in frame.filename]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in ours if "/.venv/" not in frame.filename]
    return f"{type(error).__name__}: {str(error)[:SHOWN_CHARS]} at {' < '.join(reversed(places))}"


def mutated(random: Random, data: bytes, tokens: Sequence[bytes], most: int = 5) -> bytes:
    """The bytes with a few changes: mostly what it was, so that it comes past the first checks."""
    for _ in range(random.randint(1, most)):
        at = random.randint(0, len(data))
        end = min(len(data), at + random.choice((0, 1, 1, 2, 4, 16, 200)))
        middle = random.choice((
            b"", random.randbytes(random.choice((1, 1, 2, 8))), data[at:end] * 2, random.choice(tokens),
            random.choice(tokens) * random.choice((1, 1, 2, 9)),
            bytes(byte ^ 1 << random.randrange(8) for byte in data[at:end]),
        ))  # fmt: skip
        data = data[:at] + middle + data[end:]
    if random.random() < 0.06:
        data = data[: random.randint(0, len(data))]
    return data


def some(random: Random, values: Iterable[Value], most: int) -> list[Value]:
    """From none to `most` of them, each as often as it comes."""
    found = list(values)
    return [random.choice(found) for _ in range(random.randint(0, most))]
