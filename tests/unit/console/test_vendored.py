"""Files of others among the console's own are as they were published, each with its licence, and need no eval."""

from __future__ import annotations

import re
import tomllib
from hashlib import sha256

from pmagent.console.pages.rendering import STATIC, TEMPLATES

VENDOR = STATIC / "vendor"
LISTED = tomllib.loads((VENDOR / "manifest.toml").read_text("utf-8"))["file"]


def test_each_file_is_as_it_was_published_and_has_its_licence() -> None:
    for one in LISTED:
        assert sha256((VENDOR / one["name"]).read_bytes()).hexdigest() == one["sha256"], one["name"]
        assert len((VENDOR / one["license_file"]).read_text("utf-8")) > 300
        assert re.fullmatch(r"[0-9]+[.][0-9]+[.][0-9]+", one["version"])
        assert one["license"]


def test_every_file_is_listed_and_used() -> None:
    named = {"manifest.toml", *(one["name"] for one in LISTED), *(one["license_file"] for one in LISTED)}
    assert {path.name for path in VENDOR.iterdir()} == named
    pages = "".join(path.read_text("utf-8") for path in TEMPLATES.glob("*.html"))
    for one in LISTED:
        assert f"/static/vendor/{one['name']}" in pages


def test_none_of_them_makes_code_of_text_or_styles_of_its_own() -> None:
    for one in LISTED:
        source = (VENDOR / one["name"]).read_text("utf-8")
        assert not re.search(r"\beval\(|new Function|insertRule|<style", source), one["name"]
