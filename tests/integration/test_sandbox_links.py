"""Symbolic links that a tool leaves in a writable folder: those that lead out are found, told and taken away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.sandbox import cleanup
from pmagent.actors.sandbox.cleanup import before, clear
from tests.support import sandboxes
from tests.support.sandboxes import needs_sandbox, sandboxed, spec_for, writable

pytestmark = needs_sandbox


@pytest.fixture(autouse=True, params=["another user's", "root's"])
def owner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the writable folders; for an ordinary user they are their own."""
    if request.param == "root's":
        if os.geteuid() != 0:
            pytest.skip("started by an ordinary user")
        monkeypatch.setattr(sandboxes, "OTHER", 0)


def left(tmp_path: Path, code: str, *others: str, **more: object) -> dict[str, str]:
    """Run this in the folder w; path below it -> target, of the links that are told."""
    folder = tmp_path / "w"
    outcome = sandboxed(
        tmp_path, f"import os\nos.chdir({str(folder)!r})\n{code}", fs="rw", allow_write=(str(folder), *others), **more,
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome
    found = {}
    for told in outcome.planted:
        path, _, rest = told.partition(", a link to ")
        target, _, aside = rest.rpartition(", now ")
        assert aside == f"{path}.planted"
        assert not os.path.lexists(path)
        assert not os.path.islink(aside)
        assert Path(aside).read_text() == f"{target}\n"
        found[os.path.relpath(path, folder)] = target
    return found


@pytest.mark.parametrize("target", ["/etc", "/etc/passwd", "/", "/nowhere/at/all", "/proc/self/cwd/w", "/usr"])
def test_an_absolute_link_that_leads_out_is_found(tmp_path: Path, target: str) -> None:
    writable(tmp_path / "w")
    assert left(tmp_path, f"os.symlink({target!r}, 'l')") == {"l": target}


def test_a_relative_link_that_leads_out_is_found_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "w" / "a" / "b").mkdir(parents=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "file").write_text("of the host")
    writable(tmp_path / "w")
    code = """
os.symlink("../src/file", "one"); os.symlink("../../../src", "a/b/two"); os.symlink("../../nowhere", "a/three")
os.symlink("../w/../src", "four"); os.symlink("a/../../src", "FIVE.Txt")
"""
    assert left(tmp_path, code) == {
        "one": "../src/file", "a/b/two": "../../../src", "a/three": "../../nowhere", "four": "../w/../src",
        "FIVE.Txt": "a/../../src",
    }  # fmt: skip
    assert (tmp_path / "src" / "file").read_text() == "of the host"


def test_a_link_that_only_looks_as_if_it_stayed_inside_is_found(tmp_path: Path) -> None:
    """Over another link, which is fine by itself, ``..`` leads higher than the text says; so do a renamed parent, and
    a link to a link."""
    (tmp_path / "w" / "top").mkdir(parents=True)
    (tmp_path / "w" / "deep" / "er").mkdir(parents=True)
    writable(tmp_path / "w")
    code = """
os.symlink("../../top", "deep/er/up"); os.symlink("deep/er/up/../../x", "sly")
os.makedirs("p/q/r"); os.symlink("../../../top", "p/q/r/moved"); os.rename("p/q/r", "r")
os.symlink("hop", "first"); os.symlink("/etc", "hop")
"""
    assert left(tmp_path, code) == {
        "sly": "deep/er/up/../../x", "r/moved": "../../../top", "first": "hop", "hop": "/etc",
    }  # fmt: skip


