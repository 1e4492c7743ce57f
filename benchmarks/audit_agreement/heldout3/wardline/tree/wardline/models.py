"""Models with schemas."""
import os
from functools import cache

from langchain_core.exceptions import OutputParserException
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ValidationError


@cache
def bound(schema: type[BaseModel]):
    name = os.environ.get("WARDLINE_MODEL", "gpt-4o-mini")
    model = ChatOpenAI(model=name, temperature=0, timeout=30, max_retries=2)
    return model.with_structured_output(schema).with_retry(
        retry_if_exception_type=(ValidationError, OutputParserException), stop_after_attempt=3,
    )


def ask(schema: type[BaseModel], system: str, text: str):
    """An object of the schema, or None after three answers that do not fit."""
    try:
        return bound(schema).invoke([("system", system), ("human", text)])
    except (ValidationError, OutputParserException):
        return None
