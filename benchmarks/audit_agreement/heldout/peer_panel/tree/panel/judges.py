from langchain_openai import ChatOpenAI

from .schema import JudgeOpinion, PanelState

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0)
structured = llm.with_structured_output(JudgeOpinion)

CRITERIA = "git_history, state, graph, tools, output"

BASE = """You are the {role} on a review panel. You read facts about a repository and score it 1 to 5 on these
criteria: {criteria}. Be specific, refer to facts by file and line, and keep your reasoning under 200 words.
{attitude}
What was said so far:
{transcript}
"""

ATTITUDE = {
    "Prosecutor": "Be strict: look for what is missing or unsafe.",
    "Defense": "Be kind: look for effort and intent.",
    "TechLead": "Be practical: look for maintainability.",
}


def make_judge(role):
    def judge(state: PanelState):
        system = BASE.format(role=role, criteria=CRITERIA, attitude=ATTITUDE[role], transcript=state["transcript"])
        facts = "\n".join(f"{f.source}:{f.line} {f.statement}" for f in state["facts"][:200])
        try:
            op = structured.invoke([("system", system), ("human", facts)])
        except Exception as e:
            print("judge failed, trying again", e)
            op = structured.invoke([("system", system), ("human", facts)])
        op.judge = role
        return {
            "opinions": [op],
            "transcript": state["transcript"] + f"\n{role}: {op.reasoning}",
        }

    judge.__name__ = role
    return judge
