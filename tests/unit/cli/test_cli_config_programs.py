"""The tables [checks] and [guards]: understood strictly, and held together with what is built in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts import checks as contract
from pmagent.oa.guards.table import GUARDS
from pmagent.workspace import settings_programs as config_programs
from pmagent.workspace.documents import OA_STATE_CHECK
from pmagent.workspace.settings import resolve, settings_table, unknown_variables
from pmagent.workspace.settings_programs import BUILT_IN_CHECKS, BUILT_IN_GUARDS, TABLES, ConfigError, programs
from pmagent.workspace.surfaces import CHECKS, LOG_CHECK
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.effort import examples


def configured(workspace: Path, text: str) -> Path:
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent" / "config.toml").write_text(text)
    return workspace


def test_programs_are_names_with_argument_lists_in_the_files_order(tmp_path: Path) -> None:
    text = """
        [checks]
        "Unit Tests" = ["make", "test"]
        Lint = ["sh", "-c", "ruff check\\nmypy"]
        [guards]
        No-Links = ["./scripts/links.sh"]
    """
    found = resolve(str(configured(tmp_path, text)), {})
    assert list(found.checks.items()) == [("Unit Tests", ("make", "test")), ("Lint", ("sh", "-c", "ruff check\nmypy"))]
    assert found.guards == {"no_links": ("./scripts/links.sh",)}
    assert found.origins["checks.Unit Tests"] == ("make test", ".pmagent/config.toml")
    assert found.origins["guards.no_links"] == ("./scripts/links.sh", ".pmagent/config.toml")


def test_without_tables_there_are_none(tmp_path: Path) -> None:
    found = resolve(str(tmp_path), {})
    assert (found.checks, found.guards) == ({}, {})


def test_doctor_shows_them(tmp_path: Path) -> None:
    configured(tmp_path, '[checks]\nTests = ["make", "all tests"]\n')
    shown = pmagent(tmp_path, "doctor", "--format", "json").document["settings"]
    assert {"key": "checks.Tests", "value": "make 'all tests'", "origin": ".pmagent/config.toml"} in shown


def test_they_have_no_variables() -> None:
    assert not any(setting.key.startswith(TABLES) for setting in settings_table())
    assert unknown_variables({"PMAGENT_CHECKS_TESTS": "make"}) == ["PMAGENT_CHECKS_TESTS"]


@each("text, message", [
    ("checks = 1\n", "checks is no table"),
    ('checks = ["true"]\n', "checks is no table"),
    ('[[checks]]\na = ["true"]\n', "checks is no table"),
    ('[checks]\na = "true"\n', "checks.a: this is no list of texts"),
    ("[checks]\na = []\n", "checks.a: this is no list of texts"),
    ('[checks]\na = [""]\n', "checks.a: this is no list of texts"),
    ('[checks]\na = ["sleep", 1]\n', "checks.a: this is no list of texts"),
    ('[checks]\na = ["true", ""]\n', "checks.a: this is no list of texts"),
    ('[checks]\na = [["true"]]\n', "checks.a: this is no list of texts"),
    ('[checks.a]\ncommand = ["true"]\n', "checks.a: this is no list of texts"),
    ('[checks]\na = ["tr\\u0000ue"]\n', "NUL"),
    ('[checks]\na = ["tr\\u001bue"]\n', "not printable"),
    ('[checks]\n"" = ["true"]\n', "this is no name"),
    ('[checks]\n" a" = ["true"]\n', "this is no name"),
    ('[checks]\n"a\\nb" = ["true"]\n', r"checks.'a\nb': this is no name"),
    ('[checks]\n"a\\u202eb" = ["true"]\n', "this is no name"),
    (f'[checks]\n{"n" * 101} = ["true"]\n', "this is no name"),
    (f'[checks]\na = ["{"x" * 4097}"]\n', "too long"),
    (f"[checks]\na = {['x'] * 101}\n", "too long"),
    (f"[checks]\na = {['x' * 4000] * 5}\n", "too long"),
    ("[checks]\n" + "".join(f'c{n} = ["true"]\n' for n in range(101)), "[checks] has 101 entries"),
    ('[checks]\n"log integrity" = ["true"]\n', "a built-in check has this name"),
    ('[checks]\n"OA State" = ["true"]\n', "a built-in check has this name"),
    ('[guards]\n"Surface-Schema" = ["true"]\n', "a built-in guard has this name"),
    ('[guards]\n"a.b" = ["true"]\na-b = ["false"]\n', "another entry is called 'a_b' already"),
    ('[guards]\n"a b" = ["true"]\n', "letters, digits and _"),
    ('[guards]\n"caf\u00e9" = ["true"]\n', "letters, digits and _"),
    ('[guards]\nfine = "true"\n', "guards.fine: this is no list of texts"),
    ('[check]\na = ["true"]\n', "no setting check"),
])
def test_what_is_not_understood_is_one_error_with_file_and_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(str(configured(tmp_path, text)), {})
    assert message in caught.value.message
    assert str(tmp_path / ".pmagent" / "config.toml") in caught.value.message
    assert caught.value.hint
    done = pmagent(tmp_path, "kernel", "refresh")
    assert (done.code, done.text) == (2, "")
    assert not (tmp_path / "share").exists()


def test_a_misspelt_table_names_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(str(configured(tmp_path, '[guard]\na = ["true"]\n')), {})
    assert caught.value.hint == "did you mean [guards]?"


def test_the_names_that_are_taken_are_those_that_are_built_in() -> None:
    assert set(BUILT_IN_CHECKS) == {*CHECKS, LOG_CHECK, OA_STATE_CHECK}
    assert set(BUILT_IN_GUARDS) == set(GUARDS)


def test_the_bounds_are_the_contracts() -> None:
    """They are written twice, so that commands that only read a log need not import the contracts."""
    assert config_programs.PROGRAMS_MAX == contract.CHECKS_MAX
    for name in ("NAME_CHARS_MAX", "ARGUMENTS_MAX", "ARGUMENT_CHARS_MAX"):
        assert getattr(config_programs, name) == getattr(contract, name)
    seconds = next(setting for setting in settings_table() if setting.key == "kernel.check_seconds")
    assert (seconds.default, seconds.kind) == (60.0, float)


@each("seconds, good", [("600", True), ("0.5", True), ("601", False), ("0", False)])
def test_a_check_may_be_given_what_the_contract_allows(tmp_path: Path, seconds: str, good: bool) -> None:
    environ = {"PMAGENT_KERNEL_CHECK_SECONDS": seconds}
    if good:
        assert resolve(str(tmp_path), environ).settings.kernel.check_seconds == float(seconds) <= contract.SECONDS_MAX
    else:
        with pytest.raises(ConfigError):
            resolve(str(tmp_path), environ)


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values: Any = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner), max_leaves=6
)
names = st.text("abC-._ 1\u202e\x1b", max_size=4)
argvs = st.lists(st.text(max_size=4), min_size=1, max_size=3)


@given(st.sampled_from(TABLES), values | st.dictionaries(names, argvs, max_size=3))
@settings(max_examples=examples(300))
def test_any_table_is_understood_or_refused_with_an_error_of_ours(table: str, content: Any) -> None:
    try:
        found = programs(Path("config.toml"), table, content)
    except ConfigError as error:
        message = error.message
        assert message.isprintable()
        return
    assert len(found) == len(content)
    for name, argv in found.items():
        msgspec.convert({"name": name, "argv": list(argv)}, contract.ConfiguredCheck)
        assert name.isprintable()
