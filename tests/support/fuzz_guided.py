"""Guided by what each input reaches: the parsers that work on bytes alone, one at a time, in a process of their own.

    python -m tests.support.fuzz_guided SURFACE CORPUS INPUTS

The working directory is written to, and CORPUS, which may hold inputs to begin with. Ends with status 0 where all was
well; a fault is told on standard error, with the input. atheris ends the process when it has done so many.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

with atheris.instrument_imports(include=["app", "domain", "embedding", "retrieval", "scheduler", "store", "workers"]):
    from app.config_convert import convert_block
    from app.config_document import read_document
    from app.config_rules import block_problems
    from domain.citations import Citation
    from domain.errors import CitationMalformedError, ConfigurationError, FormatError, IntegrityError, UsageError
    from domain.markdown.frontmatter import metadata_of
    from embedding.answers import read_answer
    from embedding.failures import Rejected
    from retrieval.match_query import parse_match
    from retrieval.path_filter import compile_glob
    from retrieval.query_text import parse_query
    from scheduler.ignore_rules import IGNORE_FILE_NAME, read_ignore_file
    from scheduler.queue.payloads import PayloadError, decode_check, decode_write, deserialize_job
    from store.backup_manifest import MAGIC, read_manifest
    from workers.chunker import MAX_BREADCRUMB_CHARS, cut

_BLOCK = 512


def try_chunker(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    document = cut(text, "docs/a.md", markdown=True)
    assert "".join(chunk.lead + chunk.body for chunk in document.chunks) + document.tail == text
    assert all(len(chunk.heading_path) <= MAX_BREADCRUMB_CHARS for chunk in document.chunks)
    metadata_of(text)


def try_match(data: bytes) -> None:
    with suppress(UsageError):
        text = data.decode("utf-8", "replace")
        terms = parse_match(text).terms
        assert not terms or parse_match(" ".join(f"{'-' * one.excluded}{one.surface}" for one in terms)).terms == terms


def try_query(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape" if len(data) % 2 else "replace")
    with suppress(UsageError):
        parse_query(text)
    with suppress(UsageError):
        compile_glob(text)
    with suppress(CitationMalformedError):
        assert Citation.parse(text).format().rpartition("#")[0] == text.rpartition("#")[0]


def try_configuration(data: bytes) -> None:
    path = Path.cwd() / "knowledge.yaml"
    path.write_bytes(data)
    path.chmod(0o600)
    with suppress(ConfigurationError):
        block, problems = convert_block(read_document(path).block or {})
        assert all(problem.text for problem in [*problems, *block_problems(block)])


def try_payload(data: bytes) -> None:
    made = deserialize_job(data)
    assert type(made["a"]) is tuple and type(made["et"]) is int
    for decode in (decode_check, decode_write):
        with suppress(PayloadError):
            decode(data)


def try_answer(data: bytes) -> None:
    with suppress(Rejected):
        answer = read_answer(data, 2)
        assert answer.vectors.shape[0] == 2 and answer.vectors.any(axis=1).all()


def try_manifest(data: bytes) -> None:
    path = Path.cwd() / "b.tar"
    path.write_bytes(MAGIC.ljust(_BLOCK, b"\0") + data)
    with suppress(FormatError, IntegrityError):
        read_manifest(path)[0].close()


def try_ignore_file(data: bytes) -> None:
    (Path.cwd() / IGNORE_FILE_NAME).write_bytes(data)
    read_ignore_file(Path.cwd(), lambda note: None)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "chunker": try_chunker,
    "match": try_match,
    "query": try_query,
    "configuration": try_configuration,
    "payload": try_payload,
    "answer": try_answer,
    "manifest": try_manifest,
    "ignore": try_ignore_file,
}
LONGEST_BYTES = 4_096
HANG_S = 20  # of one input


def try_one_of_all(data: bytes) -> None:
    """Which one, the first byte says."""
    if data:
        names = sorted(TARGETS)
        TARGETS[names[data[0] % len(names)]](data[1:])


def main() -> None:
    surface, corpus, inputs = sys.argv[1:]
    target = try_one_of_all if surface == "all" else TARGETS[surface]
    arguments = [f"-runs={inputs}", f"-timeout={HANG_S}", f"-max_len={LONGEST_BYTES}", "-seed=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *arguments, corpus], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
