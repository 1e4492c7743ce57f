import sys
import uuid

from langgraph.types import Command

from .flow import evening

if len(sys.argv) != 3:
    sys.exit("usage: python -m lastgang METER DAY")

config = {"configurable": {"thread_id": str(uuid.uuid4())}}
result = evening.invoke({"meter": sys.argv[1], "day": sys.argv[2]}, config)
while "__interrupt__" in result:
    pause = result["__interrupt__"][0].value
    print(pause["text"])
    result = evening.invoke(Command(resume=input(pause["question"] + " ")), config)
print(result["text"])
print("action:", result["action"])
with open("evening.log", "a") as f:
    f.write(result["text"] + "\n")
