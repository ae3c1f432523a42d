"""What was told, in state.db (store.notice_port)."""

from collections.abc import Collection, Mapping

from store.notice_port import ToldState
from store.state_connection import StateConnection


class NoticeLedger(StateConnection):
    """The part of state.db that notices are kept in (store.notice_port.NoticeLedgerPort)."""

    def told_states(self) -> Mapping[str, ToldState]:
        rows = self._read("SELECT subject, state, told_ns FROM notices ORDER BY subject")
        return {subject: ToldState(state, told_ns) for subject, state, told_ns in rows}

    def remember_told(self, states: Mapping[str, str], now_ns: int) -> None:
        self._write(
            "INSERT INTO notices (subject, state, told_ns) VALUES (?, ?, ?)"
            " ON CONFLICT (subject) DO UPDATE SET state = excluded.state, told_ns = excluded.told_ns"
            " WHERE state <> excluded.state",
            [(subject, state, now_ns) for subject, state in states.items()],
        )

    def forget_told(self, subjects: Collection[str]) -> None:
        self._write("DELETE FROM notices WHERE subject = ?", [(subject,) for subject in subjects])
