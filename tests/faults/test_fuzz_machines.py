"""What other programs hand over: jobs of a broker, answers of an embeddings server (T21..T26).

Nothing of it ends a worker; nothing of it is believed but what is right in every part.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from arq.jobs import deserialize_job as arq_job

from domain.errors import EmbeddingsChangedError
from domain.settings import EmbeddingsSettings
from embedding.client import EmbeddingClient
from embedding.failures import Rejected, Unreachable
from embedding.port import Expected
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import (
    CHECK_PAGE,
    PARK,
    PAYLOAD_CAP_BYTES,
    WRITE_PAGE,
    PayloadError,
    decode_check,
    decode_write,
    deserialize_job,
)
from tests.support.depth import scaled
from tests.support.embedding_server import vector_of
from tests.support.figures import NoteFigure
from tests.support.fuzz_answers import body, pieces_of, response
from tests.support.fuzz_payloads import payload
from tests.support.fuzz_trying import ASKED, Trial, chooser
from workers.checking import check_page
from workers.context import WorkerContext
from workers.jobs import is_current
from workers.sink import DocumentSink
from workers.spool import read_page, write_page

PAYLOADS, ANSWERS = scaled(300, ASKED), scaled(150, ASKED)
SECRET = "SECRET of the disk"
DIMENSION = 8
TEXTS = ("The board met on Tuesday.", "Nobody was told of it.", "Ruritania was not mentioned.")
KEY = "canary-7f3a9d51c2"


def a_worker(root: Path) -> WorkerContext:
    """Of run 1, generation 1, over the root `docs`; jobs do not come as far as its sink here."""

    def stop(error: Exception) -> None:
        raise AssertionError("the worker is ended") from error

    return WorkerContext(
        names=QueueNames("base"), run=1, generation=1, roots={"docs": root}, max_file_bytes=100_000,
        substring_index="auto", sink=cast(DocumentSink, None), executor=cast(ThreadPoolExecutor, None), stop=stop,
    )  # fmt: skip


def a_tree(place: Path) -> Path:
    """A root with a secret beside it."""
    root = place / "docs"
    (root / "sub").mkdir(parents=True)
    for name in ("a.md", "sub/b.md", "c.txt"):
        (root / name).write_text(f"# {name}\n\nquagga\n", encoding="utf-8")
    (place / "secret.md").write_text(SECRET, encoding="utf-8")
    (place / "docs-secret.md").write_text(SECRET, encoding="utf-8")
    return root


def assert_is_a_job(raw: bytes) -> str:
    """Whatever comes, arq is given a job of ours with the types that it relies on, which fits the queue again."""
    made = deserialize_job(raw)
    assert made["f"] in (CHECK_PAGE, WRITE_PAGE, PARK) and made["k"] == {} and made["t"] is None
    (argument,) = cast(tuple[Any, ...], made["a"])
    assert type(argument) is bytes and len(argument) <= PAYLOAD_CAP_BYTES and type(made["et"]) is int
    assert arq_job(raw, deserializer=deserialize_job).function == made["f"]
    return str(made["f"])


def work_on(raw: bytes, context: WorkerContext, spool: Path) -> str:
    """As the jobs of both queues do; a page that was checked goes through the spool."""
    job = assert_is_a_job(raw)
    inner = raw if job == PARK else cast(tuple[bytes], deserialize_job(raw)["a"])[0]
    try:
        write = decode_write(inner)
    except PayloadError as error:
        assert len(str(error)) < 300
    else:
        assert (spool / write.name).resolve().parent == spool.resolve()
        assert read_page(spool, write.name) is None
        return "a write"
    try:
        check = decode_check(inner)
    except PayloadError as error:
        assert len(str(error)) < 300
        return "parked"
    if not is_current(check, context):
        return "parked as stale"
    if check.kind != "check":
        return "for the embedder"
    page = check_page(check.page(), check.run, context.rules(check.root))
    assert SECRET not in repr(page)
    assert page.file_count + len(page.failures) == len(check.files)
    assert not any(failure.reason.value == "unexpected" for failure in page.failures), page.failures
    write_page(spool, "1-1-1.part-page", page)
    again = read_page(spool, "1-1-1.part-page")
    assert again is not None and msgspec.msgpack.encode(again) == msgspec.msgpack.encode(page)
    return "checked"


def test_whatever_lies_in_the_queue_is_a_job_or_is_parked(note_figure: NoteFigure, tmp_path: Path) -> None:
    """T26: deserialised, decoded, held against the run, and carried out where it is of this run."""
    trial = Trial("payloads")
    spool = tmp_path / "spool"
    spool.mkdir()
    context = a_worker(a_tree(tmp_path))
    for number in range(PAYLOADS):
        raw = payload(chooser("payloads", number))
        trial.take(f"{number}: {raw[:200]!r}", partial(work_on, raw, context, spool))
    note_figure(trial.figure(("P4", "T5", "T19", "T26"), "payloads of both queues"))
    assert trial.faults == [], trial.report()
    assert min(trial.outcomes["checked"], trial.outcomes["parked"], trial.outcomes["a write"]) > PAYLOADS // 60


class OneAnswer:
    """A server on loopback that sends `raw`, whatever it is asked, and ends the connection."""

    raw = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(self.raw)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def assert_placed(vectors: Any, content: bytes) -> None:
    """Each vector is that of the object with its index, by another reader of JSON."""
    objects = json.loads(content)["data"]
    assert len(objects) == len(TEXTS)
    for one in objects:
        assert vectors[one["index"]].tolist() == np.array(one["embedding"], np.float32).tolist()


async def ask(client: EmbeddingClient, content: bytes, is_framed_rightly: bool) -> str:
    try:
        answer = await client.request_once(TEXTS)
    except (Rejected, Unreachable, EmbeddingsChangedError) as error:
        words = f"{error} {getattr(error, 'hint', '')}"
        assert len(words) < 4_000 and KEY not in words and not any(text in words for text in TEXTS)
        assert words.replace("\n", "").isprintable(), words
        return f"refused ({type(error).__name__})"
    assert answer.vectors.shape == (len(TEXTS), DIMENSION) and np.isfinite(answer.vectors).all()
    assert answer.served_model == "served"
    if is_framed_rightly:
        assert_placed(answer.vectors, content)
    return "believed"


def test_whatever_an_embeddings_server_sends_is_right_in_every_part_or_refused(note_figure: NoteFigure) -> None:
    """T21..T24, P6: bytes of HTTP, of JSON and of numbers, through the client as it is."""
    trial = Trial("answers")
    honest = pieces_of([vector_of(text, DIMENSION) for text in TEXTS])
    server = OneAnswer()

    async def opened() -> tuple[asyncio.Server, EmbeddingClient]:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        settings = EmbeddingsSettings(base_url=f"http://127.0.0.1:{port}/v1", model="asked", timeout_s=60.0)
        return listening, EmbeddingClient(settings, KEY, expected=Expected(DIMENSION, "served"))

    def ask_now(content: bytes, is_right: bool) -> str:
        return runner.run(ask(client, content, is_right))

    with asyncio.Runner() as runner:
        listening, client = runner.run(opened())
        for number in range(ANSWERS):
            random = chooser("answers", number)
            content = body(random, honest, b'"served"')
            server.raw = response(random, content)
            is_right = server.raw.startswith(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content)
            )
            trial.take(
                f"{number}: {server.raw[:300]!r}",
                partial(ask_now, content, is_right),
            )
        runner.run(client.aclose())
        listening.close()
        runner.run(listening.wait_closed())
    note_figure(trial.figure(("P6", "P16", "T21", "T22", "T23", "T24"), "answers of an embeddings server"))
    assert trial.faults == [], trial.report()
    assert min(trial.outcomes["believed"], trial.outcomes["refused (Rejected)"]) > ANSWERS // 60
