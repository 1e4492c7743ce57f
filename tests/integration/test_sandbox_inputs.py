"""A task finds its files and its inputs when it starts, and nothing of what is hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmagent.actors.sandbox.arguments import Guarded, Hidden
from pmagent.actors.sandbox.host import look
from pmagent.actors.sandbox.spec import TASK, Limits, SandboxRefused
from tests.support.sandboxes import (
    TRY,
    as_ordinary_user,
    by_root,
    needs_sandbox,
    output_of,
    sandboxed,
    spec_for,
    writable,
)

pytestmark = needs_sandbox

def test_files_lie_in_the_tasks_folder_as_they_were_given_and_are_its_own(tmp_path: Path) -> None:
    files = (("run.py", b"print('ran')"), ("data/deep/b", bytes(range(256)) * 300), ("data/ü x", b""), (".git/x", b"1"))
    code = TRY + """
import hashlib
print(os.getcwd(), sorted(os.listdir()), sorted(os.listdir("data")))
print(open("data/deep/b", "rb").read() == bytes(range(256)) * 300, os.path.getsize("data/ü x"))
open("run.py", "a").write("\\nprint('twice')")
os.rename("data/deep/b", "c"); os.rmdir("data/deep"); os.unlink("data/ü x"); os.mkdir("data/more")
exec(open("run.py").read())
"""
    assert output_of(tmp_path, code, files=files, workdir=TASK).splitlines() == [
        "/tmp/task ['.git', 'data', 'run.py'] ['deep', 'ü x']", "True 0", "ran", "twice",
    ]  # fmt: skip


def test_the_tasks_folder_is_there_without_files_and_each_run_has_a_new_one(tmp_path: Path) -> None:
    for _ in range(2):
        assert output_of(tmp_path, f"import os; print(os.listdir('{TASK}')); open('{TASK}/x', 'w')") == "[]"


def test_files_count_towards_the_room_in_tmp(tmp_path: Path) -> None:
    code = TRY + "print(tried(lambda: os.posix_fallocate(os.open('/tmp/x', os.O_CREAT | os.O_WRONLY), 0, 600_000)))"
    limits = Limits(seconds=20, tmp_bytes=2**20)
    assert output_of(tmp_path, code, limits=limits) == "done"
    assert output_of(tmp_path, code, limits=limits, files=(("x", bytes(500_000)),)) == "ENOSPC"


def test_inputs_are_read_and_never_written(tmp_path: Path) -> None:
    given = writable(tmp_path / "given")
    (given / "a").write_text("content")
    code = TRY + """
print(os.environ["INPUTS"], open("/inputs/a").read())
for path in ("/inputs/a", "/inputs/new"):
    print(tried(lambda: open(path, "w") and None))
"""
    more = {"fs": "rw", "allow_write": (str(given),)}
    assert output_of(tmp_path, code, inputs=str(given)).splitlines() == ["/inputs content", "EROFS", "EROFS"]
    assert output_of(tmp_path, code, inputs=str(given), **more).splitlines() == ["/inputs content", "EROFS", "EROFS"]
    assert output_of(tmp_path, "import os; print(os.path.exists('/inputs'), os.environ.get('INPUTS'))") == "False None"


def test_inputs_through_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(SandboxRefused, match="leads through a link"):
        sandboxed(tmp_path, "", inputs=str(tmp_path / "link"))


HIDDEN = """
print(sorted(os.listdir("{w}")), os.listdir("{w}/.pmagent"), repr(open("{w}/key").read()))
print(tried(lambda: open("{w}/.pmagent/log")), tried(lambda: open("{w}/.pmagent/new", "w") and None))
print(tried(lambda: open("{w}/key", "w") and None), tried(lambda: os.rename("{w}/.pmagent", "{w}/p")))
print(tried(lambda: os.rename("{w}/key", "{w}/k")), tried(lambda: os.unlink("{w}/key")))
"""


@pytest.mark.parametrize("fs", ["read-only", "rw"])
def test_what_is_hidden_is_empty_and_cannot_be_filled_or_moved(tmp_path: Path, fs: str) -> None:
    folder = tmp_path / "w"
    (folder / ".pmagent").mkdir(parents=True)
    (folder / ".pmagent" / "log").write_text("secret")
    (folder / "key").write_text("secret")
    writable(folder)
    hide = (f"{folder}/.pmagent", f"{folder}/key", f"{folder}/missing", f"{folder}/.pmagent/log", "/srv/elsewhere")
    code = TRY + HIDDEN.replace("{w}", str(folder))
    allow = {"allow_write": (str(folder),)} if fs == "rw" else {"allow_read": (str(folder),)}
    lines = output_of(tmp_path, code, fs=fs, hide=hide, **allow).splitlines()
    listing = ["'.pmagent'", "'key'"] if fs == "read-only" else [
        "'.git'", "'.pmagent'", "'key'", "'missing'", "'orchestra.config.yaml'",
    ]  # fmt: skip
    assert lines[0] == f"[{', '.join(listing)}] [] ''"
    assert lines[1] == "ENOENT EROFS"
    busy = "EBUSY" if fs == "rw" else "EROFS"
    assert lines[2:] == [f"EROFS {busy}", f"{busy} {busy}"]
    assert (folder / ".pmagent" / "log").read_text() == "secret"
    assert sorted(path.name for path in folder.iterdir()) == [".pmagent", "key"]


def test_only_what_would_be_seen_is_hidden_and_what_is_above_hides_it_too(tmp_path: Path) -> None:
    for name in ("w/a/b", "other"):
        (tmp_path / name).mkdir(parents=True)
    writable(tmp_path / "w")
    hide = (f"{tmp_path}/w/a/b", f"{tmp_path}/w/a", f"{tmp_path}/other", f"{tmp_path}/w/none/deep")
    more = {"allow_write": (f"{tmp_path}/w",), "hide": hide}
    found = look(spec_for(tmp_path / "artifacts", "", **more))
    assert (found.hidden, found.guarded) == ((Hidden(f"{tmp_path}/w/a", folder=True),), ())
    found = look(spec_for(tmp_path / "artifacts", "", fs="rw", **more))
    assert found.hidden == (Hidden(f"{tmp_path}/w/a", folder=True),)
    assert Guarded(f"{tmp_path}/w/none", missing=True) in found.guarded


def test_what_is_to_be_hidden_and_reached_through_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w" / "real").mkdir(parents=True)
    (tmp_path / "w" / ".pmagent").symlink_to("real")
    for name in (".pmagent", ".pmagent/x"):
        with pytest.raises(SandboxRefused, match="leads through a link"):
            sandboxed(tmp_path, "", allow_read=(str(tmp_path / "w"),), hide=(str(tmp_path / "w" / name),))


@by_root
def test_an_ordinary_users_tools_own_their_files() -> None:
    assert as_ordinary_user("inputs") == ["755 1000 a", "644 1000 a/x", "hello", "given", "hidden"]
