"""The programs: what each is called with, where it keeps its index, and how its work differs from ours.

In the templates {corpus} is the folder of files, {place} the program's own folder, {words} a query, {queries} a JSON
file of queries, {beside} where install.sh has put everything, {python} our interpreter, {bench} the folder
bench/beside.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Program(NamedTuple):
    """A program over one folder. Commands are templates; an empty `warm` means that none was measured."""

    name: str
    version: str
    needs: str  # a file that is there when the program is installed
    first: tuple[str, ...]
    update: tuple[str, ...]
    ask: tuple[str, ...]
    warm: tuple[str, ...]
    stored: str  # what of {place} is its index
    unequal: tuple[str, ...]
    files: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


OURS = Program(
    name="knowledge",
    version="this version",
    needs="{python}",
    first=("{knowledge}", "index", "{corpus}", "--quiet"),
    update=("{knowledge}", "index", "{corpus}", "--quiet"),
    ask=("{knowledge}", "search", "{words}", "--top-k", "10"),
    warm=("{python}", "-m", "bench.beside.ours_warm", "{place}/knowledge/default", "{queries}"),
    stored="knowledge/default",
    unequal=(
        "Passages, not documents: each is indexed for its stems and for its exact forms, ranked, and cited with its"
        " headings and lines.",
        "Reads and writes go over a queue; a run that is killed leaves a whole index, which the next one completes. The"
        " history of runs is synced to the disk with each commit, documents with each checkpoint.",
        "Whether a file changed is decided by its SHA-256 where size or times differ; documents come back byte for"
        " byte.",
        "Any of the words will do. No vectors here.",
    ),
    files={"knowledge.yaml": "knowledge:\n  identity: default\n"},
)

TANTIVY = Program(
    name="tantivy",
    version="0.27.0 (Python binding)",
    needs="{beside}/python/bin/python",
    first=("{beside}/python/bin/python", "{bench}/tantivy_files.py", "update", "{corpus}", "{place}/index"),
    update=("{beside}/python/bin/python", "{bench}/tantivy_files.py", "update", "{corpus}", "{place}/index"),
    ask=("{beside}/python/bin/python", "{bench}/tantivy_files.py", "ask", "{place}/index", "{words}"),
    warm=("{beside}/python/bin/python", "{bench}/tantivy_files.py", "warm", "{place}/index", "{queries}"),
    stored="index",
    unequal=(
        "A library: the walk, the comparison of sizes and times and the command are a script of a hundred lines,"
        " `bench/beside/tantivy_files.py`.",
        "Whole files: no passages, no headings, no lines to cite, one field of stems, no exact forms, no literal text.",
        "One commit for all files: whatever is killed before it is done again. Nothing checks what is stored.",
        "Text is stored compressed; files that are not UTF-8 are mended, not refused. Any of the words will do.",
    ),
)

RECOLL_LIBRARIES = "{beside}/recoll/usr/lib/x86_64-linux-gnu"
RECOLL = Program(
    name="recoll",
    version="1.34.3 (Debian 12, Xapian 1.4.22)",
    needs="{beside}/recoll/usr/bin/recollindex",
    first=("{beside}/recoll/usr/bin/recollindex", "-c", "{place}"),
    update=("{beside}/recoll/usr/bin/recollindex", "-c", "{place}"),
    ask=("{beside}/recoll/usr/bin/recollq", "-c", "{place}", "-o", "-n", "10", "-A", "{words}"),
    warm=(),
    stored="xapiandb",
    unequal=(
        "Whole files: no passages, no headings, no lines to cite; Markdown is plain text to it.",
        "Words are stored as they are, with positions, and a query is widened by its stems; any of the words will do"
        " (`-o`).",
        "It reads dozens of formats, which these files do not need.",
        "Warm queries were not run: its Python module belongs to another package and to the system's own Python.",
    ),
    files={
        "recoll.conf": "topdirs = {corpus}\nindexstemminglanguages = english\nindexallfilenames = 0\nnoaspell = 1\n"
        "onlyNames = *.md *.markdown *.txt *.text\nloglevel = 2\n"
    },
    environment={
        "LD_LIBRARY_PATH": f"{RECOLL_LIBRARIES}:{RECOLL_LIBRARIES}/recoll",
        "RECOLL_DATADIR": "{beside}/recoll/usr/share/recoll",
        "HOME": "{place}",
    },
)

QMD_PACKAGE = "{beside}/qmd/node_modules/@tobilu/qmd"
QMD_COMMAND = ("{beside}/node", f"{QMD_PACKAGE}/dist/cli/qmd.js")
QMD = Program(
    name="qmd",
    version="2.8.3 (Node 24.19.0)",
    needs=f"{QMD_PACKAGE}/dist/cli/qmd.js",
    first=(*QMD_COMMAND, "collection", "add", "{corpus}", "--name", "docs", "--mask", "**/*.{{md,markdown,txt,text}}"),
    update=(*QMD_COMMAND, "update"),
    ask=(*QMD_COMMAND, "search", "-n", "10", "{words}"),
    warm=("{beside}/node", "{bench}/qmd_warm.mjs", QMD_PACKAGE, "{place}/cache/qmd/index.sqlite", "{queries}"),
    stored="cache/qmd",
    unequal=(
        "Keyword search alone (`qmd search`): the models that it was made for have to be downloaded, and were not. It"
        " starts and searches without them.",
        "Whole files in one FTS5 table of stems: no exact forms, no literal text; the passage that it shows is found in"
        " the text after the ranking.",
        "ALL words must be in a document, where the others take any: fewer candidates to rank, and often no answer.",
    ),
    environment={"HOME": "{place}", "XDG_CACHE_HOME": "{place}/cache", "XDG_CONFIG_HOME": "{place}/config"},
)

PROGRAMS = (OURS, TANTIVY, RECOLL, QMD)


class Places(NamedTuple):
    """Where everything is during one measurement."""

    corpus: Path
    place: Path
    beside: Path
    python: str
    knowledge: str

    def filled(self, template: str, **more: str) -> str:
        return template.format(**{k: str(v) for k, v in self._asdict().items()}, bench=str(HERE), **more)


def filled(template: str) -> str:
    """A template as the report says it, with no path of a machine."""
    names = {
        "corpus": "CORPUS", "place": "INDEX", "words": "WORDS", "queries": "QUERIES", "beside": "build/beside",
        "python": "python", "knowledge": "knowledge", "bench": "bench/beside",
    }  # fmt: skip
    return template.format(**names)


def shown(template: tuple[str, ...]) -> str:
    """A command as the report says it."""
    return " ".join(part if "*" not in part else f"'{part}'" for part in map(filled, template))
