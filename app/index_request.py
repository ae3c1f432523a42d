"""What an index run is asked, and what it tells before it sends anything: known before a run is imported."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from store.run_port import RunTrigger


class EmbeddingNotice(Struct, frozen=True):
    """What is told before the first text of a base goes to an embeddings server. `texts` is an estimate."""

    host: str
    model: str
    texts: int
    files: int
    text_bytes: int


Announce = Callable[[EmbeddingNotice], None]


class IndexRequest(Struct, frozen=True):
    """What a run is asked for, and by what."""

    paths: tuple[Path, ...] = ()
    reindex: bool = False
    re_embed: bool = False  # with `reindex`: no vector is reused
    rehash: bool = False
    allow_mass_delete: bool = False
    queue_url: str = ""
    worker_processes: int | None = None  # None: chosen by the size of the run
    trigger: RunTrigger = "cli"
    approve: int = 0  # the run whose held removals are applied, and nothing else is done; 0: none
    digest: str = ""  # of the list that was approved; "": whatever is held now
