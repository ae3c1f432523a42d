"""What a person, a program and an agent are told of a base: commands and tool calls in this process, comparable."""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.config import load_with_sources, locate
from cli.main import run
from server.mcp_calls import ToolCalls
from server.mcp_server import KnowledgeMcpServer
from server.mcp_tools import TOOLS

# of an object, what says how it ended; the rest are results
_SAID = (
    "tier", "status", "mode", "note", "matched", "no_match_cause", "state", "why", "exit_status", "is_error", "error",
    "dropped_terms", "did_you_mean", "pending_vectors",
)  # fmt: skip
_COUNTED = ("results", "documents", "words", "terms", "sources", "chunks")
# checks that tell of the index; of the others, which tell of the machine, only those that have failed are told
_CHECKS = (
    "store_present", "state", "format", "lock", "index_consistent", "index_complete", "index_searchable", "last_run",
    "file_structure",
)  # fmt: skip
_OF_THE_MACHINE = ("checkpoint", "readers", "extensions", "free_disk", "file_system", "journal", "queue")
_CHECK_LINE = re.compile(r"(ok {6}|FAILED {2}|not run |warning ) ([a-z_ ]+?)(?= of | {2,}|$)")
_SAME: Sequence[tuple[str, str]] = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+00:00)", "<time>"),
    (r"(\d+(\.\d+)? (s|min|h|days)( \d+ (s|min))?) ago|just now", "<ago>"),
    (r"took \d+(\.\d+)? s|took \d+ min \d+ s", "took <long>"),
    (r"\d+(\.\d+)? (kB|MB|bytes)\b", "<size>"),
    (r"\b[0-9a-f]{64}\b", "<sha256>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"document_sha256:? [0-9a-f]{12}\b", "document_sha256 <sha256>"),
    (r"process \d+", "process <pid>"),
    (r"\b\d+ MiB free", "<size> free"),
    (r"\b\d+ checks? (was|were) not run", "<some> checks were not run"),
    (r"\bSQLite \d+(\.\d+)+", "SQLite <version>"),
)


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: the exit status (None: of a tool call), and what was written, with all that differs from run to run
    replaced."""

    status: int | None
    out: str
    err: str = ""

    @property
    def words(self) -> str:
        return f"{self.out}\n{self.err}"

    def lines(self) -> Iterator[str]:
        if self.status is not None:
            yield f"exit {self.status}"
        yield from (f"out| {line}".rstrip() for line in self.out.splitlines())
        yield from (f"err| {line}".rstrip() for line in self.err.splitlines())


@dataclass(frozen=True, slots=True)
class Listener:
    """Asks one base in one folder, in an environment of its own."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def command(self, arguments: Sequence[str]) -> Told:
        with self._here():
            status, out, err = _called(arguments)
        if "--json" in arguments:
            out = json.dumps(self._said(json.loads(out)), indent=1, ensure_ascii=False)
        elif arguments[0] in ("doctor", "verify"):
            out = "\n".join(_telling_checks(out.splitlines()))
        return Told(status, self._same(out), self._same(err))

    def tool(self, name: str, given: Mapping[str, Any], *, as_object: bool) -> Told:
        """One of the two forms of an answer: a client shows the model only one of them."""
        with self._here():
            loaded = load_with_sources(
                locate(self.folder, config=None, environ=self.environ), dict(os.environ), cwd=self.folder
            )
            calls = ToolCalls(loaded)
            try:
                server = KnowledgeMcpServer(calls, [tool.name for tool in TOOLS])
                answer = server._answer(name, dict(given), lambda: None)
            finally:
                calls.close()
        if as_object:
            value = self._said(answer.value) | ({"is_error": True} if answer.is_error else {})
            return Told(None, self._same(json.dumps(value, indent=1, ensure_ascii=False)))
        head, frame, _ = answer.text.partition("\nWhat stands between the two lines")
        return Told(None, self._same(f"{head}\n(the frame)" if frame else head))

    @contextlib.contextmanager
    def _here(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in self.environ}
        os.environ.update(self.environ)
        try:
            with contextlib.chdir(self.folder):
                yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def _said(self, value: Mapping[str, Any]) -> dict[str, Any]:
        said = {key: value[key] for key in _SAID if key in value}
        said |= {key: len(value[key]) for key in _COUNTED if isinstance(value.get(key), list)}
        if isinstance(value.get("index"), dict):
            said["index"] = {
                key: value["index"].get(key) for key in ("documents", "pending_vectors", "run_in_progress")
            }
        said |= {"documents": value["documents"]} if isinstance(value.get("documents"), int) else {}
        if isinstance(value.get("query"), dict):
            said["query"] = {key: value["query"][key] for key in ("tier", "cause", "sentence")}
        if "checks" in value:
            said["checks"] = {
                check["name"]: f"{check['state']}: {check['detail']}"
                for check in value["checks"]
                if _is_telling(check["name"], check["state"] == "pass")
            }
        return said

    def _same(self, text: str) -> str:
        text = text.replace(str(self.folder.resolve()), "<folder>").replace(str(self.folder), "<folder>")
        for pattern, replacement in _SAME:
            text = re.sub(pattern, replacement, text)
        return text


def _is_telling(name: str, is_passed: bool) -> bool:
    if name in _OF_THE_MACHINE:
        return False
    return not is_passed or name in _CHECKS or name.startswith("embeddings")


def _telling_checks(lines: Sequence[str]) -> Iterator[str]:
    """Of a list of checks, those that tell of the index, with their hints, and all that is no check."""
    is_kept = True
    for line in lines:
        found = _CHECK_LINE.match(line)
        if found is not None:
            is_kept = _is_telling(found[2].replace(" ", "_"), found[1].startswith("ok"))
        elif not line.startswith("         "):
            is_kept = True
        if is_kept:
            yield re.sub(r" {2,}(?=\S)", "  ", line) if found is not None else line


def _called(arguments: Sequence[str]) -> tuple[int, str, str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        status = run(list(arguments))
    finally:
        sys.stdout, sys.stderr = before
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
        stream.close()
    return status, texts[0], texts[1]
