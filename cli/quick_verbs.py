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
    "match": "cli.match_verb",
    "words": "cli.words_verb",
    "explain": "cli.explain_verb",
    "failures": "cli.failure_verbs",
    "retry": "cli.failure_verbs",
    "ignore": "cli.failure_verbs",
    "schedules": "cli.schedules_verb",
    "mcp": "cli.mcp_verb",
    "verify": "cli.verify_verb",
    "watch": "cli.watch_verb",
    "completion": "cli.completion_verb",
}
# other names of verbs; help pages show the first name
ALIASES = {"vocab": "words", "terms": "words", "enumerate": "match", "which": "match"}


def quick_verb(name: str) -> TableVerb:
    """The verb of this name; only its own module is imported."""
    verbs: tuple[TableVerb, ...] = import_module(QUICK_VERBS[name]).TABLE_VERBS
    return next(verb for verb in verbs if verb.name == name)
