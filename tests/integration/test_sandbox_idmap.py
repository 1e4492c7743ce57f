"""Started by root: folders of root are id-mapped for the tool, which is never root, and for no other process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox import idmap, runner, syscalls
from pmagent.actors.sandbox.host import look
from pmagent.actors.sandbox.spec import SandboxRefused, SandboxUnavailable
from tests.support.sandboxes import OTHER, TRY, needs_sandbox, output_of, sandboxed, spec_for

pytestmark = [needs_sandbox, pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders of root")]

def owners(folder: Path) -> dict[str, int]:
    return {path.name: path.lstat().st_uid for path in folder.rglob("*")}


def test_what_is_roots_is_the_tools_while_it_runs_and_roots_again_with_all_that_it_made(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "closed").mkdir(parents=True, mode=0o700)
    (folder / "closed" / "file").write_text("one ")
    (folder / "closed" / "file").chmod(0o600)
    (folder / "foreign").write_text("theirs")
    (folder / "foreign").chmod(0o600)
    os.chown(folder / "foreign", OTHER, OTHER)
    folder.chmod(0o700)
    mounts = Path("/proc/self/mountinfo").read_text()
    code = TRY + f"""
os.chdir("{folder}")
open("closed/file", "a").write("two"); os.mkdir("made"); open("made/x", "w").close(); os.symlink("x", "made/y")
os.chmod("closed/file", 0o640)
print(os.getuid() > 0, os.stat("made/x").st_uid == os.stat("closed").st_uid == os.getuid(), os.stat("foreign").st_uid)
print(tried(lambda: open("foreign")), tried(lambda: os.chown("made/x", 0, 0)), tried(lambda: open("new", "w") and None))
print(tried(lambda: os.chmod("made/x", 0o4755)), tried(lambda: open(".git/config", "w")))
"""
    lines = output_of(tmp_path, code, fs="rw", allow_write=(str(folder),)).splitlines()
    assert lines == ["True True 65534", "EACCES EPERM done", "EPERM EROFS"]
    assert (folder / "closed" / "file").read_text() == "one two"
    assert owners(folder) == {
        "closed": 0, "file": 0, "foreign": OTHER, "made": 0, "x": 0, "y": 0, "new": 0,
    }  # fmt: skip
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_two_folders_one_in_the_other_and_a_single_file_are_lent(tmp_path: Path) -> None:
    (tmp_path / "w" / "inner").mkdir(parents=True)
    (tmp_path / "one").write_text("")
    paths = (f"{tmp_path}/w", f"{tmp_path}/w/inner", f"{tmp_path}/one")
    code = f"for path in ('w/a', 'w/inner/b', 'one'): open('{tmp_path}/' + path, 'w').write('x')"
    assert output_of(tmp_path, code, fs="rw", allow_write=paths) == ""
    assert owners(tmp_path / "w") == {"inner": 0, "a": 0, "b": 0}
    assert (tmp_path / "one").read_text() == "x"


def test_artifacts_and_inputs_may_lie_in_what_is_lent(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    for name in (".pmagent/tasks/1/artifacts", ".pmagent/tasks/1/inputs"):
        (folder / name).mkdir(parents=True, mode=0o700)
    (folder / ".pmagent/tasks/1/inputs/a").write_text("given")
    code = f"""
import os
print(open("/inputs/a").read(), os.listdir("{folder}/.pmagent"), os.stat("/artifacts").st_uid == os.getuid())
open("/artifacts/x", "w").close(); open("{folder}/y", "w").close()
"""
    artifacts = folder / ".pmagent/tasks/1/artifacts"
    one = spec_for(
        artifacts, code, fs="rw", allow_write=(str(folder),), hide=(f"{folder}/.pmagent",),
        inputs=f"{folder}/.pmagent/tasks/1/inputs",
    )  # fmt: skip
    outcome = anyio.run(runner.run, one)
    assert (outcome.exit_code, outcome.stdout) == (0, b"given [] True\n"), outcome
    assert (artifacts / "x").is_file()
    assert owners(folder).keys() == {".pmagent", "tasks", "1", "artifacts", "inputs", "a", "x", "y"}
    assert set(owners(folder).values()) == {0}


def test_only_what_may_be_written_is_lent(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "r").mkdir()
    more = {"allow_write": (f"{tmp_path}/w",), "allow_read": (f"{tmp_path}/r",)}
    assert look(spec_for(tmp_path / "artifacts", "", fs="rw", **more)).idmapped == (f"{tmp_path}/w",)
    assert look(spec_for(tmp_path / "artifacts", "", **more)).idmapped == ()


def test_folders_of_several_owners_are_refused(tmp_path: Path) -> None:
    for name, uid, gid in (("root", 0, 0), ("other", OTHER, OTHER), ("group", 0, OTHER)):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, uid, gid)
    for names in (("root", "other"), ("group",)):
        with pytest.raises(SandboxRefused, match="do not all belong to one user and group"):
            sandboxed(tmp_path, "", fs="rw", allow_write=tuple(f"{tmp_path}/{name}" for name in names))


def run_idmap(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", runner._IDMAP, "70000", "70000", *words], capture_output=True, text=True, env={},
        check=False,
    )  # fmt: skip


def test_where_the_file_system_cannot_map_ids_the_reason_and_the_way_out_are_told() -> None:
    done = run_idmap("/proc/sys", "--", "/usr/bin/touch", "/tmp/never")
    assert (done.returncode, done.stdout) == (1, "")
    assert "(mount_setattr: " in done.stderr
    assert "chown" in done.stderr
    assert not os.path.exists("/tmp/never")


def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    for path in (tmp_path / "link", tmp_path / "link" / "sub"):
        done = run_idmap(str(path), "--", "/usr/bin/true")
        assert (done.returncode, done.stderr) == (1, f"{path} became a link while it was lent\n")


def test_a_folder_that_cannot_be_lent_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = tmp_path / "idmap.py"
    fails.write_text("raise SystemExit('no mapping here')")
    monkeypatch.setattr(runner, "_IDMAP", str(fails))
    (tmp_path / "w").mkdir()
    with pytest.raises(SandboxUnavailable, match="could not be built: no mapping here"):
        sandboxed(tmp_path, f"open('{tmp_path}/w/x', 'w')", fs="rw", allow_write=(f"{tmp_path}/w",))
    assert list((tmp_path / "w").iterdir()) == []


def test_the_numbers_of_the_calls_are_the_filters_own() -> None:
    for name, number in idmap._NUMBERS.items():
        assert {syscalls.number(name, machine) for machine in syscalls.MACHINES} == {number}
