"""The proceedings, in LangGraph's functional style: tasks are started together and waited for."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from langgraph.func import entrypoint, task

from . import fetch, investigate, judges, ruling
from .records import Case, Criterion, Finding, Opinion, Role

ROLES: tuple[Role, ...] = ("prosecutor", "defence", "engineer")


class Brief(TypedDict):
    address: str
    repo: str
    pdf: str
    criteria: list[Criterion]


class Looked(TypedDict):
    findings: list[Finding]
    failed: str


@task
def look(name: str, repo: str, pdf: str) -> Looked:
    try:
        if name == "history":
            return {"findings": investigate.history(Path(repo)), "failed": ""}
        if name == "code":
            return {"findings": investigate.code(Path(repo)), "failed": ""}
        return {"findings": investigate.report(Path(pdf), Path(repo)), "failed": ""}
    except Exception as error:
        return {"findings": [], "failed": f"{name}: {type(error).__name__}: {error}"}


@task
def hear(role: Role, criterion: Criterion, findings: list[Finding]) -> Opinion | str:
    try:
        return judges.judge(role, criterion, findings)
    except judges.NoOpinion as error:
        return str(error)


@entrypoint()
def court(brief: Brief) -> Case:
    looking = [look(name, brief["repo"], brief["pdf"]) for name in ("history", "code", "report")]
    looked = [one.result() for one in looking]
    findings = [found for one in looked for found in one["findings"]]
    silent = [one["failed"] for one in looked if one["failed"]]
    if not findings:
        return Case(address=brief["address"], findings=[], silent=silent, opinions=[], rulings=[])
    hearing = [hear(role, criterion, findings) for criterion in brief["criteria"] for role in ROLES]
    heard = [one.result() for one in hearing]
    opinions = [one for one in heard if isinstance(one, Opinion)]
    silent += [one for one in heard if isinstance(one, str)]
    rulings = [ruling.rule(criterion, opinions, findings) for criterion in brief["criteria"]]
    return Case(address=brief["address"], findings=findings, silent=silent, opinions=opinions, rulings=rulings)


def hold(address: str, pdf: Path, criteria: list[Criterion]) -> Case:
    with fetch.fetched(address) as repo:
        return court.invoke({"address": address, "repo": str(repo), "pdf": str(pdf), "criteria": criteria},
                            {"max_concurrency": 6})
