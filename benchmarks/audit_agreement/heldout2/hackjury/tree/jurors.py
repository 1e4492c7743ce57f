from langchain_openai import ChatOpenAI

from models import JurorAnswer

BASE = """You are a juror of a hackathon. You are {mood}.
These are the facts about the project:
{facts}

The other jurors said so far:
{before}

Give a score from 1 to 5 and a comment of two sentences."""

JURORS = {
    "prosecutor": "strict and sceptical",
    "defense": "friendly and encouraging",
    "techlead": "pragmatic and technical",
}

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.7).with_structured_output(JurorAnswer)


def ask(name, facts, before):
    prompt = BASE.format(
        mood=JURORS[name],
        facts="\n".join(f"- {f.source}/{f.name}: {'yes' if f.ok else 'no'} ({f.detail})" for f in facts),
        before="\n".join(f"{o['juror']}: {o['score']} {o['comment']}" for o in before) or "(nobody yet)",
    )
    try:
        answer = llm.invoke(prompt)
        return {"juror": name, "score": answer.score, "comment": answer.comment}
    except Exception as e:
        print("juror", name, "failed:", e)
        return {"juror": name, "score": 3, "comment": "no answer"}
