"""What one waits for: verbs that read their arguments themselves, for typer costs more than a search."""

from importlib import import_module

from cli.arguments import TableVerb

QUICK_VERBS = {
    "index": "cli.index_verb",
    "search": "cli.search_verb",
    "show": "cli.show_verb",
    "sources": "cli.look_verbs",
    "stats": "cli.look_verbs",
    "status": "cli.look_verbs",
}


def quick_verb(name: str) -> TableVerb:
    """The verb of this name; only its own module is imported."""
    verbs: tuple[TableVerb, ...] = import_module(QUICK_VERBS[name]).TABLE_VERBS
    return next(verb for verb in verbs if verb.name == name)
