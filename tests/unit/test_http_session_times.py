"""What sessions, tries and tokens of forms are, by the clock."""

from server.http.sessions import (
    ATTEMPTS_AT_ONCE,
    FORM_LIVES_S,
    MOST_SESSIONS,
    SESSION_LIVES_S,
    Attempts,
    FormTokens,
    Sessions,
    same,
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_session_ends_by_itself_and_the_oldest_of_too_many() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    cookie = sessions.begin(frozenset(("read",)))
    assert cookie not in repr(vars(sessions))
    clock.now_s += SESSION_LIVES_S - 1
    assert sessions.of(cookie) is not None
    clock.now_s += 1
    assert sessions.of(cookie) is None
    many = [sessions.begin(frozenset()) for _ in range(MOST_SESSIONS + 1)]
    assert sessions.of(many[0]) is None
    assert sessions.of(many[1]) is not None
    assert sessions.of("") is None


def test_tries_come_back_with_time_and_are_counted_by_address() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    assert [attempts.may_try("192.0.2.1") for _ in range(ATTEMPTS_AT_ONCE + 1)] == [True] * ATTEMPTS_AT_ONCE + [False]
    assert attempts.may_try("192.0.2.2")
    clock.now_s += 1
    assert [attempts.may_try("192.0.2.1") for _ in range(2)] == [True, False]
    assert sum(attempts.may_try(f"2001:db8::{number:x}") for number in range(20)) == ATTEMPTS_AT_ONCE
    assert attempts.may_try("2001:db8:1::1")


def test_tokens_of_forms() -> None:
    clock = Clock()
    forms = FormTokens(clock)
    token = forms.fresh()
    assert forms.is_fresh(token)
    assert not FormTokens(clock).is_fresh(token), "another process"
    clock.now_s += FORM_LIVES_S
    assert not forms.is_fresh(token)
    assert forms.lasting("a") == forms.lasting("a") != forms.lasting("b")
    assert not forms.is_fresh(forms.lasting("a"))
    assert not same("", "")
