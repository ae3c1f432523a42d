"""What limits the requests to a model's server and the answers that are taken (T22, R18, R21)."""

from datetime import UTC, datetime

import pytest

from embedding.failures import Rejected
from embedding.limits import MAX_ANSWER_BYTES, Pace, answer_cap_bytes, retry_after_s, share_of_concurrency
from embedding.words import excerpt

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "dimension", "cap_bytes"),
    [
        (64, 384, 64 * 384 * 32 + 65536),
        (1, 4096, 4096 * 32 + 65536),
        (3, None, 3 * 16384 * 32 + 65536),
        (4096, 16384, MAX_ANSWER_BYTES),
        (100_000, None, MAX_ANSWER_BYTES),
    ],
)
def test_an_answer_may_be_as_long_as_its_vectors_need(count: int, dimension: int | None, cap_bytes: int) -> None:
    """T22; never above 64 MiB."""
    assert answer_cap_bytes(count, dimension) == cap_bytes


@pytest.mark.parametrize(
    ("concurrency", "processes", "expected"),
    [(4, 1, 4), (4, 2, 2), (4, 3, 1), (4, 4, 1), (4, 9, 1), (6, 3, 2), (49, 49, 1), (1, 1, 1)],
)
def test_processes_share_the_requests_at_a_time(concurrency: int, processes: int, expected: int) -> None:
    assert share_of_concurrency(concurrency, 1 / processes) == expected


@pytest.mark.parametrize(
    ("header", "expected_s"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("999999999", 86_400.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30.0),
        ("Sun Mar  1 12:00:30 2026", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Fri, 01 Jan 9999 00:00:00 GMT", 86_400.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("1e9", None),
        ("nan", None),
        ("٣", None),
        ("9" * 5000, None),
        ("Sun, 99 Foo 2026 12:00:30 GMT", None),
        ("Sun, 01 Mar 99999999999 12:00:30 GMT", None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(header: str | None, expected_s: float | None) -> None:
    """R21; nonsense is as if the server had not asked."""
    assert retry_after_s(header, NOW) == expected_s


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds


async def test_requests_begin_at_even_distances() -> None:
    clock = Clock()
    pace = Pace(30, clock=clock, sleep=clock.sleep)
    began_s = []
    for _ in range(4):
        await pace.wait_turn()
        began_s.append(clock.now_s)
    assert began_s == [100.0, 102.0, 104.0, 106.0]


async def test_a_pause_saves_nothing_up() -> None:
    clock = Clock()
    pace = Pace(30, clock=clock, sleep=clock.sleep)
    await pace.wait_turn()
    clock.now_s = 200.0
    began_s = []
    for _ in range(3):
        await pace.wait_turn()
        began_s.append(clock.now_s)
    assert began_s == [200.0, 202.0, 204.0]


async def test_no_limit_is_no_wait() -> None:
    clock = Clock()
    pace = Pace(0, clock=clock, sleep=clock.sleep)
    for _ in range(100):
        await pace.wait_turn()
    assert clock.now_s == 100.0


@pytest.mark.parametrize("status", [400, 413, 422])
def test_only_a_single_text_is_perhaps_too_long(status: int) -> None:
    assert Rejected("", status=status, count=1).is_too_long
    assert not Rejected("", status=status, count=2).is_too_long
    assert not Rejected("", status=500, count=1).is_too_long


def test_which_statuses_are_refusals_of_everything() -> None:
    assert [status for status in range(400, 600) if Rejected("", status=status).is_refusing] == [401, 403, 404]
    assert all(Rejected("", status=status).is_refusing for status in range(300, 400))


KEY = "sk-canary-0123456789"
TEXT = "The board decided on Tuesday\nto close the plant in Ruritania and to tell nobody before the spring."


@pytest.mark.parametrize(
    "echo",
    [
        TEXT,
        TEXT.upper(),
        f'{{"detail":[{{"loc":["input"],"input":"{TEXT[40:80]}"}}]}}',
        f"bad key {KEY}",
        "bad key sk-canary-***",
    ],
)
def test_a_quoted_error_never_repeats_what_was_sent(echo: str) -> None:
    """S1-26; a validation error often gives its input back."""
    assert excerpt(echo.encode(), ["something else entirely", TEXT], KEY) == ""


def test_a_text_that_is_given_back_in_escapes_is_known_too() -> None:
    text = "Совет решил закрыть завод весной и никому не говорить"
    assert excerpt(b'{"input":"' + text.encode("ascii", "backslashreplace") + b'"}', [text], "") == ""


def test_a_short_text_is_known_too() -> None:
    assert excerpt(b'{"detail":"cannot embed: Ruritania"}', ["ruritania"], "") == ""


def test_a_quoted_error_is_short_and_harmless_to_a_terminal() -> None:
    quoted = excerpt(b"\x1b]0;x\x07 out of\r\n  memory \xff\xe2\x80\xae" + b"!" * 5000, [TEXT], KEY)
    assert quoted.startswith("]0;x out of memory")
    assert quoted.isprintable()
    assert len(quoted) <= 200
