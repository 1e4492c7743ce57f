import os
import json
from graph import run_court

url = input("Repo URL: ")
result = run_court(url)
print(json.dumps(result, indent=2, default=str))
