from functools import partial

from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from .core import Grading, Judge, Opinion

PERSONA = {
    Judge.PROSECUTOR: "Prosecutor. You win when the grade falls. Use facts as weapons: absent tests, absent types, absent checks. "
                      "No benefit of the doubt. Two proven faults mean a 1.",
    Judge.DEFENSE: "Defender. You win when the grade rises. Tell the human story in the commits, explain away what can be explained, "
                   "and insist that unproven faults count nothing.",
    Judge.TECH_LEAD: "Tech lead. You have no side. You estimate how many days it takes to bring this to production: none is a 5, a "
                     "week is a 3, a rewrite is a 1.",
}
CRITERIA = ("history", "code")


def opine(judge: Judge, s: Grading):
    llm = ChatOpenAI(model="gpt-4o-mini", timeout=45).with_structured_output(Opinion)
    got = []
    for criterion in CRITERIA:
        facts = "\n".join(f"{f.place}: {f.text}" for f in s.facts if f.detective == criterion)
        for _ in range(3):
            try:
                o = llm.invoke([("system", PERSONA[judge]), ("human", f"Grade '{criterion}'.\n{facts}")])
                got.append(o.model_copy(update={"judge": judge, "criterion": criterion}))
                break
            except ValidationError:
                continue
    return {"opinions": got}


judges = {j.value: partial(opine, j) for j in Judge}
