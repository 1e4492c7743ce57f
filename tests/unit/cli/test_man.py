"""The manual pages are those that the help makes, and troff understands them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from pmagent.cli.app import program
from tests.support.cases import each

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "man"


@pytest.fixture(scope="module")
def man() -> ModuleType:
    """The script that writes them."""
    spec = importlib.util.spec_from_file_location("man", ROOT / "scripts" / "man.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_made_from_the_help_of_today(man: ModuleType) -> None:
    assert {path.name: path.read_text("utf-8") for path in PAGES.glob("*")} == man.pages(), "make man"


def test_every_command_has_its_place_in_a_page(man: ModuleType) -> None:
    text = "\n".join(man.pages().values()).replace("\\-", "-")
    assert [name for name in program.entries if f"pmagent {name}" not in text and name != "version"] == []


@each("page", sorted(path.name for path in PAGES.glob("*.1")))
def test_troff_has_nothing_to_object_to(page: str) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-ww", "-man", "-Tutf8", "-z", str(PAGES / page)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
