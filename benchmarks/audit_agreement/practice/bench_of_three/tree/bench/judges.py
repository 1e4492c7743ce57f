from langchain_openai import ChatOpenAI
from .state import BenchState, Opinion

llm = ChatOpenAI(model="gpt-4o-mini")
judge_llm = llm.with_structured_output(Opinion)

PROSECUTOR = "As prosecutor you look for negligence: insecure calls, missing types, one-shot uploads. Be merciless, start from 1."
DEFENSE = "As defense counsel you look for merit: ideas, effort, learning. Be generous, start from 5."
TECH_LEAD = "As tech lead you look for things that break: coupling, missing error handling, untested paths. Be dry, decide by risk."


def ask(name: str, prompt: str, state: BenchState) -> Opinion:
    files = "\n".join(f"### {k}\n{v}" for k, v in state["evidence"].items())
    for i in range(2):
        try:
            o = judge_llm.invoke([("system", prompt), ("user", files)])
            o.judge = name
            return o
        except Exception as e:
            err = e
    raise err


def prosecutor(state: BenchState):
    return {"opinions": state.get("opinions", []) + [ask("prosecutor", PROSECUTOR, state)]}


def defense(state: BenchState):
    return {"opinions": state.get("opinions", []) + [ask("defense", DEFENSE, state)]}


def tech_lead(state: BenchState):
    return {"opinions": state.get("opinions", []) + [ask("tech_lead", TECH_LEAD, state)]}
