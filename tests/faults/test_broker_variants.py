"""What can befall the queue's server in the midst of a run: killed, restarted, emptied, full of memory, closed to us,
with a full disk below it. The run says what it waits for, or ends by itself; nothing is lost (P2, P3, faults 11, 16).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.chaos import MATTER, SLOW_S, Chaos, assert_like_a_clean_index, chaos, differing
from tests.support.command_line import CommandLine
from tests.support.depth import IS_NIGHTLY, scaled
from tests.support.figures import Figure, NoteFigure
from tests.support.small_disk import fill, small_disk

if TYPE_CHECKING:
    from redis import Redis

ROUNDS = scaled(1, 10)
FILES = 48
CHANGED = 24
DISK_MIB = 6
BALLAST_BYTES = 32 * 1024
MEBIBYTE = 1024 * 1024
PASSWORD = "another one"

pytestmark = [pytest.mark.redis, pytest.mark.timeout(900 + 300 * ROUNDS)]


@dataclass(slots=True)
class Server:
    """The queue's server in a test's hands."""

    it: Chaos
    client: "Redis"
    disk: Path | None = None  # what it keeps its work on, where that is small
    told: list[str] = field(default_factory=list)  # what ought to have been said and was not

    def info(self, name: str) -> int:
        facts: Any = self.client.info()
        return int(facts[name])

    def fill_memory(self, until: Callable[[int], bool]) -> None:
        """With values of somebody else's, up to a megabyte above what it holds; `until` hears how many there are."""
        from redis.exceptions import OutOfMemoryError

        self.client.config_set("maxmemory", self.info("used_memory") + MEBIBYTE)
        try:
            for number in range(1000):
                if until(number):
                    return
                self.client.set(f"ballast:{number}", b"x" * BALLAST_BYTES)
        except OutOfMemoryError:
            return

    def empty_memory(self) -> None:
        self.client.config_set("maxmemory", 0)
        ballast = list(self.client.scan_iter(match="ballast:*"))
        if ballast:
            self.client.delete(*ballast)


@dataclass(frozen=True, slots=True)
class Harm:
    """What is done to the server, and undone; `words`: what the run says meanwhile, where it has to wait."""

    do: Callable[[Server], object]
    undo: Callable[[Server], object] = lambda server: None
    words: str = ""


def _killed(server: Server) -> None:
    server.it.kill("broker")
    server.it.bring_back("broker")


def _restarted(server: Server) -> None:
    server.it.broker.stop()
    server.it.bring_back("broker")


def _away(server: Server) -> None:
    server.it.broker.stop()


def _back(server: Server) -> None:
    server.it.bring_back("broker")


def _closed(server: Server) -> None:
    server.client.config_set("requirepass", PASSWORD)
    server.client.client_kill_filter(_type="normal", skipme=True)


def _opened(server: Server) -> None:
    server.client.config_set("requirepass", "")


def _memory_full(server: Server) -> None:
    server.client.config_set("maxmemory-policy", "noeviction")
    server.fill_memory(lambda number: False)
    server.client.config_set("maxmemory", 1)  # what is smaller than the ballast fits no more either


def _evicting(server: Server) -> None:
    """Until some of our jobs are gone; it is told by a diagnosis."""
    server.client.config_set("maxmemory-policy", "allkeys-lru")

    def are_ours_gone(number: int) -> bool:
        return number > 64 and next(server.client.scan_iter(match="arq:job:*", count=1000), None) is None

    server.fill_memory(are_ours_gone)
    if not server.info("evicted_keys"):
        server.told.append("nothing was evicted")
    said = CommandLine(server.it.service.folder, within_s=SLOW_S)("doctor", "--config", "knowledge.yaml").out
    if "allkeys-lru" not in said:
        server.told.append(f"doctor does not tell of the policy: {said}")


def _evicting_no_more(server: Server) -> None:
    server.client.config_set("maxmemory-policy", "noeviction")
    server.empty_memory()


def _disk_full(server: Server) -> None:
    assert server.disk is not None
    fill(server.disk / "ballast")


def _disk_with_room(server: Server) -> None:
    assert server.disk is not None
    (server.disk / "ballast").unlink()


