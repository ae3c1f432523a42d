"""A random walk over a tree and its index: edits, runs over all of it or a part, removals, crashes, and the checks.

The same seed gives the same walk. A walk that finds something wrong ends there and says how it came to it.
"""

import random
import shutil
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tests.support.drifts import open_plain
from tests.support.model import SECRET, ModelTree
from tests.support.model_answers import (
    check_covered,
    check_documents,
    check_fresh,
    check_meaning,
    check_store,
    check_words,
    database_of,
    stored_in,
)
from tests.support.model_oracle import Oracle, key_of
from tests.support.model_runs import Command, Outcome, RunHost, Verb, settings_of
from tests.support.model_texts import FORMS, TextSource

DIMENSION = 24
FIRST_FILES = 45
WORDS_A_LOOK = 2
MARKERS_A_LOOK = 5
MARKERS_AT_THE_END = 150
SETTLED_NS = 2_100_000_000


def let_time_pass(home: Path) -> None:
    """Every check so far was made long enough after the last change of its file for its times to be believed (R26)."""
    with closing(open_plain(database_of(home))) as connection:
        for table in ("documents", "skipped_files"):
            connection.execute(f"UPDATE {table} SET checked_ns = max(mtime_ns, ctime_ns) + {SETTLED_NS}")  # noqa: S608


class WentWrongError(Exception):
    """Something is stored, or answered, that the oracle does not know of; or the other way round."""


