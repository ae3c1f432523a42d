"""Places that would break an index (P30), and a folder that holds itself (T13)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import UnsafePlaceError
from domain.layout import BaseLayout
from store import files
from tests.support.trees import make_tree

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "afs")
SHARED = ("9p", "virtiofs", "fuse", "fuse.sshfs", "fuse.s3fs", "vboxsf")
LOCAL = ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "apfs", "fuseblk", "overlay", "")
# in a namespace of its own, so that nothing stays mounted whatever happens
MOUNT_AND_WALK = """
import subprocess, sys
from pathlib import Path
from domain.settings import EXTENSIONS
from scheduler.ignore_rules import scope_of_root
from scheduler.walk import WalkReport, WalkRules, walk

root = Path(sys.argv[1])
done = subprocess.run(["mount", "--bind", str(root), str(root / "sub" / "again")], capture_output=True, text=True)
if done.returncode:
    sys.exit(f"no mount: {done.stderr}")
rules = WalkRules(root, "docs/", EXTENSIONS, frozenset(), Path("/nowhere"), scope_of_root((), ()))
report = WalkReport()
print(*(file.key for file in walk(rules, report)), sep="\\n")
print(*report.notes, sep="\\n", file=sys.stderr)
"""


@pytest.mark.parametrize("kind", [*NETWORK, *SHARED, *LOCAL])
def test_kinds_of_file_systems_that_a_new_index_is_refused_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P30: exit 2 before anything is made, and the key that takes the risk is named; local disks are taken."""
    monkeypatch.setattr(files, "file_system_kind", lambda path: kind)
    home = tmp_path / "home"
    if kind in LOCAL:
        files.make_home(BaseLayout(home))
        assert home.is_dir()
        return
    with pytest.raises(UnsafePlaceError) as told:
        files.make_home(BaseLayout(home))
    assert told.value.exit_status == 2
    assert f"({kind})" in told.value.message
    assert "allow_network_filesystem: true" in told.value.hint
    assert not home.exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or sys.platform != "linux",
    reason="mounting a folder needs root on Linux, and util-linux",
)
def test_a_folder_that_is_mounted_within_itself_is_entered_once(tmp_path: Path) -> None:
    """T13: no link, so that only device and inode tell that it is the same folder again."""
    root = make_tree(tmp_path / "docs", {"a.md": "x", "sub/b.md": "x"})
    (root / "sub" / "again").mkdir()
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", MOUNT_AND_WALK, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    if "no mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()[-100:]}")
    assert done.stdout.split() == ["docs/a.md", "docs/sub/b.md"], done.stderr
    assert "docs/sub/again/: the same directory again, not entered" in done.stderr
