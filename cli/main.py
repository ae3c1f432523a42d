"""The command line's entry: options before the verb, the quick way to the hot verbs, and the last word on errors."""

import errno
import gc
import sys
from collections.abc import Sequence

from cli import terminal
from cli.arguments import before_words, wants_help
from cli.quick_verbs import ALIASES, QUICK_VERBS, quick_verb
from domain.errors import DiskFullError, KnowledgeError, UsageError

INTERRUPTED = 130
# imports make tens of thousands of objects that all stay: to look for garbage after every 700 of them is a twentieth of
# a short command (a run without a change over one file: 0.264 s of CPU to 0.250)
OBJECTS_BETWEEN_COLLECTIONS = 20_000
GROUPS = ("config", "eval", "notify", "runs")  # verbs with verbs below them
USUAL_VERBS = {"runs": "list"}  # of a group that is called alone


def main() -> int:
    """The console script `knowledge` (and `rag`); returns the exit status."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    terminal.prepare()
    status = run(sys.argv[1:])
    gc.freeze()  # else the interpreter looks through all that was imported once more at its end: a tenth of a command
    return status


def run(arguments: Sequence[str]) -> int:
    """Run one command. Nothing is raised; no traceback is shown, unless --debug asks for it."""
    has_debug, rest = _without_debug(list(arguments))
    try:
        status = _dispatch(rest)
        terminal.flush()
    except KeyboardInterrupt:
        terminal.tell("\ninterrupted\n")
        status = INTERRUPTED
    except BrokenPipeError:
        status = 0  # whoever read our output has had enough
    except Exception as error:  # noqa: BLE001 - the last line: whatever it is, the user is told in words
        status = _report(error, as_json="--json" in before_words(rest), debug=has_debug)
    terminal.close_quietly()
    return status


def _dispatch(arguments: list[str]) -> int:
    arguments = _verb_first(arguments)
    verb = arguments[0]
    if verb == "--version":
        from cli.version import VERSION

        terminal.write(f"knowledge {VERSION}\n")
        return 0
    if verb in QUICK_VERBS and not wants_help(arguments):
        return quick_verb(verb).run(arguments[1:])
    from cli import verbs

    return verbs.run(arguments)


def _without_debug(arguments: list[str]) -> tuple[bool, list[str]]:
    """--debug stands before the verb only: behind it, it may be part of a query."""
    if arguments[:1] == ["--debug"]:
        return True, arguments[1:]
    return False, arguments


def _verb_first(arguments: list[str]) -> list[str]:
    """`status` where no verb is named; a --config before the verb moves behind it."""
    config: list[str] = []
    if arguments[:1] == ["--config"]:
        if len(arguments) < 2:
            raise UsageError("--config needs a value", hint="write --config PATH")
        config, arguments = arguments[:2], arguments[2:]
    elif arguments and arguments[0].startswith("--config="):
        config, arguments = arguments[:1], arguments[1:]
    if not arguments or arguments[0] == "--json":
        arguments = ["status", *arguments]
    elif arguments[0] in USUAL_VERBS and (arguments[1:2] == [] or arguments[1].startswith("-")):
        if not wants_help(arguments):
            arguments = [arguments[0], USUAL_VERBS[arguments[0]], *arguments[1:]]
    elif arguments in [[group] for group in GROUPS]:
        arguments = [*arguments, "--help"]
    verb_words = 2 if arguments[0] in GROUPS else 1
    verb = ALIASES.get(arguments[0], arguments[0])
    return [verb, *arguments[1:verb_words], *config, *arguments[verb_words:]]


def _report(error: Exception, *, as_json: bool, debug: bool) -> int:
    from app.present import error_json, error_text, json_text, unexpected_error

    if debug:
        import traceback

        terminal.tell("".join(traceback.format_exception(error)))
    told = _told(error) or unexpected_error(error)
    if not as_json or not _is_written(json_text(error_json(told))):
        terminal.close_quietly()
        terminal.tell(error_text(told))
    return told.exit_status


def _is_written(text: str) -> bool:
    """Whether standard output has taken it: what has failed may have been writing there."""
    try:
        terminal.write_json(text)
        terminal.flush()
    except OSError:
        return False
    return True


def _told(error: Exception) -> KnowledgeError | None:
    """An error in our own words, where it is one of ours or of the parser's."""
    if isinstance(error, KnowledgeError):
        return error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return DiskFullError("no space left to write to", hint="free some space, then run the command again")
    if isinstance(error, MemoryError):
        return KnowledgeError(
            "there was not enough memory", hint="give it more: `ulimit -v` says how much it may take, in KiB"
        )
    if "typer" not in sys.modules:
        return None
    import typer

    if isinstance(error, typer.Abort):
        return UsageError("aborted")
    if isinstance(error, typer.TyperException):
        return UsageError(
            error.format_message(), hint="`knowledge --help`, or `knowledge VERB --help`, says what there is"
        )
    return None


if __name__ == "__main__":
    sys.exit(main())
