"""The tools of MCP over one base. A reset, a rebuild or an exchange of the files is followed without a restart: each
call opens the index anew, or borrows it from a service that keeps it open and looks whether it is still the same.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.config import Loaded, process_environ
from app.consistency import absence_of, standing_of, told_consistently
from app.enumerating import document_budget, enumerate_base
from app.heap import give_back_free_memory
from app.mcp_cursor import about_call, parse_cursor
from app.mcp_exposure import ENUMERATE, READ, SEARCH
from app.open_bases import OpenBases
from app.present import not_built_message
from app.present_http import told_to_readers
from app.present_mcp import ToolAnswer, budget_chars
from app.present_mcp_enumerate import enumerate_not_built_answer, enumerate_tool_answer
from app.present_mcp_read import read_not_built_answer, read_tool_answer
from app.present_mcp_search import Page, not_built_tool_answer, search_tool_answer
from app.query_embedder import QueryEmbedder
from app.search_context import index_state, refuse_unknown_root, urls_of
from app.searching import answer
from app.showing import KnownPlaces, ShowRequest, show
from app.tiers import base_tier
from app.wiring import ReadableBase, readable_base
from domain.errors import KnowledgeError, NotBuiltError, UsageError
from domain.settings import Settings
from domain.status import DegradeCause, Tier
from retrieval.answer import LEAST_SIMILARITY, SearchRequest
from retrieval.match_answer import MatchRequest
from retrieval.modes import parse_mode
from server.mcp_arguments import MAX_NEIGHBOURS, EnumerateArguments, ReadArguments, SearchArguments
from store.vector_port import NO_VECTORS

Stopped = Callable[[], DegradeCause | None]
_SHA256 = re.compile(r"[0-9a-f]{12,64}")


class SharedReading(NamedTuple):
    """What a service lends: it stays the service's to close."""

    bases: OpenBases
    embedder: QueryEmbedder | None


