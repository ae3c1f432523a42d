"""What an error is over HTTP."""

import pytest

from domain.errors import KnowledgeError, NotFoundError
from server.http.answers import problem
from server.http.event_stream import TooManyStreamsError


def kinds(kind: type[KnowledgeError] = KnowledgeError) -> list[type[KnowledgeError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in kinds(child))]


UNAVAILABLE = [kind for kind in kinds() if kind.http_status == 503]


@pytest.mark.parametrize("kind", UNAVAILABLE)
def test_what_is_not_there_now_says_when_to_come_again(kind: type[KnowledgeError]) -> None:
    error = KnowledgeError.__new__(kind)
    error.message, error.hint = "away", ""
    answer = problem(error)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


def test_nothing_else_does() -> None:
    assert TooManyStreamsError in UNAVAILABLE
    assert "retry-after" not in problem(NotFoundError("gone", hint="")).headers
