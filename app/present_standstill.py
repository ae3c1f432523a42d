"""Who keeps a run from getting on, in words and as JSON."""

from app.present import Json, count
from app.present_safe import name
from app.run_standstill import Standstill


def standstill_words(found: Standstill) -> str:
    """`the writer does not answer (knowledge writer, process 7): it was stopped, or gets no processor`."""
    whose = f" ({name(found.holder)})" if found.holder else ""
    if found.who == "queue":
        return "the queue does not answer"
    if found.how == "silent":
        return f"the {found.who} does not answer{whose}: it was stopped, or gets no processor"
    if found.how == "dead":
        return f"no {found.who} is alive"
    who = "workers have" if found.who == "worker" else "the writer has"
    return f"slow, not dead: {who} {count(found.pages, 'page')} in hand"


def standstill_json(found: Standstill | None) -> Json | None:
    if found is None:
        return None
    return {"who": found.who, "how": found.how, "holder": found.holder or None, "pages": found.pages}
