"""A queue with a password: told apart from one that does not answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from redis import Redis

from app.doctor import diagnose
from domain.checks import CheckResult, CheckState
from domain.errors import ConfigurationError, QueueError
from domain.settings import QueueSettings
from scheduler.queue.address import QueueAddress
from scheduler.queue.embedded import EmbeddedValkey
from tests.support.runs import Base, base_in
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


def test_a_password_out_of_a_file_reaches_the_queue(
    tmp_path: Path, server: QueueAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5, 7: `queue.password_file` is what a run and the doctor use; a file that is not there is told before."""
    docs = make_tree(tmp_path / "docs", {"a.md": "# A\n\ntext\n"})
    monkeypatch.setattr("scheduler.queue.client.CONNECT_RETRIES", 0)
    with Redis(unix_socket_path=server.socket) as client:
        client.config_set("requirepass", "s3cr:et/%41")
    secret = tmp_path / "queue-password"
    made = base_in(tmp_path / "home")
    queue = QueueSettings(f"unix://{server.socket}", password_file=secret)
    base = Base(replace(made.settings, queue=queue))
    with pytest.raises(ConfigurationError, match="is not there"):
        base.index(docs)
    assert checks(base)["queue"].state is CheckState.FAIL
    secret.write_text("wr0ng\n", "utf-8")
    with pytest.raises(QueueError, match="refuses") as refused:
        base.index(docs)
    assert "wr0ng" not in refused.value.message + refused.value.hint
    secret.write_text("s3cr:et/%41\n", "utf-8")
    assert base.index(docs).counts == {"added": 1}
    queue_check = checks(base)["queue"]
    assert queue_check.state is CheckState.PASS
    assert "s3cr" not in str(queue_check)


def checks(base: Base) -> dict[str, CheckResult]:
    return {result.name: result for result in diagnose(base.settings)}
