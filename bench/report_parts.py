"""The parts of `make bench-report`: what each runs, what it needs, and in which table its figures stand."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RUNS = 3
TABLES = {
    "index": "Index, no change, one change, search, memory, size",
    "meaning": "Vectors, recall, embedder use",
    "answers": "Complete sets and checks",
    "service": "Recovery, scaling, a million files",
    "surfaces": "HTTP, MCP, pages",
}


class Part(NamedTuple):
    """One bench with fixed arguments. {docs_2k} and {docs_40k} are corpora, {home} is an index of the larger one,
    {collection} a folder of judged questions, {beside} the other programs, {runs} how often the longest ones run."""

    name: str
    table: str  # of TABLES; "" = it has tables of its own
    what: str
    arguments: tuple[str, ...]

    @property
    def needs(self) -> set[str]:
        return {
            name
            for name in ("docs_2k", "docs_40k", "home", "collection", "beside")
            for part in self.arguments
            if f"{{{name}}}" in part
        }

    def command(self, **places: str) -> list[str]:
        return [part.format(**places) for part in self.arguments]

    def shown(self, runs: int = RUNS) -> str:
        """The command as the report says it, with no path of a machine."""
        names = {
            "docs_2k": "docs-2k", "docs_40k": "docs-40k", "home": "HOME", "collection": "cranfield",
            "beside": "build/beside",
        }  # fmt: skip
        return " ".join(["python", "-m", *self.command(**names, runs=str(runs))])


PARTS = (
    Part("index-40k", "index", "docs-40k", ("bench.run", "{docs_40k}", "--runs", "{runs}")),
    Part(
        "index-2k", "index", "docs-2k", ("bench.run", "{docs_2k}", "--runs", "5", "--only", "no_change,search,changed")
    ),
    Part("vectors-100k", "meaning", "made", ("bench.vectors", "synthetic", "100000", "384")),
    Part("vectors-500k", "meaning", "made", ("bench.vectors", "synthetic", "500000", "384")),
    Part("recall", "meaning", "docs-2k", ("bench.recall", "{docs_2k}")),
    Part("embedder", "meaning", "docs-2k", ("bench.embedding", "{docs_2k}", "--only", "busy,moved,outage")),
    Part("embedder-lies", "meaning", "made", ("bench.embedding", "{docs_2k}", "--only", "lies")),
    Part("words-first", "meaning", "docs-40k", ("bench.embedding", "{docs_40k}", "--only", "words", "--runs", "1")),
    Part("quality", "meaning", "cranfield", ("bench.quality", "--collection", "{collection}", "--local")),
    Part("match", "answers", "docs-40k", ("bench.matching", "{home}")),
    Part("verify", "answers", "docs-40k", ("bench.verifying", "{home}", "--runs", "3")),
    Part("kills", "service", "docs-2k", ("bench.service", "{docs_2k}", "--only", "kills")),
    Part("scaling", "service", "docs-2k", ("bench.service", "{docs_2k}", "--only", "scaling")),
    Part("queue", "service", "docs-40k", ("bench.service", "{docs_40k}", "--only", "queue")),
    Part("million", "service", "made", ("bench.service", "{docs_2k}", "--only", "million")),
    Part("http", "surfaces", "docs-40k", ("bench.http", "{home}", "--only", "extra,crowd")),
    Part("mcp", "surfaces", "docs-40k", ("bench.mcp_start", "--home", "{home}")),
    Part("page", "surfaces", "docs-40k", ("bench.page", "{home}")),
    Part("growth", "", "docs-40k", ("bench.growth", "{docs_40k}")),
    Part("beside-2k", "", "docs-2k", ("bench.beside", "{docs_2k}", "--beside", "{beside}", "--rounds", "3")),
    Part("beside-40k", "", "docs-40k", ("bench.beside", "{docs_40k}", "--beside", "{beside}", "--rounds", "1")),
)
BY_NAME = {part.name: part for part in PARTS}
RECOVERY = "recovery"  # copied from what the tests of faults have kept


def chosen_parts(only: str) -> list[str]:
    """The names of the parts that begin with one of these words; all for an empty one. Raises ValueError."""
    names = [*BY_NAME, RECOVERY]
    wanted = [word for word in only.split(",") if word]
    for word in wanted:
        if not any(name.startswith(word) for name in names):
            raise ValueError(f"there is no part {word!r}: {', '.join(names)}")
    return [name for name in names if not wanted or any(name.startswith(word) for word in wanted)]
