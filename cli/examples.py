"""Examples for the help pages: of each verb two to four lines that can be typed as they are, and what they do."""

from typing import NamedTuple


class Example(NamedTuple):
    line: str
    does: str


def _examples(*pairs: tuple[str, str]) -> tuple[Example, ...]:
    return tuple(Example(f"knowledge {line}" if line else "knowledge", does) for line, does in pairs)


_ROLE = "a role for a container: its log as JSON, its health page for the prober"


def _of_role(role: str) -> tuple[Example, ...]:
    return _examples(
        (f"{role} --config /etc/knowledge.yaml", "run it for this index until SIGTERM"),
        (f"{role} --log-format json --health-host 0.0.0.0", _ROLE),
        (f"{role} --check", "ask the one that runs here whether it is ready"),
    )


FIRST_PAGE = _examples(
    ("index ~/notes", "index a folder; again, to bring it up to date"),
    ("search when is bread done", "find passages, each with its citation"),
    ("show notes/kitchen/bread.md#1", "read one of them"),
)
EXAMPLES: dict[str, tuple[Example, ...]] = {
    "index": _examples(
        ("index ~/notes", "index a folder; the same again brings it up to date"),
        ("index", "bring every known folder up to date"),
        ("index --dry-run ~/notes", "say what a run would do, and what it would cost"),
        ("index --detach", "hand the run to the service, and do not wait"),
    ),
    "search": _examples(
        ("search when is bread done", "the five best passages, by words and by meaning"),
        ("search '\"exit 11\" lock'", "exactly this text, and a word besides"),
        ("search --root notes --path 'kitchen/**' --top-k 3 oven", "only in a part of the index"),
        ("search --json --full summer house", "for a program, with the whole texts"),
    ),
    "show": _examples(
        ("show notes/kitchen/bread.md#1", "a passage, by its citation"),
        ("show --before 1 --after 2 notes/kitchen/bread.md#1", "with what stands around it"),
        ("show --lines 10-20 notes/kitchen/bread.md", "lines of the document as it was indexed"),
    ),
    "sources": _examples(
        ("sources", "the folders, and what is indexed of each"),
        ("sources --coverage", "how many files lie there, and why some are not indexed"),
        ("sources --all", "every document"),
    ),
    "status": _examples(
        ("status", "which index, how complete, how old, what failed"),
        ("status --exit-code", "a verdict for cron and monitoring: 0, 1 or 2"),
        ("status --json", "for a program"),
    ),
    "stats": _examples(("stats", "numbers and sizes"), ("stats --json", "for a program")),
    "config init": _examples(
        ("config init", "write a commented knowledge.yaml here"), ("config init ~/handbook", "into another folder")
    ),
    "config check": _examples(
        ("config check", "check the nearest configuration"),
        ("config check --config ~/handbook/knowledge.yaml", "check this one"),
    ),
    "config show": _examples(
        ("config show", "every value, and where it comes from"), ("config show --json", "for a program")
    ),
    "config trust": _examples(
        ("config trust", "trust the nearest configuration, as it is now"),
        ("config trust ~/handbook/knowledge.yaml", "trust this one"),
    ),
    "verify": _examples(
        ("verify", "is the index whole?"), ("verify --deep", "does it hold every document byte for byte?")
    ),
    "rebuild": _examples(
        ("rebuild", "after `knowledge verify` has found full text damaged"), ("rebuild --json", "for a program")
    ),
    "rm": _examples(
        ("rm notes/old.md", "until its file is met again"),
        ("rm --root handbook", "a whole root, which is then forgotten"),
        ("rm --purge notes/secret.md", "and leave nothing of its text in the index's files"),
    ),
    "reset": _examples(("reset", "say what would go"), ("reset --force", "empty the index; your files stay")),
    "doctor": _examples(("doctor", "is everything in place?"), ("doctor --json", "for a program")),
    "match": _examples(
        ("match 'kernel \"memory map\" -draft'", "documents with both, and without the third"),
        ("match --all --paths-only 'heading:install'", "every path, one a line"),
        ("match --count --root notes 'oven'", "how many there are"),
        ("match --explain 'sourdough starter'", "of each term, how many documents hold it"),
    ),
    "words": _examples(
        ("words '^sour'", "which words begin so"),
        ("words --field heading --limit 20", "the commonest words of headings"),
        ("words --words-only --min-docs 10", "a list for another program"),
    ),
    "explain": _examples(
        ("explain ~/notes/kitchen/bread.md", "is it in the index, and if not, why?"),
        ("explain notes/kitchen/bread.md --query 'crisp crust'", "why is it not found, or not higher up?"),
    ),
    "runs list": _examples(
        ("runs", "what goes on, and how the last runs ended"), ("runs list --limit 100", "more of them")
    ),
    "runs show": _examples(
        ("runs show 12", "what it is at, or has done"),
        ("runs show 12 --follow", "until it has ended"),
        ("runs show 12 --changes", "which documents it has changed"),
    ),
    "runs pause": _examples(("runs pause 12", "it stands still"), ("runs pause 12 --json", "for a program")),
    "runs resume": _examples(("runs resume 12", "it goes on"), ("runs resume 12 --json", "for a program")),
    "runs cancel": _examples(
        ("runs cancel 12", "it ends within ten seconds"), ("runs cancel 12 --json", "for a program")
    ),
    "runs retry": _examples(
        ("runs retry 12", "the same once more"), ("runs retry 12 --detach", "and do not wait for its end")
    ),
    "runs approve": _examples(
        ("runs show 12", "look at what it holds, and at the digest of the list"),
        ("runs approve 12 --digest 4f1c09a2b7d3", "let exactly these documents go"),
    ),
    "failures": _examples(
        ("failures", "all of them, and when each is tried again"),
        ("failures --reason unreadable", "those that failed for this reason"),
    ),
    "retry": _examples(
        ("retry --all", "all of them, now"),
        ("retry notes/kitchen", "those below a folder"),
        ("retry --reason embedding_refused", "those that failed for this reason"),
    ),
    "ignore": _examples(
        ("ignore notes/kitchen/bread.md", "no run tries it again"),
        ("ignore --undo notes/kitchen/bread.md", "the next run does"),
    ),
    "backup": _examples(
        ("backup /backups/notes.tar", "while the index is in use"),
        ("backup --force /backups/notes.tar", "in the place of an earlier one"),
    ),
    "restore": _examples(
        ("restore /backups/notes.tar", "where there is no index"),
        ("restore --force /backups/notes.tar", "in the place of the present one"),
    ),
    "upgrade": _examples(
        ("upgrade --dry-run", "what would be taken over, and the room that it needs"),
        ("upgrade", "do it; interrupted, the same again goes on"),
    ),
    "watch": _examples(
        ("watch", "follow every known folder"),
        ("watch --debounce 10s ~/notes", "this one, once it has been quiet for ten seconds"),
        ("watch --json --no-initial", "an object a line, for a program"),
    ),
    "schedules": _examples(
        ("schedules", "when each runs next, and what came of its last run"), ("schedules --json", "for a program")
    ),
    "notify test": _examples(
        ("notify test", "send a message, and say what came back"), ("notify test --json", "for a program")
    ),
    "mcp": _examples(
        ("mcp config claude-code", "what this client needs to start it"),
        ("mcp config cursor --tools knowledge_search,knowledge_read", "the same, with these tools"),
        ("mcp --tools knowledge_search", "serve, as a client would start it"),
    ),
    "eval run": _examples(
        ("eval run --collection ~/questions", "in each mode, on your own questions"),
        ("eval run --collection ~/questions --json result.json", "with the values of every query"),
    ),
    "eval recall": _examples(
        ("eval recall", "does the quick way find what comparing all would?"),
        ("eval recall --samples 1000 --json -", "more of it, as JSON"),
    ),
    "embed-server": _examples(
        ("embed-server", "for this machine"),
        ("embed-server --host 10.0.0.5 --allow-network", "for other machines of your own network"),
    ),
    "up": _examples(
        ("up", "the whole service of this index, until Ctrl-C"),
        ("up --workers 4 --log-format json", "with so many workers, its log as JSON"),
    ),
    **{role: _of_role(role) for role in ("scheduler", "worker", "writer", "serve")},
    "compact": _examples(
        ("compact", "after many changes or removals"), ("compact --detach", "hand it to the service, and do not wait")
    ),
    "completion": _examples(
        ("completion bash > ~/.local/share/bash-completion/completions/knowledge", "for bash, from its next start on"),
        ("completion zsh > ~/.zfunc/_knowledge", "for zsh, where ~/.zfunc is in fpath"),
        ("completion fish > ~/.config/fish/completions/knowledge.fish", "for fish"),
    ),
}
