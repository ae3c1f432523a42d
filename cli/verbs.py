"""The table of verbs, and the group that imports a verb's module only when it is called."""

from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from cli.quick_verbs import QUICK_VERBS
from domain.errors import UsageError

# the first page, in the order in which a newcomer needs them (R38)
VERBS = {
    "index": ("cli.quick_pages", "Index folders or files, or bring the index up to date."),
    "search": ("cli.quick_pages", "Search the index; the best hits come first."),
    "show": ("cli.quick_pages", "Show a citation or a whole document as it was indexed."),
    "sources": ("cli.quick_pages", "List the indexed folders, and their documents."),
    "status": ("cli.quick_pages", "One screen: which index, how complete, how old, what failed."),
    "stats": ("cli.quick_pages", "Numbers and sizes of the index."),
    "config": ("cli.config_verbs", "Write, check, show and trust a configuration."),
    "verify": ("cli.quick_pages", "Check that the index is whole."),
    "rebuild": ("cli.maintain_verbs", "Make the full-text tables again from the stored text."),
    "rm": ("cli.maintain_verbs", "Take documents or a whole root out of the index."),
    "reset": ("cli.maintain_verbs", "Empty the index."),
    "doctor": ("cli.maintain_verbs", "Find out what is wrong, and what to do about it."),
}
# what a newcomer does not need: not on the first page, but for their names
MORE_VERBS = {
    "match": ("cli.quick_pages", "List every document that holds all of the words."),
    "words": ("cli.quick_pages", "List the words of the index with their counts."),
    "explain": ("cli.quick_pages", "Say whether a file is in the index, and why; or where a query finds it."),
    "runs": ("cli.runs_verbs", "What runs have done and are at; pause, resume, cancel, retry, approve one."),
    "failures": ("cli.quick_pages", "List the files that failed, and when each is tried again."),
    "retry": ("cli.quick_pages", "Try files that failed again, now."),
    "ignore": ("cli.quick_pages", "Leave files that failed alone."),
    "backup": ("cli.backup_verbs", "Write the whole index into one file, while it is in use."),
    "restore": ("cli.backup_verbs", "Put an index from a backup in place."),
    "upgrade": ("cli.upgrade_verb", "Make an index of an older format anew, with its vectors."),
    "watch": ("cli.quick_pages", "Follow folders: index what changes in them."),
    "schedules": ("cli.quick_pages", "List the schedules: when each runs next, and what came of its last run."),
    "notify": ("cli.notify_verb", "Send a test message to whoever is told of failures."),
    "mcp": ("cli.quick_pages", "Give agents the index: an MCP server on standard input and output."),
    "eval": ("cli.eval_verbs", "Measure how good the answers are."),
    "embed-server": ("cli.embed_verb", "Serve the local model over HTTP, as OpenAI's /embeddings."),
    "up": ("cli.role_verbs", "Run the whole service on this machine."),
    "scheduler": ("cli.role_verbs", "A role of a service: carries out runs, one at a time."),
    "worker": ("cli.role_verbs", "A role of a service: reads, cuts and embeds files."),
    "writer": ("cli.role_verbs", "A role of a service: commits, and holds the index's lock."),
    "serve": ("cli.role_verbs", "A role of a service: answers for it (health and metrics)."),
    "compact": ("cli.maintain_verbs", "Make the index small and quick to read."),
    "completion": ("cli.quick_pages", "Print the script by which a shell completes what one types."),
}
ALL_VERBS = VERBS | MORE_VERBS
# verbs with verbs below them
GROUPS = {
    "config": "config_app",
    "eval": "eval_app",
    "notify": "notify_app",
    "runs": "runs_app",
}
EPILOG = f"Also: {', '.join(MORE_VERBS)}. knowledge VERB --help says more. `knowledge` alone is `knowledge status`."


class VerbGroup(TyperGroup):
    """The verbs of the tables, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(ALL_VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in ALL_VERBS:
            return None
        from cli.help_pages import with_page

        return with_page(self._command(cmd_name), cmd_name)

    def _command(self, cmd_name: str) -> Any:
        module = import_module(ALL_VERBS[cmd_name][0])
        if cmd_name in QUICK_VERBS:
            return module.typer_command(cmd_name)
        if cmd_name in GROUPS:
            group = getattr(module, GROUPS[cmd_name])
            group.rich_markup_mode = None
            return get_group(group)
        return get_group(module.app).commands[cmd_name]

    def get_help_option(self, ctx: Any) -> Any:
        from cli.help_pages import HELP_OF_HELP

        option = super().get_help_option(ctx)
        if option is not None:
            option.help = HELP_OF_HELP
        return option

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in ALL_VERBS and not args[0].startswith("-"):
            near = get_close_matches(args[0], ALL_VERBS, n=1)
            meant = f"did you mean `knowledge {near[0]}`? " if near else ""
            raise UsageError(f"there is no verb {args[0]!r}", hint=f"{meant}`knowledge --help` lists the verbs")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, summary) for verb, (_, summary) in VERBS.items()])
        from cli.examples import FIRST_PAGE
        from cli.help_pages import write_examples

        write_examples(formatter, FIRST_PAGE)


app = typer.Typer(
    name="knowledge",
    cls=VerbGroup,
    help="Search over large folders of text: index a folder, ask, get answers with citations.",
    epilog=EPILOG,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration; default: the nearest one.")
    ] = None,
) -> None:
    """Described here, read by cli.main before a verb is looked for."""


def verb_app() -> typer.Typer:
    """An empty group for a module's verbs: plain help pages, no completion options, errors passed on."""
    return typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="The configuration; default: the nearest one.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def run(arguments: list[str]) -> int:
    """Call a verb; raises what it raises, and typer.TyperException for arguments that cannot be read."""
    status = get_group(app).main(arguments, prog_name="knowledge", standalone_mode=False)
    return status if isinstance(status, int) else 0
