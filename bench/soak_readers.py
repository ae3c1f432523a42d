"""Those who read while a soak goes on, in a process of their own, which bench.soak starts.

Busy searchers over HTTP, commands that read the index by themselves, idle readers that keep bases and connections open.
What it is to do comes as one line of JSON on standard input; the end of that input ends it. What it has seen it writes
to a file, a line each: `S` for a search, `C` for a command, `I` at the end for the idle ones.
"""

import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import urlencode

from app.open_bases import OpenBases
from app.searching import answer
from bench.soak_corpus import queries
from bench.soak_plan import CALLERS, READERS, SEARCHERS, Asked, Command
from domain.settings import Settings
from retrieval.answer import SearchRequest

TIMEOUT_S = 600.0
NEWEST_BYTES = 65_536
CALL_EVERY_S = 10.0  # the service ends a connection that has said nothing for 15 seconds
COMMANDS = (
    ("search", "--json"),
    ("match", "--json", "--limit", "5"),
    ("search", "--json", "--mode", "lexical"),
    ("stats", "--json"),
)


class Wish(NamedTuple):
    """What the readers are to do; every time in seconds, `began_s` by the monotonic clock."""

    port: int
    home: str
    configuration: str
    log: str
    began_s: float
    searches_per_s: float
    idle_every_s: float
    command_every_s: float
    seed: int


class Seen:
    """The file with what was seen; lines of several threads."""

    def __init__(self, file: TextIO, began_s: float) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.began_s = began_s
        self.idle: Counter[str] = Counter()

    def line(self, kind: str, *fields: object) -> None:
        with self._lock:
            self._file.write("\t".join((kind, *map(str, fields))) + "\n")
            self._file.flush()


def ask(connection: http.client.HTTPConnection, query: str) -> tuple[int, str]:
    """Status and tier of a search; 0 where nobody answers."""
    try:
        connection.request("GET", f"/v1/search?{urlencode({'q': query})}")
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0, "other"
    return response.status, tier_of(json.loads(body).get("tier", "")) if response.status == 200 else "other"


def tier_of(line: str) -> str:
    if "DEGRADED" in line:
        return "degraded"
    return "hybrid" if line.startswith("tier: hybrid") else "other"


def search_at_pace(wish: Wish, number: int, seen: Seen, over: threading.Event) -> None:
    """A search every so often; one that takes longer than that puts off the next one, and none is made up for."""
    dice = random.Random(wish.seed + number)
    every_s = 1 / wish.searches_per_s
    due_s = time.monotonic() + every_s * number / SEARCHERS
    connection = http.client.HTTPConnection("127.0.0.1", wish.port, timeout=TIMEOUT_S)
    while not over.wait(max(0.0, due_s - time.monotonic())):
        at_s = time.monotonic()
        status, tier = ask(connection, queries(dice, 1)[0])
        seen.line("S", round(at_s - wish.began_s, 3), round((time.monotonic() - at_s) * 1000, 2), status, tier)
        due_s = max(due_s + every_s, time.monotonic())
    connection.close()


def run_commands(wish: Wish, seen: Seen, over: threading.Event) -> None:
    dice = random.Random(wish.seed + 100)
    number = 0
    while not over.wait(wish.command_every_s):
        verb, *options = COMMANDS[number % len(COMMANDS)]
        words = [] if verb == "stats" else queries(dice, 1)
        at_s = time.monotonic()
        command = [sys.executable, "-P", "-m", "cli.main", verb, *options, "--config", wish.configuration, *words]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
        took_ms = (time.monotonic() - at_s) * 1000
        seen.line("C", round(at_s - wish.began_s, 2), verb, done.returncode, round(took_ms, 1))
        number += 1


