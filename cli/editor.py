"""Opening a hit's file where it lies, in the user's own editor."""

import shlex
import subprocess
from pathlib import Path

from app.config import process_environ
from domain.errors import NotFoundError, UsageError
from domain.keys import path_below_root

DEFAULT_EDITOR = "vi"
# editors that take PATH:LINE; all others get +LINE, as vi, emacs and nano do
_COLON_EDITORS = frozenset({"code", "codium", "cursor", "subl", "zed", "hx", "helix"})
_GOTO_EDITORS = frozenset({"code", "codium", "cursor"})


def open_in_editor(root_path: str, key: str, line: int) -> int:
    """Run the editor to its end and return its exit status. Raises NotFoundError when the file has gone."""
    path = Path(root_path) / path_below_root(key)
    if not root_path or not path.is_file():
        raise NotFoundError(
            f"the file of {key} is no longer there", hint=f"`knowledge show {key}` has it as it was indexed"
        )
    environ = process_environ()
    editor = environ.get("VISUAL") or environ.get("EDITOR") or DEFAULT_EDITOR
    try:
        return subprocess.run(editor_command(editor, path, line), check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot run the editor {editor!r}: {error}", hint="set VISUAL or EDITOR") from error


def editor_command(editor: str, path: Path, line: int) -> list[str]:
    """The editor's words (it may have options of its own), then file and line. The path is absolute."""
    words = shlex.split(editor) or [DEFAULT_EDITOR]
    program = Path(words[0]).stem
    if program in _GOTO_EDITORS:
        return [*words, "--goto", f"{path}:{line}"]
    if program in _COLON_EDITORS:
        return [*words, f"{path}:{line}"]
    return [*words, f"+{line}", str(path)]
