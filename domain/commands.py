"""Commands: what changes a base other than a finished page. Frozen, each with an id.

The id is recorded in the receipts of state.db once the command has taken effect: run twice, one effect (R22).
"""

from msgspec import Struct


class RemoveCommand(Struct, frozen=True):
    """Remove documents by key (`docs/a.md`) or key prefix (`docs/old/`), or a root with all that is known of it."""

    id: str
    prefixes: tuple[str, ...] = ()
    root: str = ""  # a root's name; "" = the prefixes only

    kind = "rm"


class ResetCommand(Struct, frozen=True):
    """Drop and make anew everything that is derived from the files; roots and history stay."""

    id: str

    kind = "reset"


class RebuildCommand(Struct, frozen=True):
    """Make the full-text tables again from the chunks that are stored."""

    id: str

    kind = "rebuild"


class CompactCommand(Struct, frozen=True):
    """Merge full text, drop vectors that nothing has, give empty pages back."""

    id: str

    kind = "compact"


class PurgeCommand(Struct, frozen=True):
    """Leave nothing of removed texts in the base's files; follows a RemoveCommand."""

    id: str

    kind = "purge"


Command = RemoveCommand | ResetCommand | RebuildCommand | CompactCommand | PurgeCommand
