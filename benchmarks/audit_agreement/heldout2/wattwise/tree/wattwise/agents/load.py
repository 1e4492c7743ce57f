"""LoadAgent: LLM-enhanced load forecast with structured output."""
from langchain_openai import ChatOpenAI

from wattwise.state import HourlyForecast


def forecaster():
    return ChatOpenAI(model="gpt-4o", temperature=0).with_structured_output(HourlyForecast)


def load_agent(state):
    """Forecast each hour with a validated model answer."""
    return {"candidates": []}


def similar_days(history, temperature):
    """k nearest neighbours in temperature space."""
    pass
