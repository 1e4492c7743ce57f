import json
import logging
import os
from pathlib import Path

from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from .schema import Guess, Ticket

log = logging.getLogger(__name__)
RULES: dict[str, list[str]] = json.loads(Path(__file__).with_name("rules.json").read_text())
TEAMS = {"hardware": "field", "access": "identity", "network": "netops", "other": "desk"}
MAX_ATTEMPTS = 2


def by_rules(t: Ticket) -> dict:
    text = t["text"].lower()
    hits = [c for c, words in RULES.items() if any(w in text for w in words)]
    urgent = any(w in text for w in ("urgent", "outage", "everyone", "production"))
    if len(hits) == 1:
        return {"category": hits[0], "urgency": 1 if urgent else 3, "trail": [f"rules: {hits[0]}"]}
    return {"trail": [f"rules: {hits or 'nothing'}"], "attempts": 0}


def by_model(t: Ticket) -> dict:
    model = ChatOpenAI(model=os.environ.get("TRIAGE_MODEL", "gpt-4o-mini"), temperature=0, timeout=20)
    attempts = t.get("attempts", 0) + 1
    try:
        guess = Guess.model_validate(model.with_structured_output(Guess).invoke(
            [("system", "Classify this IT ticket. Urgency 1 is an outage, 4 can wait."), ("human", t["text"][:4000])]))
    except (ValidationError, ValueError) as exc:
        log.warning("ticket %s: %s", t["id"], exc)
        return {"attempts": attempts, "trail": [f"model: no answer that fits ({attempts})"]}
    return {"attempts": attempts, "category": guess.category, "urgency": guess.urgency, "trail": [f"model: {guess.reason}"]}


def assign(t: Ticket) -> dict:
    team = TEAMS[t["category"]]
    if t["urgency"] == 1:
        team += "-oncall"
    return {"team": team, "trail": [f"assigned to {team}"]}


def to_desk(t: Ticket) -> dict:
    return {"team": "desk", "category": "other", "urgency": 3, "trail": ["nobody knows, desk"]}


def needs_model(t: Ticket) -> str:
    return "assign" if t.get("category") else "by_model"


def model_done(t: Ticket) -> str:
    if t.get("category"):
        return "assign"
    return "by_model" if t["attempts"] < MAX_ATTEMPTS else "to_desk"
