"""`--root` and `--path`: which documents a search may give, resolved before the lanes run.

A glob is written against the document's key or the part of it below the root. `*` and `?` stay within a
name, `**` stands for any folders, `[...]` for one character of a set. A glob without `/` names files in any
folder; one that matches a folder takes everything in it.
"""

import re
from collections.abc import Iterator

from domain.errors import UsageError
from domain.keys import prefix_of
from retrieval.statistics import StoreStatistics
from store.port import Scope, SearchSnapshot

MAX_GLOB_CHARS = 1_000
MAX_ANY_FOLDERS = 3  # each `**` is tried at every folder: more of them would multiply
_NOTHING = Scope(())


def resolve_scope(snapshot: SearchSnapshot, statistics: StoreStatistics, root: str, glob: str) -> Scope | None:
    """None where every document may be given. Raises UsageError for a glob that is none."""
    if not root and not glob:
        return None
    asked = (root, glob)
    known = statistics.scopes
    if asked in known:
        return known[asked]
    pattern = compile_glob(glob) if glob else None
    documents = snapshot.document_ids(prefix_of(root) if root else "")
    chosen = [number for number, key in documents if pattern is None or pattern.fullmatch(key)]
    scope = snapshot.scope_of(chosen) if chosen else _NOTHING
    statistics.remember_scope(asked, scope)
    return scope


def compile_glob(glob: str) -> re.Pattern[str]:
    """A pattern for whole keys, of which no name is gone through more than once."""
    if len(glob) > MAX_GLOB_CHARS:
        raise UsageError(f"the path pattern has more than {MAX_GLOB_CHARS} characters", hint="write a shorter one")
    names = [name for name in glob.strip("/").split("/") if name and name != "."]
    while names and names[-1] == "**":
        names.pop()
    if names.count("**") > MAX_ANY_FOLDERS:
        raise UsageError(f"the path pattern has more than {MAX_ANY_FOLDERS} `**`", hint="leave some out")
    anywhere = "/" not in glob.strip("/")
    before = "(?:[^/]+/)*?" if anywhere else "(?:[^/]+/)?"
    parts = ["(?:[^/]+/)*?" if name == "**" else f"{_name_pattern(name)}/" for name in names]
    whole = "".join(parts).removesuffix("/")
    return re.compile(f"{before}{whole}(?:/.*)?" if names else ".*", re.DOTALL)


def _name_pattern(name: str) -> str:
    """One name. What follows a `*` is taken at its first place and not tried again (as fnmatch does it): a
    fixed text found early leaves as much for the rest as one found late."""
    fixed = ["".join(_characters(part)) for part in re.split(r"\*+", name)]
    if len(fixed) == 1:
        return fixed[0]
    middle = "".join(f"(?>[^/]*?{part})" for part in fixed[1:-1])
    return f"{fixed[0]}{middle}[^/]*{fixed[-1]}(?![^/])"


def _characters(part: str) -> Iterator[str]:
    at = 0
    while at < len(part):
        is_negated = part[at] == "[" and part[at + 1 : at + 2] in ("!", "^")
        first = at + 1 + is_negated
        end = part.find("]", first + 1) if part[at] == "[" else -1  # right at the beginning it is one of the set
        if end > 0:
            yield f"(?!/)[{'^' * is_negated}{''.join(_members(part[first:end]))}]"
            at = end + 1
            continue
        yield "[^/]" if part[at] == "?" else re.escape(part[at])
        at += 1


def _members(inside: str) -> Iterator[str]:
    """What is in a set, as `re` writes it: each character stands for itself, and a range that runs backwards, which
    `re` would refuse, for its two ends."""
    at = 0
    while at < len(inside):
        first, last = inside[at], inside[at + 2 : at + 3] if inside[at + 1 : at + 2] == "-" else ""
        sign = "-" if first <= last else ""
        yield f"{re.escape(first)}{sign}{re.escape(last)}"
        at += 3 if last else 1
