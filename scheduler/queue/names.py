"""Every name that a base uses in the queue, in one place; all begin with `knowledge:<base id>:`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueueNames:
    """The queues, leases and lists of one base."""

    base_id: str

    @property
    def prefix(self) -> str:
        return f"knowledge:{self.base_id}:"

    @property
    def checks(self) -> str:
        """Pages to be checked by workers."""
        return f"{self.prefix}checks"

    @property
    def writes(self) -> str:
        """Finished pages on their way to the writer."""
        return f"{self.prefix}writes"

    @property
    def parked(self) -> str:
        """Payloads that nobody can work on, newest first, capped."""
        return f"{self.prefix}parked"

    @property
    def hold_up(self) -> str:
        """Why workers make no progress now, in a few words; gone by itself soon after it is no longer said."""
        return f"{self.prefix}hold-up"

    @property
    def verified(self) -> str:
        """There once a worker has seen that the embeddings server still answers for the index; dropped with its run."""
        return f"{self.prefix}verified"

    def check_job(self, run: int, page: int, attempt: int) -> str:
        return f"{self.prefix}check:{run}:{page}:{attempt}"

    def write_job(self, run: int, page: int, attempt: int) -> str:
        return f"{self.prefix}write:{run}:{page}:{attempt}"