class ToolCalls:
    """Answers calls, from any thread. What embeds queries is made when the first needs it, and let go by `close`.

    Without `shared`, no file of the index is open between two calls: a client may leave its server alone for days, and
    what is deleted meanwhile gives its room back.
    """

    def __init__(self, loaded: Loaded, shared: SharedReading | None = None) -> None:
        self._loaded = loaded
        self._shared = shared
        embeddings = loaded.settings.embeddings
        self._own_embedder = QueryEmbedder(embeddings) if shared is None and embeddings is not None else None
        self._embedder = shared.embedder if shared is not None else self._own_embedder

    @property
    def settings(self) -> Settings:
        return self._loaded.settings

    def close(self) -> None:
        if self._own_embedder is not None:
            self._own_embedder.close()

    def search(self, arguments: SearchArguments, stopped: Stopped) -> ToolAnswer:
        """Raises KnowledgeError."""
        page = self._page(SEARCH, arguments, arguments.cursor)
        embeddings = self.settings.embeddings
        request = SearchRequest(
            query=arguments.query,
            top_k=arguments.top_k,
            configured_top_k=self.settings.top_k,
            root=arguments.root,
            path_glob=arguments.path,
            full=True,
            mode=parse_mode(arguments.mode),
            min_similarity=embeddings.min_similarity if embeddings is not None else LEAST_SIMILARITY,
        )
        meaning = self._embedder.meaning(stopped) if self._embedder is not None else None
        try:
            with self._opened() as base:
                refuse_unknown_root(base, request.root)
                found = told_consistently(answer(base.store, request, meaning), base)
                urls = urls_of(self.settings, base, found)
                return search_tool_answer(found, index_state(base), urls, time.time_ns(), page)
        except NotBuiltError as error:
            return not_built_tool_answer(error, self._tier_without_index())

    def enumerate(self, arguments: EnumerateArguments, stopped: Stopped) -> ToolAnswer:
        """Raises KnowledgeError."""
        page = self._page(ENUMERATE, arguments, arguments.cursor)
        offset = page.cursor.offset if page.cursor is not None else 0
        request = MatchRequest(
            query=arguments.query,
            limit=offset + document_budget(self.settings.max_injected_tokens),
            sort=arguments.sort,
            min_matches=arguments.min_matches,
            root=arguments.root,
            path_glob=arguments.path,
        )
        try:
            with self._opened() as base:
                return enumerate_tool_answer(enumerate_base(base, request), request, time.time_ns(), page)
        except NotBuiltError as error:
            return enumerate_not_built_answer(error)

    def read(self, arguments: ReadArguments, stopped: Stopped) -> ToolAnswer:
        """Raises KnowledgeError."""
        page = self._page(READ, arguments, arguments.cursor)
        request = _show_request(arguments)
        try:
            with self._opened() as base:
                places = KnownPlaces(
                    records=base.state.roots(),
                    configured=self.settings.roots,
                    cwd=Path(os.path.sep),  # a path is taken as it stands: where a client has started us means nothing
                    user_home=process_environ().get("HOME", ""),
                )
                with base.store.snapshot() as snapshot:
                    shown = show(snapshot, request, places, partial(standing_of, base))
                    tier = base_tier(self.settings, snapshot.vector_status(), has_documents=True)
                return read_tool_answer(shown, tier, standing_of(base), arguments.document_sha256, page)
        except NotBuiltError as error:
            return read_not_built_answer(error, self._tier_without_index())

    def roots(self) -> list[tuple[str, str]]:
        """Name and description of each root, as far as they are known now. An index that cannot be read is told by the
        calls, and keeps no server from starting (S1-35)."""
        described = {os.path.realpath(root.path): root.description for root in self.settings.roots}
        try:
            with self._opened() as base:
                return [(record.name, described.get(record.path, "")) for record in base.state.roots()]
        except KnowledgeError:
            return [(root.name or root.path.name, root.description) for root in self.settings.roots]

    @contextmanager
    def _opened(self) -> Iterator[ReadableBase]:
        """Nothing is written, not even the last step of a restore. Raises NotBuiltError naming the places that were
        looked at; an agent of a service, which may run on another machine, is told of no place."""
        try:
            with self._reading() as base:
                yield base
        except KnowledgeError as error:
            if self._shared is not None:
                raise told_to_readers(error, self.settings) from None
            if not isinstance(error, NotBuiltError):
                raise
            message, hint = not_built_message(self._loaded.located, self.settings, absence_of(self.settings))
            raise NotBuiltError(message, hint=hint) from None

    def _reading(self) -> AbstractContextManager[ReadableBase]:
        if self._shared is not None:
            return self._shared.bases.borrowed()
        return _read_once(self.settings)

    def _page(self, tool: str, arguments: msgspec.Struct, cursor: str) -> Page:
        about = about_call(tool, msgspec.structs.asdict(arguments))
        return Page(about, budget_chars(self.settings.max_injected_tokens), parse_cursor(cursor, about))

    def _tier_without_index(self) -> Tier:
        return base_tier(self.settings, NO_VECTORS, has_documents=False)


@contextmanager
def _read_once(settings: Settings) -> Iterator[ReadableBase]:
    """What the call needed goes back to the system with it (a fraction of a millisecond): the next one may be an hour
    away."""
    try:
        with readable_base(settings, finishes_restores=False) as base:
            yield base
    finally:
        give_back_free_memory()


def _show_request(arguments: ReadArguments) -> ShowRequest:
    """Raises UsageError for parameters that do not go together."""
    if bool(arguments.citation) == bool(arguments.path):
        raise UsageError("either citation or path must be given", hint="citation: PATH#NUMBER; path: PATH")
    if arguments.citation and arguments.lines:
        raise UsageError("lines go with a path, not with a citation", hint="before and after go with a citation")
    if arguments.path and (arguments.before or arguments.after):
        raise UsageError("before and after go with a citation, not with a path", hint="lines go with a path")
    expected = arguments.document_sha256.lower()
    if expected and not _SHA256.fullmatch(expected):
        raise UsageError("document_sha256 is 12 to 64 hexadecimal digits, as an answer gave it")
    before, after = (max(0, min(number, MAX_NEIGHBOURS)) for number in (arguments.before, arguments.after))
    return ShowRequest(arguments.citation or arguments.path, before, after, arguments.lines)