def keep_base_open(wish: Wish, seen: Seen, over: threading.Event) -> None:
    """Asks now and then, and keeps the base open and idle in between."""
    dice = random.Random(wish.seed + threading.get_native_id())
    settings = Settings(identity="base", home=Path(wish.home), config_path=None, configured=False)
    with closing(OpenBases(settings)) as bases:
        while True:
            with bases.borrowed() as base:
                answer(base.store, SearchRequest(query=queries(dice, 1)[0]), None)
            seen.idle["reads_of_open_bases"] += 1
            if over.wait(wish.idle_every_s):
                return


def keep_connection(wish: Wish, seen: Seen, over: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", wish.port, timeout=TIMEOUT_S)
    while not over.wait(min(wish.idle_every_s, CALL_EVERY_S)):
        status, _ = ask(connection, "bacedi")
        seen.idle["calls_over_kept_connections"] += 1
        seen.idle["calls_that_failed"] += status != 200
    connection.close()


def keep_stream(wish: Wish, seen: Seen, over: threading.Event) -> None:
    """An event stream, as a page that somebody leaves open; opened again where it ends."""
    while not over.is_set():
        connection = http.client.HTTPConnection("127.0.0.1", wish.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", "/v1/events")
            stream = connection.getresponse()
            seen.idle["event_streams_opened"] += 1
            while not over.is_set() and (line := stream.readline()):
                seen.idle["events"] += line.startswith(b"event:")
        except (OSError, http.client.HTTPException):
            seen.idle["event_streams_broken"] += 1
            over.wait(1.0)
        finally:
            connection.close()


def read_along(wish: Wish, over: threading.Event) -> None:
    """Returns when the input ends; only the stream may still wait for a line by then."""
    with Path(wish.log).open("w", encoding="ascii") as file:
        seen = Seen(file, wish.began_s)
        jobs: list[tuple[Any, ...]] = [(search_at_pace, wish, number, seen, over) for number in range(SEARCHERS)]
        jobs += [(run_commands, wish, seen, over)]
        jobs += [(keep_base_open, wish, seen, over)] * READERS
        jobs += [(keep_connection, wish, seen, over)] * (CALLERS - 1)
        threads = [threading.Thread(target=call, args=arguments, daemon=True) for call, *arguments in jobs]
        threading.Thread(target=keep_stream, args=(wish, seen, over), daemon=True).start()
        for thread in threads:
            thread.start()
        sys.stdin.read()
        over.set()
        for thread in threads:
            thread.join()
        seen.line("I", json.dumps(seen.idle))


def read_log(path: Path) -> tuple[list[Asked], list[Command], dict[str, int]]:
    """What the readers have written down."""
    asked, commands, idle = [], [], {}
    for line in path.read_text(encoding="ascii").splitlines():
        match line.split("\t"):
            case ["S", at_s, ms, status, tier]:
                asked.append(Asked(float(at_s), float(ms), int(status), tier))
            case ["C", at_s, verb, status, ms]:
                commands.append(Command(float(at_s), verb, int(status), float(ms)))
            case ["I", told]:
                idle = json.loads(told)
    return asked, commands, idle


class Readers:
    """The process of the readers, seen from the soak."""

    def __init__(self, wish: Wish) -> None:
        self._log = Path(wish.log)
        self._process = subprocess.Popen([sys.executable, "-m", "bench.soak_readers"], stdin=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wish._asdict()) + "\n")
        self._process.stdin.flush()

    def so_far(self) -> list[Asked]:
        """The newest ones, without the line that is just being written."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - NEWEST_BYTES))
            whole = file.read().decode("ascii").partition("\n")[2].rpartition("\n")[0]
        return [
            Asked(float(at_s), float(ms), int(status), tier)
            for kind, at_s, ms, status, tier in (line.split("\t") for line in whole.splitlines() if line[0] == "S")
        ]

    def end(self) -> tuple[list[Asked], list[Command], dict[str, int]]:
        self.stop()
        return read_log(self._log)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.communicate(timeout=2 * TIMEOUT_S)


def main() -> None:
    read_along(Wish(**json.loads(sys.stdin.readline())), threading.Event())


if __name__ == "__main__":
    main()