@dataclass(slots=True)
class ModelWalk:
    """One walk. `url` is that of an embeddings server whose vector is a pure function of the text; "": words only."""

    place: Path
    host: RunHost
    seed: int
    url: str = ""
    words_first: bool = False
    history: list[str] = field(default_factory=list)
    runs: int = 0
    crashes: int = 0
    questions: int = 0
    source: random.Random = field(init=False)
    tree: ModelTree = field(init=False)
    oracle: Oracle = field(init=False)
    _is_sound: bool = True  # every document has its vectors: not so between a crash and the next run
    _statements: int = 200  # of the last run: a crash comes at one of as many

    def __post_init__(self) -> None:
        self.source = random.Random(self.seed)
        self.tree = ModelTree(self.place / "docs", self.place / "outside", self.source, TextSource(self.source))
        self.oracle = Oracle(self.tree)

    @property
    def home(self) -> Path:
        return self.place / "home"

    def go(self, steps: int) -> None:
        """So many steps, then the comparison with a fresh index. Raises WentWrongError.

        A step is an edit that found something to do, or a command.
        """
        self.tree.make()
        try:
            for _ in range(FIRST_FILES):
                self.tree.create()
            self._run("index")
            while len(self.history) < steps:
                self._step()
            self._settle()
        finally:
            self.tree.open_everything()

    def _step(self) -> None:
        roll = self.source.random()
        if roll < 0.04:
            self._run("index")
        elif roll < 0.06:
            self._run_part()
        elif roll < 0.09:
            self._crash()
        elif roll < 0.098:
            self._remove()
        elif roll < 0.105:
            self._run(self.source.choice(("reindex", "rehash")))
        elif roll < 0.11:
            self._maintain()
        else:
            self._edit()

    def _edit(self) -> None:
        tree = self.tree
        edits = [tree.create] * 10 + [tree.edit] * 3 + [tree.delete, tree.rename, tree.shrink] * 2
        edits += [tree.grow, tree.edit_in_silence, tree.touch, tree.copy, tree.exchange, tree.move_folder, tree.spoil]
        edits += [tree.empty, tree.fatten, tree.delete_folder, tree.replace_by_folder, tree.replace_by_link]
        edits += [tree.replace_folder_by_link, tree.replace_by_fifo]
        if self.host.heeds_modes:
            edits += [tree.close, tree.close_folder, *[tree.open, tree.open_folder] * 2]
        edit = self.source.choice(edits)
        told = edit()
        if told:
            self.history.append(f"{edit.__name__} {told}")

    def _command(self, verb: Verb, *paths: Path) -> Command:
        commit: Literal["together", "words_first"] = "words_first" if self.words_first else "together"
        return Command(verb, str(self.home), tuple(map(str, paths)), self.url, commit)

    def _do(self, command: Command) -> Outcome:
        outcome = self.host.do(command)
        self.history.append(f"{command.verb} {[Path(path).name for path in command.paths]} -> {tuple(outcome)}")
        self._demand([outcome.error] if outcome.error else [])
        return outcome

    def _run(self, verb: Verb, scope: str = "") -> None:
        """A run to its end; then documents, vectors, and a handful of words."""
        after, is_whole = self.oracle.after_run(scope)
        outcome = self._do(self._command(verb, self.tree.root / scope if scope else self.tree.root))
        self.runs += 1
        self._statements = outcome.statements
        self.oracle.stored = after
        self._is_sound = self._is_sound or not scope
        if self.source.random() < 0.5:
            let_time_pass(self.home)
        self._demand([] if outcome.state == ("done" if is_whole else "partial") else [f"the run is {outcome.state}"])
        self._look()

    def _run_part(self) -> None:
        """Over a file or a folder, or over what has been one."""
        gone = sorted(set(self.oracle.stored) - set(self.tree.nodes) - self.tree.folders)
        gone = [path for path in gone if not self.tree.is_below_link(path) and not self.tree.is_shut(path)]
        scope = self.source.choice(gone) if gone and self.source.random() < 0.5 else self.tree.some_scope()
        if scope:
            self._run("index", scope)

    def _crash(self) -> None:
        """kill -9 in a run: each document is the old one or the new one, and nothing else is there (P1)."""
        after, _ = self.oracle.after_run()
        command = replace(
            self._command("index", self.tree.root),
            dies_at=self.source.randrange(1, self._statements + 20),
            dies_after=self.source.random() < 0.5,
        )
        outcome = self._do(command)
        found = stored_in(self.home)
        self.runs += 1
        self.crashes += outcome.state == "killed"
        self._is_sound = outcome.state != "killed"  # a document may be without vectors: the words come first
        self._demand([f"neither old nor new: {path}" for path in self.oracle.strays(found, after)])
        self.oracle.stored = found if outcome.state == "killed" else after
        self._look()

    def _remove(self) -> None:
        paths = sorted(self.oracle.stored)
        if paths:
            path = self.source.choice(paths)
            path = path.rpartition("/")[0] if self.source.random() < 0.3 and "/" in path else path
            after = self.oracle.after_removal(path)
            self._do(replace(self._command("rm"), paths=(key_of(path),)))
            self.oracle.stored = after
            self._look()

    def _maintain(self) -> None:
        """What must change nothing."""
        self._do(self._command(self.source.choice(("rebuild", "compact", "verify"))))
        self._look()

    def _look(self) -> None:
        """What a reader can see now, part of it by chance."""
        self._demand(check_documents(self.home, self.oracle))
        if self.url and self._is_sound:
            self._demand(check_covered(self.home))
        if not self._is_sound or self.source.random() < 0.2:
            self._demand(check_store(self.home, DIMENSION if self.url else 0))
        markers = self.tree.texts.markers
        words = [self.tree.texts.word() for _ in range(WORDS_A_LOOK)]
        words += self.source.sample(markers, min(MARKERS_A_LOOK, len(markers)))
        self._ask(words)

    def wrong_words(self) -> list[str]:
        """What is wrong with the answers for every stem and marker there is."""
        return check_words(settings_of(self._command("index")), self.oracle, [*FORMS, *self.tree.texts.markers])

    def _ask(self, words: list[str]) -> None:
        settings = settings_of(self._command("index"))
        self.questions += 2 * len(words)
        self._demand(check_words(settings, self.oracle, words))
        if self.url and self._is_sound:
            self.questions += 2
            self._demand(check_meaning(settings, self.home, [self.source.randrange(10_000) for _ in range(2)]))

    def _settle(self) -> None:
        """Everything may be read again: the index ends as a fresh one begins."""
        self.tree.open_everything()
        self._run("index")
        markers = self.tree.texts.markers
        self._ask([*FORMS, SECRET, *self.source.sample(markers, min(MARKERS_AT_THE_END, len(markers)))])
        fresh = self.place / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        self._do(replace(self._command("index", self.tree.root), home=str(fresh)))
        self._demand(check_store(self.home, DIMENSION if self.url else 0))
        self._demand(check_fresh(self.home, fresh))
        verdict = self._do(self._command("verify"))
        self._demand([verdict.state] if verdict.state else [])

    def _demand(self, problems: list[str]) -> None:
        if problems:
            raise WentWrongError(f"{len(self.history)} steps: {problems[:4]}")
