"""Which signals tell a process of the service to end."""

import signal


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM always; Ctrl-C where it is not ignored, as it is for what a script starts in its background: it is meant
    for what stands in front of the terminal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return (signal.SIGTERM,)
    return (signal.SIGTERM, signal.SIGINT)
