"""Codes and statuses of errors are a promise (R37): the whole tree against a golden table."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import app
import cli
import domain
import embedding
import retrieval
import scheduler
import server
import store
import workers
from app.present import error_json
from domain.errors import KnowledgeError

# code: (exit status, HTTP status)
GOLDEN = {
    "unexpected": (1, 500),
    "usage": (2, 400),
    "configuration": (2, 400),
    "configuration_untrusted": (2, 400),
    "disabled": (2, 400),
    "unsafe_place": (2, 400),
    "query_empty": (2, 400),
    "semantic_not_configured": (2, 400),
    "not_found": (4, 404),
    "citation_malformed": (4, 404),
    "refused": (4, 409),
    "index_not_built": (10, 409),
    "corpus_empty": (10, 409),
    "index_inconsistent": (10, 409),
    "locked": (11, 409),
    "format_mismatch": (12, 500),
    "base_mismatch": (12, 500),
    "integrity": (13, 500),
    "storage": (14, 500),
    "disk_full": (14, 507),
    "embeddings_unavailable": (15, 503),
    "embeddings_changed": (15, 409),
    "queue_unreachable": (16, 503),
    "too_many_streams": (1, 503),
    "interrupted": (130, 500),
    "cancelled": (130, 500),
    "store_refused": (1, 500),  # these two are told of a file, never of a command
    "scan_too_slow": (1, 500),
}


def every_error() -> Iterator[type[KnowledgeError]]:
    """All classes of the tree, wherever they are defined."""
    for package in (domain, store, embedding, retrieval, scheduler, workers, app, server, cli):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    waiting = [KnowledgeError]
    while waiting:
        error = waiting.pop()
        yield error
        waiting.extend(error.__subclasses__())


def test_every_error_stands_in_the_table_with_its_statuses() -> None:
    found = {error.code: (error.exit_status, error.http_status) for error in every_error()}
    assert found == GOLDEN


def test_no_two_errors_share_a_code() -> None:
    codes = [error.code for error in every_error()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("code", sorted(GOLDEN))
def test_every_error_is_the_same_object_in_json(code: str) -> None:
    error = next(error for error in every_error() if error.code == code)
    told = error_json(error("what happened", hint="what to do"))
    assert told == {"error": {"code": code, "message": "what happened", "hint": "what to do"}}
