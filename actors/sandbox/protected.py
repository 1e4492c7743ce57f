"""Names that programs of the host run or obey unasked, wherever they lie; pure.

No tool writes them in a writable folder, and none is taken from its artifacts. Names are compared in lower case: some
file systems know no other difference.
"""

from __future__ import annotations

from typing import Final

_SHIPPED: Final = frozenset((
    # Agents: instructions, and settings that start programs. Read in the folder they work in, and below it.
    "agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "copilot-instructions.md",
    ".cursor", ".cursorrules", ".windsurf", ".windsurfrules", ".clinerules", ".roo", ".junie", ".kiro",
    ".gemini", ".codex", ".opencode", "opencode.json", ".aider.conf.yml",
    # Editors: what a development container runs on the host before it is built.
    ".devcontainer", ".devcontainer.json",
    # Version control: which filter or merge driver sees a file; what installed hooks run.
    ".gitattributes", ".lfsconfig", ".pre-commit-config.yaml",
    "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml",
))  # fmt: skip
"""Obeyed where people work. Packages are published with such files, and nobody works in an installed package."""

PROTECTED: Final = _SHIPPED | frozenset((
    # Version control: hooks, settings that name programs, where submodules come from.
    ".git", ".hg", ".svn", ".githooks", ".husky", ".gitmodules", ".gitconfig",
    # pmagent: its log and settings, and what tools may do.
    ".pmagent", "orchestra.config.yaml",
    # Shells and what they start: run, or read for settings, at each start.
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".ripgreprc", ".curlrc", ".wgetrc", ".netrc",
    # Environments that are entered with the folder: variables, tools, hooks.
    ".envrc", ".mise.toml", "mise.toml", ".mise",
    # Keys and hosts.
    ".ssh",
    # Package managers: which registry is believed, which shell or file is run with each script.
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs",
    # Debuggers and editors: commands read from the folder they are started in.
    ".gdbinit", ".lldbinit", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".vscode", ".idea", ".zed",
    # Agents: servers and hooks that they start.
    ".claude", ".mcp.json",
))  # fmt: skip
"""Every such name, in lower case."""

CREDENTIALS: Final = frozenset((
    "credentials", "credentials.toml", "credentials.json", ".credentials", ".credentials.json", "credentials.db",
    ".git-credentials", ".pypirc", ".pgpass", ".my.cnf", ".env", ".htpasswd", ".vault-token", "auth.json",
    "application_default_credentials.json", "secrets.toml", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    ".aws", ".azure", ".gnupg", ".docker", ".kube",
))  # fmt: skip
"""Names of files and folders that hold credentials, in lower case: never shown in a folder that becomes visible only
because a program lies in it."""

PACKAGES: Final = frozenset(("node_modules", "site-packages", "vendor"))
"""Folders of installed packages: of the names below them, those that packages ship are nothing out of the ordinary."""

_PACKAGED: Final = PROTECTED - _SHIPPED


def names(*, packaged: bool) -> frozenset[str]:
    """The protected names in a folder; ``packaged``: it lies below one of ``PACKAGES``."""
    return _PACKAGED if packaged else PROTECTED


def is_named(path: str) -> bool:
    """Whether a part of ``path`` is a protected name."""
    return not PROTECTED.isdisjoint(path.lower().split("/"))
