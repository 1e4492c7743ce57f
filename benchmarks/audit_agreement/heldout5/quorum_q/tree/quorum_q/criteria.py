CRITERIA = {
    "idea": "Is the idea new, and does the code do something with it?",
    "engineering": "Structure, typing, tests, dependencies.",
    "security": "Secrets, shells, eval, SQL, time limits.",
    "report": "Does the report describe what the code does?",
}
