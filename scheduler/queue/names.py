"""Every name that a base uses in the queue, in one place; all begin with `knowledge:<base id>:`."""

from msgspec import Struct


class QueueNames(Struct, frozen=True):
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
    def taken(self) -> str:
        """Set to see whether the queue takes anything, and gone at once."""
        return f"{self.prefix}taken"

    @property
    def verified(self) -> str:
        """There once a worker has seen that the embeddings server still answers for the index; dropped with its run."""
        return f"{self.prefix}verified"

    @property
    def done(self) -> str:
        """What the writer says of the pages that it has committed, oldest first, for the scheduler."""
        return f"{self.prefix}done"

    @property
    def troubles(self) -> str:
        """What workers could not do for a reason outside of the files, oldest first."""
        return f"{self.prefix}troubles"

    @property
    def workers(self) -> str:
        """The ids of workers that have taken jobs; a dead one stays until the reaper has freed its jobs."""
        return f"{self.prefix}workers"

    @property
    def leases(self) -> str:
        """What the leases of all roles begin with."""
        return f"{self.prefix}lease:"

    @property
    def of_a_run(self) -> tuple[str, ...]:
        """What goes with a run: its jobs' queues, and what was said about them."""
        return (self.checks, self.writes, self.done, self.troubles, self.hold_up, self.verified)

    def lease(self, role: str, holder: str) -> str:
        """There for as long as a process of a role says that it lives."""
        return f"{self.leases}{role}:{holder}"

    def held(self, worker: str) -> str:
        """The job ids that a worker has taken and not finished."""
        return f"{self.prefix}held:{worker}"

    def at(self, worker: str) -> str:
        """The job whose files a worker is reading now."""
        return f"{self.prefix}at:{worker}"

    def check_job(self, run: int, page: int, attempt: int) -> str:
        return f"{self.prefix}check:{run}:{page}:{attempt}"

    def write_job(self, run: int, page: int, attempt: int) -> str:
        return f"{self.prefix}write:{run}:{page}:{attempt}"
