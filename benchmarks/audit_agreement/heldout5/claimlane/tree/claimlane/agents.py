from langgraph.prebuilt import create_react_agent

from .config import llm
from .tools import claim_history, lookup_policy, part_price, weather_on

policy_agent = create_react_agent(
    llm,
    tools=[lookup_policy],
    prompt="You check whether a motor policy covers the claim. Name deductible and limit. Do not estimate damages.",
)

damage_agent = create_react_agent(
    llm,
    tools=[part_price],
    prompt="You estimate the cost of repair in EUR from the description and part prices. End with 'ESTIMATE: <n> EUR'.",
)

fraud_agent = create_react_agent(
    llm,
    tools=[claim_history, weather_on],
    prompt="You look for signs of fraud: repeated claims, contradictions, wrong weather. Say LOW, MEDIUM or HIGH.",
)
