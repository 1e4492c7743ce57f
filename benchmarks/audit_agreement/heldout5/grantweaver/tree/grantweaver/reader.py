"""Subgraph: from an address to a Call."""

from urllib.parse import urlparse

import httpx
from bs4 import BeautifulSoup
from langgraph.graph import END, START, StateGraph

from .llm import model
from .schemas import Call, CallState

LIMIT = 60_000


def fetch(state: CallState):
    url = state["url"]
    if urlparse(url).scheme not in ("http", "https"):
        return {"problems": [f"not a web address: {url}"]}
    try:
        reply = httpx.get(url, timeout=20, follow_redirects=True)
        reply.raise_for_status()
    except httpx.HTTPError as error:
        return {"problems": [f"call not read: {error}"]}
    soup = BeautifulSoup(reply.text, "html.parser")
    for tag in soup(["script", "style", "nav", "footer"]):
        tag.decompose()
    return {"page": soup.get_text("\n", strip=True)[:LIMIT]}


def extract(state: CallState):
    reader = model.with_structured_output(Call).with_retry(stop_after_attempt=2)
    try:
        call = reader.invoke(
            "Extract the call for applications. List every section that an application must have.\n\n" + state["page"]
        )
    except Exception as error:
        return {"problems": [f"call not understood: {error}"]}
    return {"call": call}


def got_page(state: CallState):
    return "extract" if state.get("page") else END


builder = StateGraph(CallState)
builder.add_node("fetch", fetch)
builder.add_node("extract", extract)
builder.add_edge(START, "fetch")
builder.add_conditional_edges("fetch", got_page, ["extract", END])
builder.add_edge("extract", END)
reader_graph = builder.compile()
