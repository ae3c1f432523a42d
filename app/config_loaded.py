"""What a command knows of its settings: the values, where they came from, and what is to be said about them."""

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from app.discovery import Located
from domain.settings import Settings

if TYPE_CHECKING:
    from app.config_origins import Sources
    from app.config_schema import KnowledgeBlock

AbsentRoots = Literal["refuse", "note"]


class Loaded(Struct, frozen=True):
    """The settings, and what a command may want to say about where they came from."""

    located: Located
    settings: Settings
    sources: "Sources | None" = None  # None: nothing was configured
    block: "KnowledgeBlock | None" = None  # None: nothing was configured
    notes: tuple[str, ...] = ()  # what is odd, but no error
    later_features: tuple[str, ...] = ()  # configured, without effect in this version
    needs_trust: tuple[str, ...] = ()  # what a found file asks for, in words; () for a named one
    digest: str = ""  # of the file

    def later_note(self) -> str:
        """Says plainly what this version leaves out; "" when nothing."""
        names = ", ".join(self.later_features)
        return f"{names}: configured, but without effect in this version" if names else ""
