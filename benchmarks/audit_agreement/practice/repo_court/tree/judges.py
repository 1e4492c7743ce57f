import json
import re
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4", temperature=0.7)

TEMPLATE = """You are a {name} judge. You will judge the following repository. Read the git log and the code. Then give a score from 1 to 5
and an argument. Think step by step. Be honest and thorough. Answer as JSON like {{"score": 3, "argument": "..."}}.

LOG:
{log}

CODE:
{code}

REPORT:
{pdf}
"""


def ask(name, state):
    text = llm.invoke(TEMPLATE.format(name=name, log=state["log"], code=state["code"], pdf=state["pdf"])).content
    m = re.search(r"\{.*\}", text, re.S)
    try:
        return json.loads(m.group(0))
    except Exception:
        return {"score": 3, "argument": text}


def prosecutor(state):
    state["prosecutor"] = ask("prosecutor", state)
    return state


def defense(state):
    state["defense"] = ask("defense", state)
    return state


def tech_lead(state):
    state["tech_lead"] = ask("tech lead", state)
    return state
