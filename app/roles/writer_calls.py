"""What the writer does when it is called: each call is one function on its connection's thread."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from app.roles.calls import (
    ActivateIdentity,
    Answer,
    ApplyGroup,
    ApplySubstringIndex,
    Call,
    CloseGeneration,
    CollectVectors,
    Compact,
    PinIdentity,
    Rebuild,
    Remove,
    Verify,
    answered,
    failed,
)
from app.wiring import WritableBase
from domain.errors import KnowledgeError
from domain.settings import Settings


def answer_to(call: Call, base: WritableBase, settings: Settings, is_wanted: Callable[[], bool]) -> Answer:
    """Do what is asked, and what came of it; an error of ours is an answer too. On the connection's thread.

    A command that is wanted no more is broken off. Raises what is no error of ours.
    """
    try:
        return answered(_effect(call, base, settings, is_wanted)())
    except KnowledgeError as error:
        return failed(error)


def _effect(call: Call, base: WritableBase, settings: Settings, is_wanted: Callable[[], bool]) -> Callable[[], object]:
    writer = base.writer
    match call:
        case ApplyGroup(group):
            return partial(writer.apply, group)
        case CloseGeneration(generation, complete):
            return partial(writer.close_generation, generation, complete=complete)
        case PinIdentity(identity, canary, afresh):
            return partial(writer.pin_identity, identity, canary, afresh=afresh)
        case ActivateIdentity(identity, uncovered):
            return partial(writer.activate_identity, identity, uncovered=uncovered)
        case CollectVectors(keep_unused):
            return partial(writer.collect_vectors, keep_unused=keep_unused)
        case ApplySubstringIndex(setting):
            from store.rebuilding import apply_substring_index

            return partial(apply_substring_index, writer.connection, base.layout.database, setting)
        case Compact() | Verify() | Rebuild() | Remove():
            from app.roles.writer_commands import command_effect

            return command_effect(call, base, settings, is_wanted)
    assert_never(call)
