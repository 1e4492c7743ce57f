"""Prices in the settings come in pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmagent.oa.reasoning import build_envelope, conclude
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import ReasoningSettings
from pmagent.workspace.settings_programs import ConfigError


@pytest.mark.parametrize(("settings", "absent"), [
    (ReasoningSettings(input_usd=3.0), "reasoning.output_usd"),
    (ReasoningSettings(output_usd=3.0), "reasoning.input_usd"),
])
def test_one_price_without_the_other_is_an_error_that_names_the_other(
    workspace: Path, settings: ReasoningSettings, absent: str
) -> None:
    envelope = build_envelope("SafeOPSDecision", "Add a page", workspace=workspace)
    with pytest.raises(ConfigError, match=absent):
        conclude(envelope, workspace, settings)
    assert not Layout(workspace).log.exists()
