"""Somebody with a client of the queue who does to a run's jobs what accidents do: copies, loses and removes them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import decode_check, deserialize_job
from store.state import SqliteStateStore
from tests.support.chaos import SLOW_S, Chaos, text_of

LOOK_EVERY_S = 0.002
COPIES = (1, 2, 3, 4)  # beside the job itself


class Meddler:
    """Looks at the queue of one base with a client of its own; what it has done is in its lists."""

    def __init__(self, it: Chaos) -> None:
        from redis import Redis

        self._it = it
        self._client: Any = Redis(unix_socket_path=it.service.socket)
        state = SqliteStateStore(it.service.layout.state, read_only=True)
        self.names = QueueNames(state.base_id())
        state.close()
        self.rewritten: list[str] = []
        self.copied: list[str] = []

    def jobs(self) -> list[str]:
        return [item.decode() for item in self._client.zrange(self.names.checks, 0, -1)]

    def keys_of(self, job_id: str) -> list[str]:
        """The files of a check; [] where it is gone, or has none (vectors)."""
        raw = self._client.get(f"arq:job:{job_id}")
        arguments: Any = deserialize_job(raw)["a"] if raw else ()
        return [key for key, _ in decode_check(arguments[0]).files] if arguments else []

    def rewrite(self, key: str) -> None:
        """Another text of the same length, so that no size tells of it."""
        path = self._it.docs / key.removeprefix("docs/")
        number = self._it.dice.randrange(10**8, 10**9)
        path.write_text(text_of(number), encoding="utf-8")
        self.rewritten.append(key)

    def lose_all(self) -> None:
        self._some_job()
        self._client.flushall()

    def expire_one(self) -> None:
        """Its text is gone, its name is still in the queue: as after the time that a job is kept."""
        self._client.delete(f"arq:job:{self._some_job()}")

    def remove_one(self) -> None:
        job_id = self._some_job()
        self._client.zrem(self.names.checks, job_id)
        self._client.delete(f"arq:job:{job_id}", f"arq:in-progress:{job_id}")

    def held_by(self, pid: int) -> list[str]:
        """The files that a worker has in hand, once it has some."""
        found: list[str] = []

        def has_some() -> bool:
            found[:] = self.in_hand(pid)
            return bool(found)

        self._it.service.wait_until(has_some, SLOW_S)
        return list(found)

    def in_hand(self, pid: int) -> list[str]:
        """The files that a worker has in hand now."""
        return [key for job_id in self._in_hand(pid) for key in self.keys_of(job_id)]

    def has_in_hand(self, pid: int) -> bool:
        return bool(self._in_hand(pid))

    def _in_hand(self, pid: int) -> list[str]:
        pattern = f"{self.names.held('')}*-{pid}-*"
        return [job.decode() for key in self._client.scan_iter(match=pattern) for job in self._client.smembers(key)]

    def _some_job(self) -> str:
        found: list[str] = []

        def is_there() -> bool:
            found[:] = self.jobs()
            return bool(found)

        self._it.service.wait_until(is_there, SLOW_S)
        return self._it.dice.choice(found)

    @contextmanager
    def rewriting(self, delays_s: Sequence[float]) -> Iterator[None]:
        """Files change soon after their page was first sent, in turn after each of the delays."""

        def meddle(job_id: str, number: int) -> None:
            keys = self.keys_of(job_id)
            time.sleep(delays_s[number % len(delays_s)])
            for key in keys[:2]:
                self.rewrite(key)

        with self._meddling(meddle):
            yield

    @contextmanager
    def copying(self) -> Iterator[None]:
        """Every job is queued some times more, under other ids."""

        def meddle(job_id: str, number: int) -> None:
            raw = self._client.get(f"arq:job:{job_id}")
            score = self._client.zscore(self.names.checks, job_id)
            if raw is None or score is None:
                return
            for copy in range(COPIES[number % len(COPIES)]):
                other = f"{job_id}:copy-{copy}"
                self._client.set(f"arq:job:{other}", raw, ex=60)
                self._client.zadd(self.names.checks, {other: score})
                self.copied.append(other)

        with self._meddling(meddle):
            yield

    @contextmanager
    def _meddling(self, meddle: Callable[[str, int], None]) -> Iterator[None]:
        over = threading.Event()
        failed: list[BaseException] = []

        def look() -> None:
            seen: set[str] = set()
            try:
                while not over.wait(LOOK_EVERY_S):
                    for job_id in self.jobs():
                        if job_id not in seen and ":copy-" not in job_id:
                            seen.add(job_id)
                            meddle(job_id, len(seen))
            except BaseException as error:  # noqa: BLE001 - told by whoever waits
                failed.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        assert not failed, failed
