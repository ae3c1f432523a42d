"""What a run makes of the way in which one of its worker processes has ended."""

import msgspec
import pytest

from app.assignment import LastWords
from app.worker_pool import ending
from domain.errors import (
    ConfigurationError,
    DiskFullError,
    EmbeddingsChangedError,
    EmbeddingsUnavailableError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    QueueError,
    StorageError,
)


@pytest.mark.parametrize(
    "kind",
    [
        ConfigurationError,
        DiskFullError,
        EmbeddingsChangedError,
        EmbeddingsUnavailableError,
        FormatError,
        IntegrityError,
        QueueError,
        StorageError,
    ],
)
def test_a_worker_that_says_why_ends_the_run_with_that(kind: type[KnowledgeError]) -> None:
    """Exit status, code, words and hint are those of the worker's error: never "unexpected"."""
    words = msgspec.json.encode(LastWords(kind.code, "this is wrong", "do that")).decode()
    error = ending(kind.exit_status, words)
    assert type(error) is kind
    assert (error.message, error.hint) == ("this is wrong", "do that")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (12, FormatError),
        (13, IntegrityError),
        (14, StorageError),
        (15, EmbeddingsUnavailableError),
        (16, QueueError),
    ],
)
@pytest.mark.parametrize("said", ["", "something else", "{}"])
def test_a_status_of_ours_ends_the_run_without_words_too(status: int, kind: type[KnowledgeError], said: str) -> None:
    error = ending(status, said)
    assert type(error) is kind
    assert said in error.message


@pytest.mark.parametrize("status", [-9, -11, 0, 1, 2, 137])
@pytest.mark.parametrize("said", ["", "No module named app", '{"code": "", "message": "boom", "hint": ""}'])
def test_any_other_death_is_for_another_worker_to_make_up_for(status: int, said: str) -> None:
    """R23; 2 is also what an interpreter ends with that was started in a wrong way."""
    assert ending(status, said) is None
