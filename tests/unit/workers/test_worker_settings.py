"""worker.toml: whatever it does not name is not permitted, and nobody else may change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmagent.actors.sandbox.spec import SandboxUnavailable
from pmagent.workers import worker
from pmagent.workers.settings import BadWorker, Sizes, UnsafeWorker, read_settings
from tests.support.commands import pmagent
from tests.support.sandboxes import needs_sandbox

GOOD = 'database = "postgresql:///x"\nlogs = ["lab"]\ntools = ["sh"]\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file."""
    path = tmp_path / "worker.toml"
    path.write_text(GOOD)
    return path


def test_what_is_not_named_is_not_permitted(file: Path) -> None:
    made = read_settings(file)
    assert (made.capacity, made.labels, made.paths, made.hosts, made.sizes) == (1, [], [], [], Sizes())
    assert made.name
    assert made.replicated
    assert read_settings(file, "postgresql:///y").database == "postgresql:///y"


@pytest.mark.parametrize(
    ("text", "said"),
    [("tool = []", "tool"), ("capacity = 0", "capacity"), ('labels = ["A B"]', "labels"), ("[sizes]\nmore = 1", "more"),
     ('paths = ["x"]', "no absolute"), ('folder = "/a/../b"', "no absolute"), ('hosts = ["*.com"]', "hosts"),
     ('[line]\ndevice = "ttyACM0"', "no absolute"), ("[line]\nport = 1", "port"), ("x = ", "TOML")],
)  # fmt: skip
def test_what_cannot_be_obeyed_is_one_error_that_names_it(file: Path, text: str, said: str) -> None:
    file.write_text(GOOD + text)
    with pytest.raises(BadWorker) as caught:
        read_settings(file)
    assert caught.value.exit_code == 2
    assert said in caught.value.message
    assert str(file) in caught.value.message


@pytest.mark.parametrize("name", ["database", "logs", "tools"])
def test_a_file_that_names_too_little_is_refused(file: Path, name: str) -> None:
    file.write_text("".join(line + "\n" for line in GOOD.splitlines() if not line.startswith(name)))
    with pytest.raises(BadWorker, match="names no"):
        read_settings(file)


def test_a_worker_that_carries_a_line_needs_no_programs(file: Path) -> None:
    file.write_text(GOOD.replace('tools = ["sh"]\n', "") + '[line]\ndevice = "/dev/ttyACM0"\nserial = "7"\n')
    made = read_settings(file)
    assert made.line is not None
    assert (made.tools, made.line.device, made.line.serial) == ([], "/dev/ttyACM0", "7")


@needs_sandbox
def test_a_host_where_no_sandbox_can_be_made_takes_no_attempts(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lets:
        """A database that lets this worker claim."""

        def check(self) -> None:
            """It may."""

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(worker, "worker_table", lambda *_, **__: Lets())
    file.write_text(GOOD + f'folder = "{tmp_path / "work"}"\n')
    worker.check(read_settings(file))
    assert list((tmp_path / "work").iterdir()) == []
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="bubblewrap is not installed"):
        worker.check(read_settings(file))


def test_a_file_that_others_may_change_is_refused(file: Path) -> None:
    file.chmod(0o664)
    with pytest.raises(UnsafeWorker) as caught:
        read_settings(file)
    assert caught.value.exit_code == 7


def test_the_command_says_what_is_wrong(file: Path, workspace: Path, tmp_path: Path) -> None:
    assert pmagent(workspace, "worker", "check", "--config", str(tmp_path / "none")).code == 2
    file.write_text(GOOD + f'folder = "{tmp_path / "work"}"\n')
    ran = pmagent(workspace, "worker", "check", "--config", str(file), "--join", "postgresql://e:secret@x/y")
    assert ran.code == 2
    assert "secret" not in ran.errors
    ran = pmagent(workspace, "worker", "check", "--config", str(file), "--join", f"postgresql:///y?host={tmp_path}")
    assert ran.code == 5
    assert not (tmp_path / "work").exists()
