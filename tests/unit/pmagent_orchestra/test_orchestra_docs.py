"""The examples of the manual of runs and of the help are read as they stand there; the defaults are the program's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from pmagent.actors.orchestra.planning.config import read_config
from pmagent.actors.orchestra.planning.plan import make_plan
from pmagent.actors.orchestra.planning.plan import read_plan as parsed
from pmagent.cli.topics import TOPICS
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.orchestra.request import DEFAULTS
from tests.support.orchestra import RUN
from tests.support.orchestra import plan_in as read_plan

MANUAL = (Path(__file__).resolve().parents[3] / "docs" / "orchestra.md").read_text("utf-8")


def keys(value: dict[str, Any], above: str = "") -> set[str]:
    """Every key of a configuration, dotted."""
    found: set[str] = set()
    for name, part in value.items():
        found |= keys(part, f"{above}{name}.") if isinstance(part, dict) else {f"{above}{name}"}
    return found


def test_the_manuals_plan_and_configuration_are_good() -> None:
    plan, more, config = re.findall(r"^```yaml\n(.*?)^```$", MANUAL, re.DOTALL | re.MULTILINE)
    made = make_plan(read_plan(plan), read_config(config), RUN)
    assert [task.name for task in made.tasks] == ["files", "page"]
    given, options = parsed(more)
    wider = read_config('version: "1.0"\nwhitelist_tools: [pytest, ruff, cat]\n')
    made = make_plan(given, wider, RUN, options=options)
    assert [task.name for task in made.tasks] == ["test-unit", "test-web", "lint", "tell"]
    assert {task.inputs.env["CI"] for task in made.tasks} == {"1"}


def test_the_helps_plan_is_good_with_the_specifications_configuration() -> None:
    text = TOPICS["plans"].text()
    plan = "".join(line + "\n" for line in text.split("\n") if line.startswith("  "))
    assert [task.name for task in make_plan(read_plan(plan), DEFAULTS, RUN).tasks] == ["files", "page"]


def test_the_manual_has_every_key_and_its_default() -> None:
    table = MANUAL.split("## orchestra.config.yaml")[1].split("```")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:4]] for row in table.splitlines() if row.startswith("| `")]
    told: dict[str, str] = {}
    for names, default, _ in rows:
        named = re.findall(r"`([^`]+)`", names)
        full = [name if not name.startswith(".") else named[0].rpartition(".")[0] + name for name in named]
        values = [default] if len(full) == 1 else [one.strip() for one in re.split(r", (?!\{)", default)]
        told |= {name: values[min(number, len(values) - 1)] for number, name in enumerate(full)}
    builtins: dict[str, Any] = msgspec.to_builtins(OrchestraConfig(version="1.0"))
    assert set(told) == keys(builtins)
    for name in ("policies.max_task_duration_sec", "policies.max_total_duration_sec", "retries.max",
                 "retries.backoff_base_sec", "concurrency.max_workers", "llm.model", "telemetry.trace_id_header",
                 "policies.default_fs_mode", "paths.runs"):  # fmt: skip
        value: Any = builtins
        for part in name.split("."):
            value = value[part]
        assert told[name] == str(value), name
    assert told["whitelist_tools"].split(", ") == builtins["whitelist_tools"]
