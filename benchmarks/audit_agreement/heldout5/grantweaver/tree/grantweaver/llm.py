import os

from langchain_openai import ChatOpenAI

model = ChatOpenAI(model=os.getenv("GRANTWEAVER_MODEL", "gpt-4o-mini"), temperature=0.2, max_retries=2, timeout=60)
