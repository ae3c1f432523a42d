"""A queue with a password: told apart from one that does not answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from domain.errors import QueueError
from scheduler.queue.address import QueueAddress
from scheduler.queue.embedded import EmbeddedValkey
from tests.support.runs import base_in
from tests.support.trees import make_tree

pytestmark = pytest.mark.redis


@pytest.fixture
def server() -> Iterator[QueueAddress]:
    started = EmbeddedValkey()
    try:
        yield started.start()
    finally:
        started.stop()


def test_a_queue_that_refuses_the_password_says_so(
    tmp_path: Path, server: QueueAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P19, R37: a wrong password is not told as silence, and is not shown; the right one works."""
    docs = make_tree(tmp_path / "docs", {"a.md": "# A\n\ntext\n"})
    base = base_in(tmp_path / "home")
    monkeypatch.setattr("scheduler.queue.client.CONNECT_RETRIES", 0)
    with Redis(unix_socket_path=server.socket) as client:
        client.config_set("requirepass", "s3cret")
    for credentials in ("", ":wr0ng@"):
        with pytest.raises(QueueError, match="refuses") as refused:
            base.index(docs, queue_url=f"unix://{credentials}{server.socket}")
        assert refused.value.exit_status == 16
        assert "wr0ng" not in refused.value.message + refused.value.hint
    counts = base.index(docs, queue_url=f"unix://:s3cret@{server.socket}", worker_processes=1).counts
    assert counts == {"added": 1}
