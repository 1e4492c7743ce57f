import uuid

from fastapi import FastAPI
from pydantic import BaseModel

from .graph import build

app = FastAPI(title="APEX Tribunal", version="3.0.0")
tribunal = build()


class AuditRequest(BaseModel):
    repo: str
    report: str


@app.post("/audit")
def audit(request: AuditRequest) -> dict:
    state = tribunal.invoke({"repo_url": request.repo, "pdf_path": request.report})
    return {"id": str(uuid.uuid4()), "status": "completed", "report": state["final_report"]}


@app.get("/health")
def health() -> dict:
    return {"status": "ok"}
