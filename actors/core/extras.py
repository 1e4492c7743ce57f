"""Requirements of the optional parts, and the command that installs them: by the packages' own names, since a package
index may hold another project under ours."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "audit": ("langchain-core>=1.7,<2", "langgraph>=1.2,<2", "pymupdf>=1.28,<2"),
    "pla": ("pyserial>=3.5,<4", "pyserial-asyncio>=0.6,<0.7"),
    "guests": ("tree-sitter>=0.25,<0.27", "tree-sitter-bash>=0.25,<0.26"),
    "cedar": ("cedarpy>=4.12,<5",),
    "pg": ("psycopg[binary]>=3.3,<4",),
    "webauthn": ("webauthn>=3.0,<4",),
    "s3": ("botocore>=1.43,<2",),
    "anthropic": ("langchain-anthropic>=1.7,<2",),
    "openai": ("langchain-openai>=1.7,<2",),
    "google": ("langchain-google-genai>=4.4,<5",),
    "mistral": ("langchain-mistralai>=1.1,<2",),
    "groq": ("langchain-groq>=1.1,<2",),
    "ollama": ("langchain-ollama>=1.1,<2",),
    "dspy": ("dspy>=3.4,<4",),
}
"""Extra -> its requirements, as the project's metadata has them."""


def install(extra: str, prefix: Path | None = None) -> str:
    """The command that installs the requirements of ``extra`` into this environment (see ``install_command``)."""
    return install_command(EXTRAS[extra], prefix)


def install_command(requirements: tuple[str, ...] | list[str], prefix: Path | None = None) -> str:
    """The command that installs ``requirements`` into the environment at ``prefix`` (None: the running one), by the
    program that made it: uv's and pipx's tool environments have no pip of their own."""
    at = Path(sys.prefix) if prefix is None else prefix
    quoted = " ".join(map(shlex.quote, requirements))
    if (at / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(at.name)} {quoted}"
    if (at / "uv-receipt.toml").is_file():
        return f"uv pip install --python {shlex.quote(str(at))} {quoted}"
    return f"pip install {quoted}"
