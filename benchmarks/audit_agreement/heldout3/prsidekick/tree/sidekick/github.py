import os

import requests

API = "https://api.github.com"


def headers(accept="application/vnd.github+json"):
    return {"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": accept}


def get_diff(repo, number):
    r = requests.get(f"{API}/repos/{repo}/pulls/{number}", headers=headers("application/vnd.github.diff"), timeout=30)
    r.raise_for_status()
    return r.text


def get_files(repo, number):
    r = requests.get(f"{API}/repos/{repo}/pulls/{number}/files?per_page=100", headers=headers(), timeout=30)
    r.raise_for_status()
    return r.json()


def get_rules(repo, ref):
    r = requests.get(
        f"{API}/repos/{repo}/contents/.sidekick.md", params={"ref": ref},
        headers=headers("application/vnd.github.raw"), timeout=30,
    )
    return r.text if r.ok else ""


def post_review(repo, number, body, event, comments):
    r = requests.post(
        f"{API}/repos/{repo}/pulls/{number}/reviews",
        headers=headers(),
        json={"body": body, "event": event, "comments": comments},
        timeout=30,
    )
    if not r.ok:
        print("review was not posted:", r.status_code, r.text[:200])
    return r.ok
