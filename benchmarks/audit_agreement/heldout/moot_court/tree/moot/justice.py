"""The chief justice: no model in here."""
from pathlib import Path
from statistics import median

from .models import Case, Opinion, Ruling

SECURITY_WORDS = ("injection", "os.system", "shell=true")


def facts_first(opinions: list[Opinion]) -> list[Opinion]:
    """Opinions that cite nothing do not count, unless nobody cites anything."""
    return [o for o in opinions if o.cited] or opinions


def settle(topic: str, opinions: list[Opinion]) -> Ruling:
    notes = []
    kept = facts_first(opinions)
    if len(kept) < len(opinions):
        notes.append("uncited opinions set aside")
    scores = {o.judge: o.score for o in kept}
    if topic == "graph" and "tech_lead" in scores:
        weighed = [*scores.values(), scores["tech_lead"]]
        score = sum(weighed) / len(weighed)
    else:
        score = median(scores.values())
    if max(scores.values()) - min(scores.values()) > 2:
        # far apart: trust whoever brought more evidence
        best = max(kept, key=lambda o: len(o.cited))
        notes.append(f"spread {sorted(scores.values())}; {best.judge} brought most evidence and prevails")
        score = best.score
        low, high = min(kept, key=lambda o: o.score), max(kept, key=lambda o: o.score)
        notes.append(f"dissent: {low.judge} says '{low.argument}', {high.judge} says '{high.argument}'")
    if any(word in o.argument.lower() for o in kept for word in SECURITY_WORDS) and score > 3:
        notes.append("security cap")
        score = 3
    return Ruling(topic=topic, score=round(score), notes=notes)


def chief_justice(case: Case) -> dict:
    rulings = []
    for topic in case.get("topics", []):
        opinions = [o for o in case.get("opinions", []) if o.topic == topic]
        if opinions:
            rulings.append(settle(topic, opinions))
    return {"rulings": rulings}


def publish(case: Case) -> dict:
    name = case["repo_url"].rstrip("/").split("/")[-1]
    lines = [f"# Verdict on {name}", ""]
    for ruling in case.get("rulings", []):
        lines.append(f"- **{ruling.topic}**: {ruling.score}/5" + "".join(f"\n  - {note}" for note in ruling.notes))
    lines += [f"- problem: {p}" for p in case.get("problems", [])]
    out = Path("verdicts") / f"{name}.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text("\n".join(lines) + "\n")
    return {"out": str(out)}
