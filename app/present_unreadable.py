"""A root of which no file can be read, in words: who cannot read what, and what mends it."""

from app.present_safe import name
from app.unreadable_roots import UnreadableRoot


def unreadable_message(root: UnreadableRoot) -> str:
    """`no file of notes can be read: user 7, group 7, may not read /corpus/a.md (owner 1000:1000, mode 0600)`."""
    whose = f"owner {root.owner_uid}:{root.owner_gid}, mode {root.mode:04o}"
    return (
        f"no file of {name(root.name)} can be read:"
        f" user {root.uid}, group {root.gid}, may not read {name(root.place)} ({whose})"
    )


def unreadable_hint(root: UnreadableRoot) -> str:
    """Which variable mends it in the containers; elsewhere, whose command it should be."""
    is_theirs = root.uid == root.owner_uid
    if is_theirs:
        return f"let its owner read it: chmod -R u+rX {name(root.path)}"
    if not root.in_container:
        return f"run it as user {root.owner_uid}, or let others read it: chmod -R a+rX {name(root.path)}"
    again = "then docker compose up -d --build"
    if root.owner_uid == 0:
        return (
            "KNOWLEDGE_UID and KNOWLEDGE_GID in .env must be somebody who can read it, and never root: let others read"
            f" it on the host (chmod -R a+rX), or name such a user there, {again}"
        )
    return f"set KNOWLEDGE_UID={root.owner_uid} and KNOWLEDGE_GID={root.owner_gid} in .env, {again}"