HARMS = {
    "killed": Harm(_killed),
    "restarted": Harm(_restarted),
    "away": Harm(_away, _back, "does not answer"),
    "emptied": Harm(lambda server: server.client.flushall()),
    "emptied twice": Harm(lambda server: server.client.flushall(), lambda server: server.client.flushall()),
    "memory full": Harm(_memory_full, Server.empty_memory, "memory is full"),
    "drops work": Harm(_evicting, _evicting_no_more),
    "password changed": Harm(_closed, _opened, "refuses the user or the password"),
}
# in `make test`; what is killed there is killed by test_service_chaos
SHORT = {False: ("emptied twice", "memory full", "drops work"), True: ("restarted", "password changed")}
DISK_FULL = Harm(_disk_full, _disk_with_room, "cannot write its file")


def _suffered(server: Server, harm: Harm) -> list[str]:
    """What is wrong with a run in whose midst it comes; the embeddings server holds it there."""
    it = server.it
    it.change(CHANGED)
    it.embeddings.behaviour.held = MATTER
    run = it.service.submit()
    try:
        it.service.wait_until(lambda: it.embeddings.in_flight > 0, SLOW_S)
        harm.do(server)
        if harm.words:
            it.service.wait_until(lambda: harm.words in it.service.run(run).cause, SLOW_S)
            server.told += ["the run does not wait"] * (it.service.run(run).state != "waiting")
        harm.undo(server)
        it.embeddings.behaviour.held = ""
        ended = it.ended(run)
    except TimeoutError as error:
        return [f"{it.service.run(run)}\n{error}"]
    finally:
        it.embeddings.behaviour.held = ""
    wrong = [f"{ended.state}: {ended.cause} {ended.counts}"] * (ended.state != "done")
    return [*wrong, *[f"{key} is {is_stored}" for key, is_stored in differing(it).items()]]


@pytest.fixture(params=[False, True], ids=["keeps nothing", "keeps its work"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    from redis import Redis

    with chaos(FILES, keeps=request.param) as it, closing(Redis(unix_socket_path=it.service.socket)) as client:
        _start(it)
        yield Server(it, client)


def _start(it: Chaos) -> None:
    it.service.environ["worker"] = {"KNOWLEDGE_EMBEDDINGS__TIMEOUT": "300s"}  # a slow answer is an answer
    it.service.start_all(workers=2)
    assert it.ended(it.service.first_run()).state == "done"


def test_whatever_befalls_the_queue_the_run_ends_and_nothing_is_lost(server: Server, note_figure: NoteFigure) -> None:
    """P2, P3, faults 7, 11, 16: with a queue that keeps its work on a disk and with one that does not."""
    it, began_s = server.it, time.monotonic()
    wrong: list[str] = []
    tried = 0
    harms = sorted(HARMS) if IS_NIGHTLY else SHORT[it.broker.keeps]
    for _ in range(ROUNDS):
        for name in it.dice.sample(harms, len(harms)):
            wrong += [f"{name}: {what}" for what in _suffered(server, HARMS[name])]
            tried += 1
    keeps = "keeps-work" if it.broker.keeps else "keeps-nothing"
    what = f"harms to a queue that {keeps.replace('-', ' ')}: {', '.join(harms)}"
    bad, seconds = len(wrong) + len(server.told), time.monotonic() - began_s
    note_figure(Figure(f"broker-{keeps}", ("P2", "P3"), what, tried, ROUNDS * len(HARMS), bad, seconds=seconds))
    assert wrong == []
    assert server.told == []
    assert_like_a_clean_index(it, commit="together")


def test_a_queue_whose_disk_is_full_is_waited_for_in_words(tmp_path: Path, note_figure: NoteFigure) -> None:
    """P23, fault 11: its append-only file has no room; it refuses all that would change it, and says so."""
    from redis import Redis

    with small_disk(tmp_path / "disk", DISK_MIB) as disk:
        options = ("--dir", str(disk), "--auto-aof-rewrite-percentage", "0")
        with (
            chaos(FILES, keeps=True, broker=options) as it,
            closing(Redis(unix_socket_path=it.service.socket)) as client,
        ):
            _start(it)
            server, began_s = Server(it, client, disk), time.monotonic()
            wrong = [what for _ in range(ROUNDS) for what in _suffered(server, DISK_FULL)]
            what = "a full disk below the queue's append-only file"
            bad, seconds = len(wrong) + len(server.told), time.monotonic() - began_s
            note_figure(Figure("broker-disk-full", ("P2", "P3", "P23"), what, ROUNDS, bad=bad, seconds=seconds))
            assert wrong == []
            assert server.told == []
            assert all(role.process.poll() is None for role in it.service.roles)
            assert_like_a_clean_index(it, commit="together")
