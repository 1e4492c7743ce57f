"""Areas: what each says of itself is so, and everything else follows from it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.areas import AREA_OF, AREAS
from pmagent.actors.core.actor import Resources
from pmagent.actors.core.area import Area, in_order, lines_of, load
from pmagent.actors.core.authority import authority_of
from pmagent.actors.model.models import Models
from pmagent.actors.pla.line.holding import Line
from pmagent.actors.registry import all_actors, libraries
from pmagent.contracts import payload
from pmagent.contracts.payload import types
from pmagent.edges import EDGES, OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.jobs.registry import KINDS
from pmagent.log.summaries import known
from pmagent.pla.vault import Vault
from pmagent.projections.registry import all_projections
from pmagent.service.host import performers_of, resources_of
from pmagent.service.operations import NotInstalled, perform
from tests.support.commands import pmagent

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

CORE = {"actor", "console", "control", "daemon", "effect", "log", "request"}
"""The first words of the core's own types."""


def test_actors_take_an_event_in_this_order() -> None:
    """The logs that there are were recorded in it. An actor that came later is not in them."""
    recorded = [
        "kernel", "oa", "context", "reasoner", "model", "checker", "orchestrator", "coordinator", "worker", "auditor",
        "brain", "warden", "hid",
    ]  # fmt: skip
    assert [actor.name for actor in all_actors() if actor.name in recorded] == recorded
    documents = ["oa_state", "run_folders", "audits", "pla_sessions"]
    assert [projection.name for projection in all_projections() if projection.name in documents] == documents


def test_actors_bear_the_names_that_their_areas_give_them() -> None:
    for area in AREAS:
        for name, reference in area.actors.items():
            assert load(reference)().name == name
    assert authority_of(all_actors()).grantor in AREA_OF["oa"].actors


def test_each_type_of_event_is_one_areas_or_the_cores() -> None:
    modules = ("pmagent.contracts.", "pmagent.events.")
    ours = {name: cls for name, cls in types().items() if cls.__module__.startswith(modules)}
    assert {name.partition(".")[0] for name in ours} == CORE | AREA_OF.keys()
    assert len(AREA_OF) == sum(len(area.families) for area in AREAS)
    for name, cls in ours.items():
        area = AREA_OF.get(name.partition(".")[0])
        assert (cls.__module__ in area.contracts) if area else cls.__module__.startswith(("pmagent.contracts.",
        "pmagent.events."))


def test_lines_are_of_types_that_there_are() -> None:
    for area in AREAS:
        assert {name.partition(".")[0] for name in lines_of(area)} <= {*area.families}
        assert not lines_of(area).keys() - types().keys()
    assert {*known()} <= types().keys()


def test_laws_are_functions() -> None:
    assert all(callable(load(law)) for area in AREAS for law in (*area.laws, *area.rests, area.simulated) if law)


def test_kinds_of_jobs_are_those_of_the_areas() -> None:
    assert [kind.word for kind in KINDS] == ["run", "audit"]
    assert all(AREA_OF[kind.word].job for kind in KINDS)


def test_areas_stand_behind_those_that_they_are_after_and_else_by_name() -> None:
    a, b, c, d = Area(name="a", after=("c",)), *(Area(name=name) for name in "bcd")
    for given in ([a, b, c, d], [d, c, b, a]):
        assert [area.name for area in in_order(given)] == ["b", "c", "a", "d"]
    for wrong in ([a], [b, b], [a, Area(name="c", after=("a",))]):
        with pytest.raises(ValueError, match=r"'c'|different names"):
            in_order(wrong)


def test_edges_are_of_areas_and_name_what_there_is() -> None:
    assert {edge.area for edge in EDGES} <= {"", *(area.name for area in AREAS)}
    assert len({edge.area for edge in EDGES}) == len(EDGES)
    assert len(OPERATIONS) == sum(len(edge.operations) for edge in EDGES)
    for edge in EDGES:
        assert all(load(part) for part in edge.hosted)
    for operation in OPERATIONS.values():
        for reference in (operation.perform, operation.alone, operation.absent, operation.seconds, operation.outlives):
            assert not reference or callable(load(str(reference)))
        assert operation.alone or not operation.looks


def test_every_request_for_an_effect_has_one_performer() -> None:
    kept = Resources(resources_of(EDGES, {}))
    made = [request for edge in EDGES for request in performers_of([edge], kept)]
    wanted = {cls for cls in payload._EFFECTS if cls.__module__.startswith("pmagent.contracts.")}
    assert len(made) == len(set(made))
    assert set(made) == wanted


def test_areas_keep_resources_of_different_classes() -> None:
    made = [type(one) for one in resources_of(EDGES, {})]
    assert len(made) == len({*made})
    assert {Models, Vault, Line} < {*made}
    with pytest.raises(KeyError):
        Resources([Models({})])[Line]


