import os

from dotenv import load_dotenv
from langchain_openai import ChatOpenAI

load_dotenv()

DB_PATH = os.getenv("CLAIMLANE_DB", "claims.db")
PAYMENTS_URL = os.getenv("PAYMENTS_URL", "https://payments.example/v1")
PARTS_URL = os.getenv("PARTS_URL", "https://parts.example/api")
APPROVAL_ABOVE = 1000.0

llm = ChatOpenAI(model=os.getenv("CLAIMLANE_MODEL", "gpt-4o-mini"), temperature=0)
