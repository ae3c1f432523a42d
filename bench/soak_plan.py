"""What a soak is made of: when everything happens, and what is written down of it."""

from dataclasses import dataclass
from typing import NamedTuple

SEARCHERS = 4
AGENTS = 3  # `knowledge mcp` each, over stdio; with CALLERS and READERS eight idle readers
CALLERS = 3  # connections over HTTP that are kept, one of them with an event stream
READERS = 2  # bases that are kept open in a process of their own
HOUR_S = 3600.0
SLOPE_WANTS_S = 1_800.0  # a shorter soak says nothing of what grows slowly


@dataclass(frozen=True, slots=True)
class Plan:
    """Times in seconds from the beginning of the soak, in proportion to its length."""

    seconds: float
    files: int = 3_000
    searches_per_s: float = 2.0  # of each searcher

    @property
    def changes(self) -> int:
        """Of files, in a batch."""
        return min(30, max(1, self.files // 20))

    @property
    def most_unseen(self) -> int:
        """Changes that no run has seen yet; with more of them unusually many files may be gone at once, and their
        removal be held."""
        return max(50, self.files // 6)

    @property
    def fills(self) -> bool:
        """Whether it is long enough to say something of memory: then the index has its lasting size before."""
        return self.seconds >= SLOPE_WANTS_S

    @property
    def sample_every_s(self) -> float:
        return min(5.0, max(0.5, self.seconds / 120))

    @property
    def batch_every_s(self) -> float:
        return min(10.0, max(1.0, self.seconds / 30))

    @property
    def warm_s(self) -> float:
        return self.seconds / 4

    @property
    def settle_s(self) -> float:
        """Of a process that was started anew: what it does to its memory first says nothing of a slope."""
        return self.seconds / 10

    @property
    def writer_killed_s(self) -> float:
        return self.seconds * 0.15

    @property
    def queue_restarted_s(self) -> float:
        return self.seconds * 0.42

    @property
    def outage_s(self) -> float:
        return self.seconds * 0.60

    @property
    def outage_ends_s(self) -> float:
        """Two minutes of an hour."""
        return self.outage_s + self.seconds / 30

    @property
    def checks_s(self) -> tuple[float, ...]:
        """Every ten minutes of an hour; the last one stands after the end. In less than a minute there is one more."""
        parts = 6 if self.seconds >= 60 else 2
        return tuple(self.seconds * part / parts for part in range(1, parts))

    @property
    def idle_every_s(self) -> float:
        """How long an idle reader says nothing."""
        return max(5.0, self.seconds / 12)

    @property
    def command_every_s(self) -> float:
        """Between two commands that read the index in processes of their own."""
        return min(10.0, max(3.0, self.seconds / 60))


class ProcessSample(NamedTuple):
    """One process at one moment; sizes in MB (a million bytes)."""

    pid: int
    rss_mb: float
    pss_mb: float
    anonymous_mb: float
    descriptors: int
    threads: int


class Sample(NamedTuple):
    """All of the service at one moment. A number that could not be told is NaN."""

    at_s: float
    processes: dict[str, ProcessSample]
    log_mb: float  # the write-ahead log of knowledge.db
    state_log_mb: float
    database_mb: float
    state_mb: float
    free_disk_mb: float
    queue_mb: float
    queue_jobs: float  # pages, to be read or written
    dead_vectors: float  # share, 0 to 1
    pressure: float  # share of the time in which something on the machine waited for a processor


class Asked(NamedTuple):
    """One search of a busy searcher."""

    at_s: float
    ms: float
    status: int  # of HTTP; 0: nobody answered
    tier: str  # hybrid, degraded, other


class Incident(NamedTuple):
    """What was done to the service, and when everything went on."""

    name: str
    began_s: float
    ended_s: float  # when what was taken away was back
    took_s: dict[str, float]  # from then on, until ...


class Check(NamedTuple):
    """A look at the whole index: a backup, restored and audited by other means, and `verify`."""

    at_s: float
    documents: int
    problems: tuple[str, ...]
    backup_status: int
    verify_status: int
    seconds: float


class Pass(NamedTuple):
    """A run of the churn's own: when it was asked for, when it ended, how."""

    asked_s: float
    ended_s: float
    state: str
    cause: str

    @property
    def ended_well(self) -> bool:
        """A file that goes while it is read leaves a run partial, and the next one finds it gone."""
        return self.state == "done" or (self.state == "partial" and self.cause != "removals_held")


class Command(NamedTuple):
    """A command that read the index in a process of its own."""

    at_s: float
    words: str
    status: int
    ms: float


class Soaked(NamedTuple):
    """Everything that a soak has seen."""

    plan: Plan
    samples: list[Sample]
    asked: list[Asked]
    commands: list[Command]
    idle: dict[str, int]  # what the idle readers have done, and what went wrong
    incidents: list[Incident]
    checks: list[Check]
    passes: list[Pass]
    changes: dict[str, int]
    runs: dict[str, int]  # of the service, by their state
    differing: int  # documents that are not as their files are, at the end
    deaths: int  # of roles that were not killed here
    machine: dict[str, str]
    unused_before: int = 0  # vectors that no chunk had when it began
