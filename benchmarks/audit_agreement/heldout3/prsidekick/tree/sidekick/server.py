import hashlib
import hmac
import os

from fastapi import BackgroundTasks, FastAPI, HTTPException, Request

from . import github
from .agent import review
from .judge import event_for, filter_comments
from .workdir import checkout, cleanup

app = FastAPI()
seen = set()


def verify(body: bytes, signature: str):
    mac = hmac.new(os.environ["WEBHOOK_SECRET"].encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest("sha256=" + mac, signature)


def handle(repo, number, sha, clone_url):
    path = checkout(clone_url, sha)
    try:
        diff = github.get_diff(repo, number)
        rules = github.get_rules(repo, sha)
        result = review(path, diff, rules)
        comments = filter_comments(result, github.get_files(repo, number))
        github.post_review(
            repo, number, result.summary, event_for(comments),
            [{"path": c.path, "line": c.line, "body": f"**{c.severity}**: {c.body}"} for c in comments],
        )
    except Exception as e:
        print("review failed", repo, number, e)
    finally:
        cleanup(path)


@app.post("/hook")
async def hook(request: Request, tasks: BackgroundTasks):
    body = await request.body()
    if not verify(body, request.headers.get("X-Hub-Signature-256", "")):
        raise HTTPException(401)
    event = await request.json()
    if request.headers.get("X-GitHub-Event") != "pull_request" or event["action"] not in ("opened", "synchronize"):
        return {"ok": True, "skipped": True}
    pr = event["pull_request"]
    key = (event["repository"]["full_name"], pr["number"], pr["head"]["sha"])
    if key in seen:
        return {"ok": True, "skipped": True}
    seen.add(key)
    tasks.add_task(handle, *key, pr["head"]["repo"]["clone_url"])
    return {"ok": True}


@app.get("/health")
def health():
    return {"ok": True}
