"""Settings: what wins over what, where each came from, and errors that name the nearest right key."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from pmagent.contracts.audit_events import DIMENSIONS_MAX, TRIES, AuditLimits
from pmagent.contracts.model import ModelLimits
from pmagent.contracts.pla import CredentialPolicy
from pmagent.contracts.pla_events import PlaProposalRequested
from pmagent.contracts.reasoning_events import EngineName
from pmagent.workspace.settings import (
    AuditSettings,
    PlaSettings,
    ReasoningSettings,
    resolve,
    settings_table,
    unknown_variables,
)
from pmagent.workspace.settings_programs import ConfigError
from tests.support.cases import each
from tests.support.commands import pmagent


def configured(workspace: Path, text: str) -> Path:
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent" / "config.toml").write_text(text)
    return workspace


def test_a_file_that_cannot_be_read_is_not_called_bad(tmp_path: Path) -> None:
    (tmp_path / ".pmagent" / "config.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        resolve(str(tmp_path), {})


def test_variables_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    configured(tmp_path, '[kernel]\nphase = "2"\n[cli]\ntail_lines = 7\n')
    found = resolve(str(tmp_path), {"PMAGENT_KERNEL_PHASE": "28B"})
    assert found.settings.kernel.phase == "28B"
    assert found.settings.cli.tail_lines == 7
    assert found.settings.cli.color == "auto"
    assert list(found.origins) == ["workspace", *(setting.key for setting in settings_table())]
    assert {key: origin for key, (_, origin) in found.origins.items() if origin != "default"} == {
        "workspace": "--workspace", "kernel.phase": "PMAGENT_KERNEL_PHASE", "cli.tail_lines": ".pmagent/config.toml",
    }


def test_reasonings_settings_are_the_contracts_engines_and_limits() -> None:
    """They are written twice, so that commands that only read a log need not import the contracts."""
    hints = get_type_hints(ReasoningSettings)
    assert get_args(hints["engine"]) == get_args(EngineName)
    settings = ReasoningSettings()
    names = [name for name in ModelLimits.__struct_fields__ if name != "patience_minutes"]  # it is the audits' alone
    limits = {name: getattr(settings, name) for name in names}
    assert msgspec.convert(limits, ModelLimits) == ModelLimits()
    ours, theirs = (msgspec.json.schema(kind)["$defs"][kind.__name__] for kind in (ReasoningSettings, ModelLimits))
    for name in names:
        given, bounds = ours["properties"][name], theirs["properties"][name]
        assert {key: value for key, value in given.items() if key != "description"} == bounds, name


def test_audits_settings_are_the_contracts_limits() -> None:
    settings = AuditSettings()
    limits = {name: getattr(settings, name) for name in AuditLimits.__struct_fields__}
    assert msgspec.convert(limits, AuditLimits) == AuditLimits()
    ours = msgspec.json.schema(AuditSettings)["$defs"]["AuditSettings"]["properties"]
    for kind in (AuditLimits, ModelLimits):
        for name, bounds in msgspec.json.schema(kind)["$defs"][kind.__name__]["properties"].items():
            apart = {"description", "default"} if kind is ModelLimits else {"description"}
            given = {key: value for key, value in ours[name].items() if key not in apart}
            assert given == {key: value for key, value in bounds.items() if key not in apart}, name
    again, criteria, judges, rounds = TRIES, DIMENSIONS_MAX, 3, 2
    assert settings.calls >= criteria * judges * rounds, "a rubric as large as can be is judged twice"
    assert settings.calls >= 10 * judges * rounds * again, "and one of ten criteria, if no reply fits at first"


def test_the_pla_s_settings_are_the_contracts_policy_and_limits() -> None:
    hints = get_type_hints(PlaSettings)
    assert get_args(hints["credentials"]) == get_args(CredentialPolicy)
    ours = msgspec.json.schema(PlaSettings)["$defs"]["PlaSettings"]["properties"]
    theirs = msgspec.json.schema(ModelLimits)["$defs"]["ModelLimits"]["properties"]
    named = ("attempts", "call_seconds", "calls", "seconds", "tokens")
    for name in named:
        assert {key: value for key, value in ours[name].items() if key != "description"} == theirs[name], name
    lifetime = msgspec.json.schema(PlaProposalRequested)["$defs"]["PlaProposalRequested"]["properties"]["lifetime_s"]
    assert {key: value for key, value in ours["proposal_seconds"].items() if key != "description"} == lifetime


def test_the_flag_wins_over_the_variable_for_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    given = {"PMAGENT_WORKSPACE": str(tmp_path / "b")}
    assert resolve(str(tmp_path / "a"), given).workspace == tmp_path / "a"
    assert resolve(None, given).workspace == tmp_path / "b"
    monkeypatch.chdir(tmp_path)
    assert resolve(None, {}).workspace == tmp_path


def test_a_workspace_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a directory"):
        resolve(str(tmp_path / "none"), {})


@each("text, message, hint", [
    ("[kernel]\nphse = 1\n", "no setting kernel.phse", "kernel.phase"),
    ("[kernal]\nphase = 1\n", "no setting kernal.phase", "kernel.phase"),
    ("phase = 1\n", "no setting phase", "kernel.phase"),
    ("[cli]\ntail_lines = -1\n", "cli.tail_lines", ""),
    ("[cli]\ntail_lines = 'x'\n", "cli.tail_lines", ""),
    ('[cli]\ncolor = "pink"\n', "cli.color", ""),
    ("[cli\n", "cannot be read as TOML", ""),
    (f"x = {'[' * 5000}{']' * 5000}\n", "cannot be read as TOML", ""),
])
def test_what_is_not_understood_is_named_with_its_file(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(str(configured(tmp_path, text)), {})
    assert message in caught.value.message
    assert "config.toml" in caught.value.message
    assert hint in caught.value.hint


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PMAGENT_CLI_TAIL_LINES"):
        resolve(str(tmp_path), {"PMAGENT_CLI_TAIL_LINES": "many"})


def test_misspelt_variables_are_found() -> None:
    environ = {"PMAGENT_WORKSPCE": "/", "PMAGENT_CLI_COLOR": "auto", "HOME": "/"}
    assert unknown_variables(environ) == ["PMAGENT_WORKSPCE"]


def test_every_setting_is_explained() -> None:
    assert all(setting.text for setting in settings_table())


def test_a_command_uses_the_settings(tmp_path: Path) -> None:
    done = pmagent(configured(tmp_path, "[cli]\nbogus = 1\n"), "log", "tail")
    assert done.code == 2
    assert "cli.bogus" in done.errors
