"""Threads of a soak."""

import threading


class Beside(threading.Thread):
    """Something that goes on until it is stopped; one that has ended before is a fault of the soak itself."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._over = threading.Event()

    def stop(self) -> None:
        """Returns when it has come to its end. Raises RuntimeError where it had before."""
        if not self.is_alive():
            raise RuntimeError(f"the {self.name} ended before the soak did")
        self._over.set()
        self.join()
