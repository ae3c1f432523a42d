"""What the queue is told (P19): every command that it is sent is listened to while a run with vectors goes on."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.embedding_server import embedding_server
from tests.support.trees import make_tree
from tests.support.valkey import serving
from tests.support.vector_runs import DIMENSION, base_with, with_embeddings
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis

KEY = "canary-of-a-key-5d02b7"
WORD = "canaryofatext"
FILES = 8


@contextmanager
def listened_to(queue: Path) -> Iterator[bytearray]:
    """Every command that the queue is sent while the block runs."""
    heard = bytearray()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(queue))
        line.sendall(b"MONITOR\r\n")

        def listen() -> None:
            while told := line.recv(1 << 16):
                heard.extend(told)

        listener = threading.Thread(target=listen)
        listener.start()
        eventually(lambda: heard.startswith(b"+OK"))
        try:
            yield heard
        finally:
            line.shutdown(socket.SHUT_RDWR)
            listener.join()


def stored_in(queue: Path) -> bytes:
    """All that it holds, as it would write it to a disk."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(queue))
        line.sendall(b"KEYS *\r\n")
        return line.recv(1 << 20)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_key_and_texts_are_in_nothing_that_the_queue_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """P19: a job names files; the key stays with who embeds, the text with who reads."""
    monkeypatch.setenv("KNOWLEDGE_TEST_KEY", KEY)
    docs = make_tree(tmp_path / "docs", {f"{n}.md": f"# Part {n}\n\n{WORD} {n}\n" for n in range(FILES)})
    (tmp_path / "queue").mkdir()
    with (
        embedding_server(dimension=DIMENSION, key=KEY) as server,
        base_with(tmp_path, server) as base,
        serving(tmp_path / "queue") as queue,
        listened_to(queue) as heard,
    ):
        keyed = with_embeddings(base, server, api_key_env="KNOWLEDGE_TEST_KEY")
        report = keyed.index(docs, queue_url=f"unix://{queue}", worker_processes=processes)
        assert report.counts == {"added": FILES}
        assert any(KEY in request.headers.get("authorization", "") for request in server.requests)
        stored = stored_in(queue)
        eventually(lambda: b'"KEYS"' in heard)  # so all that was sent before it was heard
        assert b"docs/0.md" in bytes(heard)
        assert [secret for secret in (KEY, WORD) if secret.encode() in bytes(heard) + stored] == []
