"""The evening run, with the functional API of LangGraph."""
import os

import requests
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import interrupt
from pydantic import BaseModel, Field

from . import anomalies, readings, weather

llm = ChatOpenAI(model="gpt-4o-mini", temperature=0.3)


class Explanation(BaseModel):
    cause: str = Field(description="most probable cause, one sentence")
    device: str = Field(description="heating, ventilation, lighting, pump, kitchen, unknown")
    measure: str = Field(description="what the caretaker should do")
    confidence: float


@task
def load(meter: str, day: str):
    return readings.curve(meter, day), readings.similar_days(meter, day)


@task
def outside(day: str):
    return weather.temperature(day)


@task
def explain(anomaly: anomalies.Anomaly, meter: str, temperature) -> Explanation:
    bound = llm.with_structured_output(Explanation)
    return bound.invoke(
        f"Load curve of a public building ({meter}). Mean outside temperature {temperature} degrees. "
        f"Explain this anomaly to a caretaker: {anomaly.text}"
    )


@task
def urgency(explanations: list) -> str:
    reply = llm.invoke(
        "Should the set point of the heating be lowered tonight because of this? Answer in a sentence.\n"
        + "\n".join(f"{e.device}: {e.cause}" for e in explanations)
    ).content
    if "yes" in reply.lower() or "should be lowered" in reply.lower():
        return "lower"
    return "none"


@task
def summary(meter: str, day: str, found: list, explanations: list) -> str:
    parts = [f"{meter}, {day}"]
    for a, e in zip(found, explanations):
        parts.append(f"- {a.text}\n  {e.cause} ({e.confidence:.0%})\n  -> {e.measure}")
    return "\n".join(parts)


@task
def lower_setpoint(meter: str, degrees: float):
    r = requests.post(f"{os.environ['BMS_URL']}/setpoint/{meter}", json={"delta": -degrees}, timeout=10)
    return r.status_code


@entrypoint(checkpointer=InMemorySaver())
def evening(order: dict) -> dict:
    meter, day = order["meter"], order["day"]
    loading, temperature = load(meter, day), outside(day)
    today, before = loading.result()
    found = anomalies.find(today, before)
    if not found:
        return {"text": f"{meter}, {day}: nothing unusual", "action": "none"}
    running = [explain(a, meter, temperature.result()) for a in found]
    explanations = [r.result() for r in running]
    euros = anomalies.savings(found)
    text = summary(meter, day, found, explanations).result()
    action = urgency(explanations).result()
    if action == "lower":
        answer = interrupt({"text": text, "question": "Lower the set point by 2 degrees tonight? (y/n)"})
        if answer == "y":
            lower_setpoint(meter, 2.0).result()
        else:
            action = "refused"
    return {"text": text, "action": action}
