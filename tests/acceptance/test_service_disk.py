"""A service whose disk is short of room: writing pauses and says so, everything else goes on (P23, fault 11)."""

from contextlib import closing
from pathlib import Path

from app.roles.calls import ApplyGroup, await_answer, place_call
from store.sqlite import SqliteStore
from store.write_port import GroupResult, RemoveWrite, WriteGroup
from tests.support.service import many_files, service

FILES = 200


def test_writing_waits_for_room_and_goes_on_by_itself(tmp_path: Path) -> None:
    with service(tmp_path, configuration="  disk_reserve: 1000000000 GiB", files=many_files(FILES)) as it:
        it.start_all()
        run = it.first_run()
        it.wait_until(lambda: it.run(run).state == "waiting")
        assert "room on the disk" in it.run(run).cause
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert not store.reader().has_documents()

        gone = WriteGroup(removes=[RemoveWrite("docs/part-00/file-00000.md", 1, 1)])
        call = place_call(it.layout.calls, ApplyGroup(gone))
        assert await_answer(it.layout.calls, call, GroupResult, lambda: None).results, "a removal is not kept waiting"

        configuration = tmp_path / "knowledge.yaml"
        text = configuration.read_text(encoding="utf-8")
        configuration.write_text(text.replace("1000000000 GiB", "1 MiB"), encoding="utf-8")
        assert it.of("writer")[0].terminate() == 0
        it.start("writer")
        ended = it.ended(run)
        assert ended.state == "done"
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert store.reader().document_count("docs/") >= FILES - 1
