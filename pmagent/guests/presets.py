"""How each harness is walled: hosts, folders, keys; and any other program (docs/guests.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from pmagent.contracts.guest_calls import Harness


class Preset(NamedTuple):
    """How one harness is walled. ``hosts``: its provider's; ``home``: its own folder in this user's home, which
    ``variable`` names, or ``above``: the folder in which it lies; ``keys``: variables that hold its key; ``settings``:
    its administrator's, below /etc; ``fixed``: files of its own folder that reach hooks, and stay as they are;
    ``env``: variables that it gets."""

    hosts: tuple[str, ...]
    home: str
    variable: str
    keys: tuple[str, ...]
    settings: str
    fixed: tuple[str, ...] = ()
    above: bool = False
    env: tuple[tuple[str, str], ...] = ()

    def names(self, home: str) -> dict[str, str]:
        """The variable that names its own folder ``home``."""
        return {self.variable: os.path.dirname(home) if self.above else home} if self.variable else {}


PRESETS: Final[Mapping[str, Preset]] = {
    "claude": Preset(
        ("api.anthropic.com", "platform.claude.com"), ".claude", "CLAUDE_CONFIG_DIR",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"), "claude-code/managed-settings.json",
        ("settings.json",),
    ),
    "codex": Preset(
        ("api.openai.com", "auth.openai.com", "chatgpt.com"), ".codex", "CODEX_HOME",
        ("OPENAI_API_KEY", "CODEX_API_KEY"), "codex/requirements.toml",
    ),
    "gemini": Preset(
        ("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"), ".gemini",
        "GEMINI_CLI_HOME", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-cli/settings.json",
        ("settings.json", "trustedFolders.json"), above=True,
        env=(("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json"),),  # which no .env overrides
    ),
    "opencode": Preset(
        ("opencode.ai", "models.dev"), ".local/share/opencode", "XDG_DATA_HOME",
        ("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "opencode/opencode.json", above=True,
        env=(("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("npm_config_fetch_retries", "0")),
    ),
    "script": Preset((), "", "", (), ""),
}  # fmt: skip
"""The harnesses whose administrator's settings run hooks that neither agent nor project switches off; and ``script``,
any other program: nothing gates what it does behind its wall."""
UNGATED: Final[Harness] = "script"
