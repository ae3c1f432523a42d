"""What is remembered of a state of the store between two searches: how common its terms are.

Hangs on (store_uuid, commit_seq): a commit makes it void.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from store.port import Scope, SearchSnapshot, StoreIdentity

MAX_STATES = 4  # a process may serve several stores
MAX_TERMS = 50_000
MAX_SCOPES = 64
MAX_RANGES = 200_000  # of all of them: 130 bytes each


class StoreStatistics(Struct):
    """Filled by searches; threads may share it, since each entry is written whole and always the same."""

    total: int | None = None
    counts: dict[str, int] = field(default_factory=dict)  # by term as written
    scopes: dict[tuple[str, str], Scope | None] = field(default_factory=dict)

    def remember_scope(self, asked: tuple[str, str], scope: Scope | None) -> None:
        """As long as there is room: whoever asks with ever other patterns must not fill the memory."""
        room = MAX_RANGES - (len(scope.ranges) if scope is not None else 0)
        if room < 0:
            return
        held = list(self.scopes.values())
        if len(held) >= MAX_SCOPES or sum(len(one.ranges) for one in held if one is not None) > room:
            self.scopes = {}  # another one: threads may be reading the old
        self.scopes[asked] = scope

    def chunk_total(self, snapshot: SearchSnapshot) -> int:
        if self.total is None:
            self.total = snapshot.chunk_total()
        return self.total

    def term_counts(self, snapshot: SearchSnapshot, terms: Sequence[str]) -> dict[str, int]:
        """In how many chunks each term is (of several tokens: at most); -1 where it has no token."""
        known = self.counts
        unknown = [term for term in dict.fromkeys(terms) if term not in known]
        if unknown:
            if len(known) + len(unknown) > MAX_TERMS:
                self.counts = known = {}
                unknown = list(dict.fromkeys(terms))
            stems = snapshot.stems(unknown)
            counts = snapshot.stem_counts([stem for term in unknown for stem in stems[term]])
            for term in unknown:
                known[term] = min((counts.get(stem, 0) for stem in stems[term]), default=-1)
        return {term: known[term] for term in terms}


_states: dict[tuple[str, int], StoreStatistics] = {}


def statistics_of(identity: StoreIdentity) -> StoreStatistics:
    """The statistics of this state of the store, in this process."""
    state = (identity.store_uuid, identity.commit_seq)
    found = _states.get(state)
    if found is None:
        found = _states[state] = StoreStatistics()
        for old in list(_states)[:-MAX_STATES]:
            _states.pop(old, None)
    return found
