import json
import re
import subprocess
import tempfile
from pathlib import Path

from langchain_openai import ChatOpenAI
from langgraph.types import Send

from .data import Bench, Court, Vote

ROLES = {
    "accuser": "Accuse. Every gap is negligence until shown otherwise. Cite exhibits, spare nobody, go low.",
    "advocate": "Defend. Find merit and intent in each exhibit, explain what is missing, go high.",
    "engineer": "Judge by what would break in production and what a fix would cost. Neither pity nor anger.",
}


def fetch(court: Court):
    if not court["url"].startswith(("https://", "/")):
        return {"trouble": "not an address"}
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run(["git", "clone", "-q", "--", court["url"], tmp], capture_output=True, text=True, timeout=60)
        if done.returncode:
            return {"trouble": done.stderr}
        files = {str(p.relative_to(tmp)): p.read_text(errors="replace")[:2000] for p in sorted(Path(tmp).rglob("*.py"))[:20]}
    return {"exhibits": files}


def route(court: Court):
    if court.get("trouble"):
        return "dismiss"
    return ["count_lines", "find_calls"]


def count_lines(court: Court):
    return {"exhibits": {"size": str(sum(t.count("\n") for t in court["exhibits"].values()))}}


def find_calls(court: Court):
    return {"exhibits": {"calls": " ".join(re.findall(r"\w+\.\w+\(", "".join(court["exhibits"].values())))}}


def docket(court: Court):
    return {}


def call_bench(court: Court):
    return [Send("vote", Bench(role=role, exhibits=court["exhibits"])) for role in ROLES]


def vote(bench: Bench):
    llm = ChatOpenAI(model="gpt-4o-mini", timeout=60)
    voter = llm.with_structured_output(Vote).with_retry(stop_after_attempt=3)
    messages = [("system", ROLES[bench["role"]]), ("human", json.dumps(bench["exhibits"]))]
    answer = voter.invoke(messages)
    return {"votes": [(bench["role"], answer)]}


def capped(score, exhibits):
    return min(score, 3) if "os.system(" in exhibits.get("calls", "") else score


def rule(court: Court):
    votes = dict(court["votes"])
    scores = sorted(v.score for v in votes.values())
    backed = [v.score for v in votes.values() if set(v.exhibits) & set(court["exhibits"])] or scores
    score = sum(backed) / len(backed)
    wide = scores[-1] - scores[0] > 2
    if wide:
        score = votes["engineer"].score
    score = capped(score, court["exhibits"])
    dissent = {role: v.why for role, v in votes.items()} if wide else {}
    verdict = {"url": court["url"], "score": round(score, 1), "dissent": dissent}
    Path("verdict.json").write_text(json.dumps(verdict, indent=1))
    return {"verdict": verdict}


def dismiss(court: Court):
    Path("verdict.json").write_text(json.dumps({"url": court["url"], "dismissed": court.get("trouble")}))
    return {}
