import datetime
import os
import subprocess

import config
import feeds
import rank
import store

TEMPLATE = "<html><body><h1>Digest {day}</h1>{body}</body></html>"


def build():
    db = store.connect()
    items = [i for i in feeds.load_all() if not store.is_seen(db, i["link"])]
    items = rank.dedupe(items)
    items.sort(key=rank.score, reverse=True)
    items = items[:config.MAX_ITEMS]
    body = ""
    for it in items:
        body += f"<p><a href='{it['link']}'>{it['title']}</a> ({it['feed']})<br>{it['text'][:300]}</p>\n"
        store.mark(db, it)
    html = TEMPLATE.format(day=datetime.date.today(), body=body)
    with open(config.OUT, "w") as f:
        f.write(html)
    return len(items)


def upload():
    # copy to the web server
    subprocess.call("scp " + config.OUT + " www:/var/www/digest.html", shell=True)


def summarize(items):
    """TODO use an LLM"""
    return None


if __name__ == "__main__":
    n = build()
    upload()
    print("digest with", n, "items")
