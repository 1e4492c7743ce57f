"""All that the manual of audits names is there."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

import pmagent.audit
from pmagent.cli.app import program
from pmagent.contracts.audit import AppliedRule
from pmagent.contracts.audit_rubric import RubricDimension, RubricParameters
from pmagent.workspace.settings import AuditSettings

MANUAL = (Path(__file__).resolve().parents[3] / "docs" / "audit.md").read_text("utf-8")


def part(title: str) -> str:
    """A section of the manual."""
    return MANUAL.partition(f"## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    """The words in backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def test_every_setting_is_named() -> None:
    assert {field.name for field in msgspec.structs.fields(AuditSettings)} <= named(part("Limits"))


def test_every_rule_is_named_in_its_order() -> None:
    rules = re.findall(r"^\| \d \| (\w+) \|", part("From opinions to a score"), re.MULTILINE)
    known = set(AppliedRule.model_json_schema()["properties"]["rule"]["enum"])
    assert len(rules) == 6
    assert known - {"median"} == set(rules), "the median stands beside the weight"


def test_every_field_of_our_own_is_named() -> None:
    contracts = {"id", "name", "target_artifact", "forensic_instruction", "success_pattern", "failure_pattern"}
    ours = {field.name for field in msgspec.structs.fields(RubricDimension)} - contracts
    rows = set(re.findall(r"^\| `(\w+)`", part("Rubrics"), re.MULTILINE))
    assert rows == {*ours, "synthesis_parameters"}
    parameters = {field.name for field in msgspec.structs.fields(RubricParameters)}
    assert parameters <= named(part("Rubrics"))


def test_what_python_is_offered_is_there() -> None:
    for name in re.findall(r"`(\w+)`", part("From Python").partition("Also there:")[2]):
        assert name in pmagent.audit.__all__
    (code,) = re.findall(r"^```python\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
    compile(code, "docs/audit.md", "exec")


def test_commands_are_those_of_the_program() -> None:
    for words in re.findall(r"^pmagent (\w+)", MANUAL, re.MULTILINE):
        assert words in program.entries
