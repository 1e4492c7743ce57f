"""The harbour master's rules: opinions in, marks out. No model is asked here."""
import json
from pathlib import Path

from .records import Clue, Mark, Opinion

WEIGHT = {
    "process": {"prosecutor": 1, "advocate": 2, "engineer": 1},
    "code": {"prosecutor": 1, "advocate": 1, "engineer": 3},
    "tests": {"prosecutor": 1, "advocate": 1, "engineer": 3},
    "paper": {"prosecutor": 1, "advocate": 1, "engineer": 1},
}
DANGER_CAP = 3
FAR_APART = 2


def latest(opinions: list[Opinion], criterion: str) -> list[Opinion]:
    ours = [o for o in opinions if o.criterion == criterion]
    last = max((o.round for o in ours), default=0)
    return [o for o in ours if o.round == last]


def spread(opinions: list[Opinion]) -> int:
    scores = [o.vote.score for o in opinions]
    return max(scores) - min(scores) if scores else 0


def supported(opinions: list[Opinion], clues: dict[str, Clue]) -> list[Opinion]:
    """Facts over opinions: a vote that cites no clue we have does not count."""
    return [o for o in opinions if set(o.vote.clue_keys) & clues.keys()]


def mark(criterion: str, opinions: list[Opinion], clues: dict[str, Clue]) -> Mark:
    heard = latest(opinions, criterion)
    counted = supported(heard, clues)
    notes = [f"{o.role} cited nothing and was not counted" for o in heard if o not in counted]
    if not counted:
        return Mark(criterion=criterion, score=1, notes=[*notes, "nobody could support a vote"])
    weights = WEIGHT[criterion]
    total = sum(weights[o.role] * o.vote.score for o in counted)
    score = round(total / sum(weights[o.role] for o in counted))
    if spread(counted) > FAR_APART:
        low, high = (pick(counted, key=lambda o: o.vote.score) for pick in (min, max))
        notes.append(f"dissent: {low.role} gave {low.vote.score} ({low.vote.argument}), "
                     f"{high.role} gave {high.vote.score} ({high.vote.argument})")
        score = min(score, 4)
    if score > DANGER_CAP and any(c.danger and c.criterion == criterion for c in clues.values()):
        score = DANGER_CAP
        notes.append(f"capped at {DANGER_CAP}: a dangerous call was found")
    return Mark(criterion=criterion, score=score, notes=notes)


def write(marks: list[Mark], problem: str, folder: Path = Path("out")) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Marks", ""]
    if problem:
        lines += [f"Not marked: {problem}"]
    for one in marks:
        lines += [f"## {one.criterion}: {one.score}/5", *(f"- {note}" for note in one.notes), ""]
    (folder / "marks.md").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "marks.json").write_text(json.dumps([one.model_dump() for one in marks], indent=1), "utf-8")
    return str(folder / "marks.md")
