"""Requirements of the optional parts, and the command that installs them: by the packages' own names, since a package
index may hold another project under ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "audit": "pymupdf>=1.28,<2",
    "anthropic": "langchain-anthropic>=1.7,<2",
    "openai": "langchain-openai>=1.7,<2",
    "google": "langchain-google-genai>=4.4,<5",
    "mistral": "langchain-mistralai>=1.1,<2",
    "groq": "langchain-groq>=1.1,<2",
    "ollama": "langchain-ollama>=1.1,<2",
    "dspy": "dspy>=3.4,<4",
}
"""Extra -> its requirement, as the project's metadata has it."""


def install(extra: str) -> str:
    """The command that installs what ``extra`` brings."""
    return f"pip install '{EXTRAS[extra]}'"
