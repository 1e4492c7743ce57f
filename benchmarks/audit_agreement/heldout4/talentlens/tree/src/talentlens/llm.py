from functools import lru_cache

from langchain_openai import ChatOpenAI

from .schemas import Assessment, Profile


@lru_cache
def model() -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", temperature=0, timeout=60, max_retries=2, max_tokens=800)


def profiler():
    return model().with_structured_output(Profile).with_retry(stop_after_attempt=3)


def assessor():
    return model().with_structured_output(Assessment).with_retry(stop_after_attempt=3)