def test_a_link_to_what_is_protected_is_found_and_the_others_stay(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / "runs" / "another").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("")
    (folder / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    writable(folder)
    writable(tmp_path / "other")
    code = f"""
os.symlink(".git/config", "one"); os.symlink("{folder}/.git", "two"); os.symlink("runs/another/x", "three")
os.makedirs("sub/.VScode"); os.rmdir("sub/.VScode"); os.symlink("sub/.VScode/tasks.json", "four")
os.makedirs("node_modules/.bin"); os.symlink("../tool/cli.js", "node_modules/.bin/tool")
os.symlink("file", "fine"); os.symlink("{folder}/file", "whole"); os.symlink("{tmp_path}/other/file", "granted")
os.symlink("loop", "loop"); os.symlink("missing", "later"); os.symlink("/usr/bin/env", "program")
"""
    found = left(tmp_path, code, str(tmp_path / "other"), protect=(f"{folder}/runs/another",))
    assert found == {
        "one": ".git/config", "two": f"{folder}/.git", "three": "runs/another/x", "four": "sub/.VScode/tasks.json",
    }  # fmt: skip
    links = {path.name for path in folder.rglob("*") if path.is_symlink()}
    assert links == {"tool", "fine", "whole", "granted", "loop", "later", "program"}


def test_links_that_were_there_stay_unless_the_run_changes_or_moves_them(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    for name in ("kept", "changed", "moved", "again"):
        (folder / name).symlink_to("/etc")
    writable(folder)
    code = """
os.unlink("changed"); os.symlink("/var", "changed"); os.rename("moved", "new")
os.link("kept", "second", follow_symlinks=False); os.unlink("again"); os.symlink("/etc", "again")
"""
    assert left(tmp_path, code) == {"changed": "/var", "new": "/etc", "second": "/etc"}
    assert {path.name for path in folder.iterdir() if path.is_symlink()} == {"kept", "again"}


def test_links_in_folders_that_were_closed_and_with_names_of_no_text_are_found(tmp_path: Path) -> None:
    writable(tmp_path / "w")
    code = r"""
os.mkdir("dark"); os.symlink("/etc", "dark/l"); os.chmod("dark", 0o555)
os.symlink(b"/\xff\n", b"\xfe\x1b[1m"); os.mkdir(b"\xff"); os.mkdir(b"\xff/.git")
"""
    folder = tmp_path / "w"
    outcome = sandboxed(tmp_path, f"import os\nos.chdir({str(folder)!r})\n{code}", fs="rw", allow_write=(str(folder),))
    assert outcome.exit_code == 0, outcome
    told = {told.removeprefix(f"{folder}/").partition(",")[0] for told in outcome.planted}
    assert told == {"\\xff/.git", "dark/l", "\\xfe\x1b[1m"}
    msgspec.json.encode(outcome.planted)
    assert not [path for path in folder.rglob("*") if path.is_symlink()]
    assert (folder / "dark").stat().st_mode & 0o777 == 0o555


def test_nothing_hides_in_what_looks_like_a_repository_nor_below_a_protected_name(tmp_path: Path) -> None:
    """Both are moved aside, and look like any other folder then."""
    folder = writable(tmp_path / "w")
    code = f"""
import os
os.chdir("{folder}")
for here in ("fake", "fake/objects/deep", "x/.git"):
    for name in ("objects", "refs", "sub"): os.makedirs(f"{{here}}/{{name}}")
    open(f"{{here}}/HEAD", "w").close(); open(f"{{here}}/sub/.envrc", "w").close()
    os.symlink("/etc", f"{{here}}/sub/l")
os.symlink("/etc", ".bashrc")
"""
    outcome = sandboxed(tmp_path, code, fs="rw", allow_write=(str(folder),))
    assert outcome.exit_code == 0, outcome
    below = ("fake", "fake/objects/deep", "x/.git.planted")
    expected = {f"{here}/{name}" for here in below for name in ("HEAD", "sub/.envrc", "sub/l")} | {"x/.git", ".bashrc"}
    assert {told.removeprefix(f"{folder}/").partition(",")[0] for told in outcome.planted} == expected
    assert len(outcome.planted) == len(expected)
    assert not [path for path in folder.rglob("*") if path.is_symlink() or path.name in {"HEAD", ".envrc", ".git"}]


def test_a_writable_folder_that_is_a_repository_is_looked_through_as_well(tmp_path: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (tmp_path / "w" / name).mkdir(parents=True)
    (tmp_path / "w" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "w" / "config").write_text("")
    (tmp_path / "w" / "refs" / "there").symlink_to("/etc")
    writable(tmp_path / "w")
    assert left(tmp_path, 'os.symlink("/etc", "refs/l")') == {"refs/l": "/etc"}


def test_a_virtual_environment_of_the_systems_python_stays_as_it_is(tmp_path: Path) -> None:
    """Made by hand: the system may have no module venv."""
    writable(tmp_path / "w")
    code = """
os.makedirs("venv/bin"); os.makedirs("venv/lib"); os.symlink("lib", "venv/lib64")
os.symlink("/usr/bin/env", "venv/bin/python3"); os.symlink("python3", "venv/bin/python")
"""
    assert left(tmp_path, code) == {}
    assert subprocess.run([str(tmp_path / "w/venv/bin/python"), "true"], check=False).returncode == 0


def test_whatever_the_host_puts_in_the_links_place_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    spec = spec_for(tmp_path / "artifacts", "", fs="rw", allow_write=(str(folder),))
    found = before(spec)
    (folder / "l").symlink_to("/etc")
    known = cleanup._known

    def meanwhile(path: str, closed: list[str] | None = None) -> cleanup.Known:
        seen = known(path, closed)
        (folder / "l").unlink()
        (folder / "l").write_text("theirs")
        return seen

    monkeypatch.setattr(cleanup, "_known", meanwhile)
    monkeypatch.setattr(cleanup, "_leads_out", lambda *_: True)
    assert len(clear(spec, found, ())) == 1
    assert (folder / "l.planted").read_text() == "theirs"