def test_libraries_that_decide_are_required_as_the_project_requires_them() -> None:
    project = tomllib.loads(PROJECT.read_text())["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["audit"]]
    for area in AREAS:
        assert area.lacks == []
        assert {*area.libraries.values()} <= {*required}
    assert all(libraries().values())


AUDITS = Path(__file__).parents[1] / "histories" / "audits" / "log"


def test_without_its_library_an_area_is_read_and_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pmagent(AUDITS, "replay", str(AUDITS), "--format", "json")
    assert (whole.document["undecided"], whole.document["libraries"]) == ([], libraries())
    monkeypatch.setitem(sys.modules, "langgraph", None)
    done = pmagent(AUDITS, "replay", str(AUDITS))
    assert done.code == 2
    assert "not decided: area audit is not installed" in done.text
    assert "langgraph" in done.errors
    told = pmagent(AUDITS, "replay", str(AUDITS), "--format", "json")
    assert (told.code, told.document["equal"], told.document["undecided"]) == (2, False, ["audit"])
    assert told.document["divergences"] == []
    assert 0 < told.document["decisions"] < whole.document["decisions"]
    assert pmagent(AUDITS, "replay", str(AUDITS), "--actor", "kernel").code == 0
    assert pmagent(AUDITS, "log", "verify", str(AUDITS)).code == 0


async def test_without_its_library_an_area_is_asked_for_nothing_but_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph", None)
    nobody: Any = None
    with pytest.raises(NotInstalled, match=r"audit.*langgraph"):
        await perform(nobody, "audit.run", {})
    with pytest.raises(PmagentError, match="cancel"):
        await perform(nobody, "audit.cancel", {})


def test_import_rules_name_the_modules_that_touch_the_world() -> None:
    """To add one: name it in its area's ``impure``, and in each list of pyproject.toml that is told here."""
    rules = {rule["name"]: rule for rule in tomllib.loads(PROJECT.read_text())["tool"]["importlinter"]["contracts"]}
    areas = {f"pmagent.actors.{area.name}.{module}" for area in AREAS for module in area.impure}
    core = {"pmagent.actors.core.runtime", "pmagent.actors.core.performing"}
    touching = core | areas | {"pmagent.actors.**.effects", "pmagent.actors.sandbox.**"}
    for name, rule in rules.items():
        if "are pure" in name:
            assert {*rule["ignore_imports"]} == {f"{one} -> *" for one in touching}
        elif "Replay cannot act" in name or "Processes" in name:
            told = {*rule.get("forbidden_modules", ()), *rule.get("protected_modules", ())}
            assert told
            others = {one for one in told if not one.startswith("pmagent.actors.sandbox")}
            assert others <= {one.removesuffix(".*") for one in touching}


def test_only_the_daemons_side_loads_parts_of_edges() -> None:
    """Import rules do not see a part that is loaded by name. The console and replay must not reach performers so."""
    root = PROJECT.parent
    loads = re.compile(r"^from pmagent.actors.core.area import .*\bload\b", re.MULTILINE)
    files = [file for folder in ("pmagent", "projections", "replay") for file in (root / folder).rglob("*.py")]
    assert {file.relative_to(root).as_posix() for file in files if loads.search(file.read_text())} == {
        "pmagent/jobs/registry.py", "pmagent/service/adoption.py", "pmagent/service/alerts.py",
        "pmagent/service/daemon.py", "pmagent/service/host.py", "pmagent/service/open_work.py",
        "pmagent/service/operations.py", "pmagent/service/standby.py", "pmagent/service/status.py",
        "projections/registry.py",
        "replay/simulation/invariants.py", "replay/simulation/environment.py", "replay/simulation/runner.py",
    }  # fmt: skip


def test_an_engine_needs_no_area() -> None:
    """The core is a library of its own."""
    root = PROJECT.parent
    listing = {"pmagent.actors.areas", "pmagent.actors.known", "pmagent.actors.registry"}
    modules = {f"pmagent.actors.core.{file.stem}" for file in (root / "actors" / "core").glob("*.py")} - listing
    modules |= {f"pmagent.replay.{file.stem}" for file in (root / "replay").glob("*.py")}
    modules |= {f"pmagent.projections.core.{name}" for name in ("disk", "documents", "markdown", "projection")}
    code = f"import sys, {', '.join(sorted(modules))}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    parts = {f"pmagent.actors.{area.name}" for area in AREAS} | {module for area in AREAS for module in area.contracts}
    assert "pmagent.actors.core.engine" in loaded
    assert not loaded & (parts | {"pmagent.actors.areas"})


def test_each_operation_says_who_answers_it_on_a_machine_that_does_not_hold_the_log() -> None:
    """A new one must decide, and stand in the table of docs/machines.md: once."""
    found = {}
    for name, one in OPERATIONS.items():
        found[name] = "this machine" if one.here else "the holder" if one.far else "nobody"
        assert bool(one.there) == bool(found[name] == "nobody" or one.own), name
        assert not one.here or one.alone, name
    text = (PROJECT.parent / "docs/machines.md").read_text("utf-8")
    rows = re.findall(r"^\| (the holder|this machine|nobody) \|.*\| (.+?) \|$", text, re.MULTILINE)
    listed = [(name, who) for who, names in rows for name in re.findall(r"`(.+?)`", names)]
    assert sorted(listed) == sorted(found.items())
