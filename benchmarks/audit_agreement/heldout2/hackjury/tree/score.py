import os


def decide(url, facts, opinions):
    scores = [o["score"] for o in opinions]
    score = sum(scores) / len(scores) if scores else 1
    notes = []
    security = [f for f in facts if f.name == "security"]
    if security and not security[0].ok:
        score = min(score, 3)
        notes.append("capped at 3 because of security: " + security[0].detail)
    if scores and max(scores) - min(scores) > 2:
        notes.append("the jury disagreed: " + ", ".join(f"{o['juror']} {o['score']}" for o in opinions))
    score = round(score, 1)

    os.makedirs("results", exist_ok=True)
    name = url.rstrip("/").split("/")[-1].replace(".git", "")
    path = f"results/{name}.md"
    with open(path, "w") as f:
        f.write(f"# {name}\n\nScore: **{score}**\n\n")
        for n in notes:
            f.write(f"> {n}\n\n")
        for o in opinions:
            f.write(f"## {o['juror']}: {o['score']}\n\n{o['comment']}\n\n")
        f.write("## Facts\n\n")
        for fact in facts:
            f.write(f"- {'x' if fact.ok else ' '} {fact.name}: {fact.detail}\n")
    return {"score": score, "path": path}
