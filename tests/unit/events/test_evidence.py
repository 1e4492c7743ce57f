"""Where the evidence of a workspace lies, and what of it tasks must not see besides ``.pmagent``."""

from __future__ import annotations

from pathlib import Path

from pmagent.events.evidence import evidence, external_evidence
from tests.support.cases import each


def configured(workspace: Path, text: str) -> Path:
    """The workspace with these settings."""
    (workspace / ".pmagent").mkdir(parents=True, exist_ok=True)
    (workspace / ".pmagent" / "config.toml").write_text(text)
    return workspace


@each("name", ["log", "blobs", "operators.json"])
def test_a_workspace_of_an_earlier_release_is_known_by_what_it_left(tmp_path: Path, name: str) -> None:
    assert evidence(tmp_path).log == tmp_path / ".pmagent" / "data" / "log"
    (tmp_path / ".pmagent" / name).mkdir(parents=True)
    assert evidence(tmp_path).log == tmp_path / ".pmagent" / "log"
    (tmp_path / ".pmagent" / "data").mkdir()
    assert evidence(tmp_path).log == tmp_path / ".pmagent" / "data" / "log"


@each("text", [
    "", "[storage]", "[storage]\nlog_dir = 5", '[storage]\nlog_dir = " "', "storage = 5", "[",
    '[storage]\nlog_dir = "a\\u0000"',
])  # fmt: skip
def test_settings_that_name_no_folder_change_nothing(tmp_path: Path, text: str) -> None:
    assert evidence(configured(tmp_path, text)).log == tmp_path / ".pmagent" / "data" / "log"
    assert external_evidence(tmp_path) == ()


@each(
    "named, hidden",
    [
        ("kept", ["kept"]), ("../kept", ["../kept"]), ("a/../b", ["b"]), (".pmagent/x", []), (".pmagent", []),
        (".", ["log", "blobs"]), ("..", ["../log", "../blobs"]), ("link", ["target"]),
    ],
)
def test_what_lies_elsewhere_is_hidden_by_its_real_path(tmp_path: Path, named: str, hidden: list[str]) -> None:
    workspace = configured(tmp_path / "w", f'[storage]\nlog_dir = "{named}"')
    (workspace / "link").symlink_to(workspace / "target")
    assert external_evidence(workspace) == tuple(str((workspace / name).resolve()) for name in hidden)
