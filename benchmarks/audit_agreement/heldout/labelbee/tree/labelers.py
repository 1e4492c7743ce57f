import re
from langchain_openai import ChatOpenAI

OPENAI_API_KEY = "sk-demo-labelbee-0000000000000000000000000000"  # TODO move to env

LABELS = ["complaint", "praise", "question", "spam"]

def llm(t):
    return ChatOpenAI(model="gpt-3.5-turbo", temperature=t, api_key=OPENAI_API_KEY)

PROMPT = "Label this text as one of complaint, praise, question, spam. Answer with Label: <label>.\n\n%s"

def parse(answer):
    m = re.search(r"[Ll]abel:\s*(\w+)", answer)
    if m:
        return m.group(1).lower()
    # sometimes it answers with a python dict
    try:
        return eval(answer)["label"]
    except:
        return "spam"

def label_a(state):
    state["a"] = parse(llm(0).invoke(PROMPT % state["text"]).content)
    return state

def label_b(state):
    state["b"] = parse(llm(0.5).invoke(PROMPT % state["text"]).content)
    return state

def label_c(state):
    state["c"] = parse(llm(1).invoke(PROMPT % state["text"]).content)
    return state
