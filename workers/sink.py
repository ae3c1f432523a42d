"""Where a worker hands its finished pages over: the writer's inbox, the spool, later a server database."""

from typing import Protocol

from workers.checking import FinishedPage


class DocumentSink(Protocol):
    """Takes a finished page; returns when it cannot be lost any more by this worker."""

    async def commit(self, page: FinishedPage, *, attempt: int) -> None: ...
