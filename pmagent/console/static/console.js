/* What makes a page live: without it every page works, it is only not fresh by itself.

   It shows what the server has rendered and decides nothing: no key and no timer sends a form. Text of events reaches the
   page only as the server's own escaped HTML, parsed apart from the page (DOMParser runs no script).

   Order: state, connection, regions, rows of the log, countdowns and badge, notifications, copying, beginning. Keys are in keys.js. */
(() => {
  "use strict";

  const BODY = document.body;
  const SILENT_MS = 2_500; // the server says each second where the log is, and whether the daemon answers
  const WATCH_MS = 250;
  const AGO_MS = 10_000;
  const RECONNECT_MS = 10_000;
  const STOP_MS = 1_500; // what stops something is answered by then, or could not be delivered
  const REFRESH_MS = 500;
  const HIDDEN_MS = 10_000; // a page out of sight gives its connection back
  const UNFINISHED_MS = 1_000; // what goes on without an event for each step is looked at again so often
  const HIDDEN_LOOK_MS = 20_000;
  const AGAIN_MS = 5_000;
  const SKEW_MS = 3_000; // so long a page may take to be made; beyond that the two clocks differ
  const BUSY_MS = 10_000;
  const SEATS = 4; // a browser has six connections for all its windows here, and some are needed to load pages

  const byId = (id) => document.getElementById(id);
  const own = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const announce = (text) => { const spoken = byId("announce"); if (spoken) spoken.textContent = text; };
  const signIn = () => location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);

  /* --- connection ------------------------------------------------------------------------------------------------ */

  let source = null;
  let position = Number(BODY.dataset.position) || 0;
  let heard = Date.now();
  let silent = BODY.hasAttribute("data-lost") ? new Date() : null; // since when the daemon does not answer, as the console says
  let undelivered = ""; // what was to be stopped, and nobody has answered
  let tried = 0;
  let opening = false;
  let leave = () => {};
  let again = 0;
  let finished = false; // the server has said why nothing more comes
  let held = false; // the page is to stay as it is (WCAG 2.2.2); what comes meanwhile waits

  function show(state, text) {
    const place = byId("connection");
    if (!place) return;
    const before = place.dataset.state;
    place.dataset.state = state;
    place.textContent = text;
    if (state === "live" && before === "stale") announce("Live again.");
    if (state !== before && (state === "stale" || state === "over")) announce(text);
    showLost();
  }

  /* The bar over everything that nobody can vouch for: it says who does not answer, since when, and what still works. */
  function showLost() {
    const bar = byId("lost");
    if (!bar) return;
    const gone = byId("connection")?.dataset.state === "stale" ? new Date(heard) : null;
    const since = gone ?? silent;
    let text = "";
    if (undelivered) text = `${undelivered} could not be delivered. Hit the switch on the device. `;
    if (since) {
      text += `${gone ? "pmagent" : "The daemon"} has not answered since ${clock(since)}. This page shows how things stood then. `;
      if (!undelivered) text += "To end typing now, hit the switch on the device. ";
      if (gone) text += "If pmagent has ended, pmagent up starts it again.";
    }
    BODY.toggleAttribute("data-lost", Boolean(text));
    if (bar.textContent !== text) bar.textContent = text;
    bar.hidden = !text;
  }

  const clock = (time) => `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;

  function toldOfDaemon(told) {
    const was = silent;
    silent = told.answers ? null : new Date(told.since);
    if (!silent) undelivered = "";
    if (["live", "held", "silent"].includes(byId("connection")?.dataset.state)) showLive();
    showLost();
    if (!silent && (was || BODY.hasAttribute("data-lost"))) refreshSoon();
  }

  /* What stops something is sent without leaving the page: it is in sight what comes of it, and that nothing does. */
  async function stopping(event) {
    const form = event.target;
    const button = event.submitter ?? form.querySelector(".halt");
    if (!button?.matches(".halt") || !form.getAttribute("action").startsWith("/control/")) return;
    event.preventDefault();
    const late = setTimeout(() => { undelivered = button.textContent.trim(); showLost(); }, STOP_MS);
    button.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.action, {
        method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual", cache: "no-store", keepalive: true,
      });
      const unreachable = silent && (answer.status === 503 || answer.status === 504);
      undelivered = unreachable ? button.textContent.trim() : "";
      if (unreachable) return; // the bar says it, and the page stays: what is typed, and how far it is, must stay in sight
      if (answer.status === 401 || answer.status === 403) return location.reload();
      button.blur(); // what it stood in may be put in place anew
      if (answer.type === "opaqueredirect") return refreshSoon();
      const said = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (said) { byId("main").replaceWith(document.importNode(said, true)); scrollTo(0, 0); }
    } catch {
      undelivered = button.textContent.trim();
    } finally {
      clearTimeout(late);
      button.removeAttribute("aria-busy");
      showLost();
    }
  }

  function showLive() {
    const word = held ? "held" : silent ? "as of" : "live";
    show(silent ? "silent" : word, word === "as of" ? `as of ${position}` : `${word} · ${position}`);
  }

  function hold() {
    held = !held;
    byId("hold").setAttribute("aria-pressed", String(held));
    if (["live", "held", "silent"].includes(byId("connection")?.dataset.state)) showLive();
    if (held) return;
    refreshSoon();
    addRowsSoon();
  }

  function stale() {
    if (finished || byId("connection")?.dataset.state === "stale") return;
    show("stale", `stale since ${clock(new Date(heard))}`);
  }

  function address() {
    const rows = tail();
    const url = new URL(rows ? rows.dataset.tail : "/live", location.origin);
    url.searchParams.set("after", String(position));
    if (BODY.dataset.log) url.searchParams.set("log", BODY.dataset.log);
    const topics = [BODY.dataset.live, BODY.dataset.always].filter(Boolean).join(",");
    if (topics) url.searchParams.set("topics", topics);
    return url;
  }

  /* A place among the few that are live at once. It is kept until "leave", and by no page that is gone. */
  async function takeSeat() {
    for (let n = 0; navigator.locks && n < SEATS; n += 1) {
      const taken = await new Promise((resolve) => {
        navigator.locks.request(`pmagent-live-${n}`, { ifAvailable: true }, (lock) => {
          resolve(Boolean(lock));
          return lock && new Promise((done) => { leave = done; });
        });
      });
      if (taken) return true;
    }
    return !navigator.locks;
  }

  async function open() {
    clearTimeout(again);
    if (finished || opening || !byId("connection")) return;
    close();
    opening = true;
    const seated = await takeSeat();
    opening = false;
    if (!seated) {
      tried = Date.now();
      if (byId("connection")?.dataset.state !== "stale") show("", `as of ${position}, ${tail() ? "not live: other windows are" : "every few seconds"}`);
      refreshSoon();
      again = setTimeout(open, AGAIN_MS);
      return;
    }
    tried = Date.now();
    source = new EventSource(address());
    source.addEventListener("at", (event) => {
      const told = JSON.parse(event.data);
      hear(told.position);
      showLive();
      beats.postMessage(silent);
    });
    source.addEventListener("daemon", (event) => { heard = Date.now(); toldOfDaemon(JSON.parse(event.data)); });
    source.addEventListener("changed", () => { heard = Date.now(); refreshSoon(); });
    source.addEventListener("lines", (event) => {
      const told = JSON.parse(event.data);
      queueRows(told);
      hear(told.position);
    });
    source.addEventListener("over", (event) => over(JSON.parse(event.data)));
    source.addEventListener("error", lost);
  }

  /* Windows that are not live hear from those that are that the console answers, and whether the daemon does. */
  const beats = new BroadcastChannel("pmagent-beats");
  beats.addEventListener("message", (event) => {
    if (source || finished) return;
    heard = Date.now();
    if (byId("connection")?.dataset.state === "stale") show("", `as of ${position}`);
    if (String(silent) !== String(event.data)) toldOfDaemon({ answers: !event.data, since: event.data });
  });

  function close() {
    if (source) source.close();
    leave();
    source = null;
  }

  function hear(at) {
    position = Math.max(position, at);
    heard = Date.now();
  }

  function lost() {
    stale();
    if (source && source.readyState === EventSource.CLOSED) diagnose(); // refused; the browser does not try again
  }

  /* Why was the stream refused? Asked with HEAD, which opens none. */
  async function diagnose() {
    close();
    try {
      const answer = await fetch(address(), { method: "HEAD", redirect: "manual", cache: "no-store" });
      if (answer.status === 401 || answer.type === "opaqueredirect") return signIn();
      if (answer.status === 400 || answer.status === 404) {
        finished = true;
        return show("over", "not live: the filter is not understood");
      }
    } catch { /* away: there is nothing to ask, and the next try finds out */ }
    again = setTimeout(open, AGAIN_MS);
  }

  function over(told) {
    if (told.why === "ended") return; // the browser comes back by itself, with the position it has
    close();
    if (told.why === "signed_out") return signIn();
    if (told.why === "replaced" && !own("form").some(touched)) return location.reload();
    finished = !["unreadable", "missing"].includes(told.why); // which may pass
    show("over", told.text);
    if (!finished) again = setTimeout(open, AGAIN_MS);
  }

  function watchSilence() {
    if (finished || document.hidden || Date.now() - Math.max(heard, tried) <= SILENT_MS) return;
    stale();
    if (Date.now() - tried > RECONNECT_MS) open();
  }

  /* --- regions: what the server has rendered anew, put in place of what was there ---------------------------------- */

  const served = new Map(); // id of a region -> as the server sent it last
  let passedOver = false;
  let refreshing = false;
  let wanted = false;
  let refreshTimer = 0;
  let notBefore = 0;

  const fields = (root) => own("input, textarea, select", root).filter((one) => one.type !== "hidden");

  function changedField(one) {
    if (one instanceof HTMLSelectElement) {
      const usual = own("option", one).findIndex((option) => option.defaultSelected);
      return one.selectedIndex !== Math.max(0, usual);
    }
    return one.type === "checkbox" || one.type === "radio" ? one.checked !== one.defaultChecked : one.value !== one.defaultValue;
  }

  const touched = (root) => fields(root).some(changedField);

  function inUse(region) {
    const focused = document.activeElement;
    if (focused && region.contains(focused) && focused.closest("form")) return true;
    if (touched(region)) return true;
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && region.contains(selection.anchorNode));
  }

  function refreshSoon() {
    wanted = true;
    if (held || silent || refreshing || refreshTimer || !own("[data-region][id]").length) return;
    refreshTimer = setTimeout(refresh, Math.max(0, notBefore - Date.now()));
  }

  async function refresh() {
    refreshTimer = 0;
    refreshing = true;
    wanted = false;
    const begun = Date.now();
    let delay = 0;
    try {
      const answer = await fetch(BODY.dataset.regions || location.pathname + location.search, {
        headers: { "X-Pmagent-Part": "regions" }, redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(15_000),
      });
      if (answer.status === 401 || answer.type === "opaqueredirect") return signIn();
      if (answer.ok) swapAll(new DOMParser().parseFromString(await answer.text(), "text/html"));
      else if (answer.status === 429 || answer.status >= 500) delay = AGAIN_MS; // too often, or it is in trouble
    } catch {
      delay = AGAIN_MS;
    } finally {
      refreshing = false;
      notBefore = begun + Math.max(REFRESH_MS, 4 * (Date.now() - begun)); // a server that is slow is asked less often
    }
    if (delay) setTimeout(refreshSoon, delay);
    else if (wanted) refreshSoon();
  }

  function swapAll(fresh) {
    let busy = false;
    if (held) return; // what is fresh by then is asked for when it goes on
    if (!tail()) position = Math.max(position, Number(fresh.body.dataset.position) || 0);
    for (const region of own("[data-region][id]")) {
      if (region.parentElement.closest("[data-region][id]")) continue; // its surroundings bring it
      const next = fresh.getElementById(region.id);
      if (!next || served.get(region.id) === next.outerHTML) continue;
      if (inUse(region)) { busy = true; continue; }
      swap(region, next);
    }
    passedOver = busy; // somebody is at work there; it is put in place when they have done
    if (busy) setTimeout(refreshSoon, BUSY_MS);
    badge();
  }

  /* Elements that are the same stay: with the focus, with what is selected, scrolled, or opened by somebody. */
  function swap(region, next) {
    const id = region.id;
    served.set(id, next.outerHTML);
    Idiomorph.morph(region, document.importNode(next, true), {
      morphStyle: "outerHTML",
      callbacks: { beforeAttributeUpdated: (name, node) => !(name === "open" && node instanceof HTMLDetailsElement) },
    });
    wake(byId(id));
  }

  /* --- rows of the log: added in animation frames, only so many kept ------------------------------------------------ */

  let queue = [];
  let queued = 0;
  let frame = 0;

  const tail = () => document.querySelector("tbody[data-tail]");
  const rowsMax = (rows) => Number(rows.dataset.rowsMax) || 1000;

  function queueRows(told) {
    const rows = tail();
    if (!rows || told.position <= position) return;
    queue.push(told);
    queued += told.count;
    while (queue.length > 1 && queued - queue[0].count >= rowsMax(rows)) queued -= queue.shift().count; // nobody would see them
    addRowsSoon();
  }

  function addRowsSoon() {
    if (!frame && !held && queue.length) frame = requestAnimationFrame(addRows);
  }

  /* What somebody reads stays where it is while rows come above it: the row that has the focus or in which text is
     selected, else the first in sight, where the table's beginning is out of sight. */
  function readRow(rows) {
    const selection = document.getSelection();
    const chosen = selection && !selection.isCollapsed ? selection.anchorNode : document.activeElement;
    const row = (chosen instanceof Element ? chosen : chosen?.parentElement)?.closest("tr");
    if (row && rows.contains(row)) return row;
    if (rows.getBoundingClientRect().top >= 0) return null;
    let low = 0;
    let high = rows.rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows.rows[middle].getBoundingClientRect().bottom > 0) high = middle;
      else low = middle + 1;
    }
    return rows.rows[low] ?? null;
  }

  /* The caption counts the rows that stand there, and says how far was looked. */
  function count(rows) {
    const said = byId("looked");
    if (!said) return;
    byId("shown").textContent = `${rows.rows.length} event${rows.rows.length === 1 ? "" : "s"}`;
    said.textContent = `looked at ${said.dataset.first} to ${position} of ${position}`;
  }

  function addRows() {
    frame = 0;
    const rows = tail();
    const told = held ? undefined : queue.shift();
    if (!rows || !told) return;
    queued -= told.count;
    const top = rows.dataset.newest === "top";
    const scroller = document.scrollingElement;
    const following = !top && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48; // read before writing
    const read = top ? readRow(rows) : null;
    const before = read?.getBoundingClientRect().top;
    const parsed = new DOMParser().parseFromString(`<table><tbody>${told.html}</tbody></table>`, "text/html");
    const fresh = own("tr", parsed);
    const part = document.createDocumentFragment();
    part.append(...(top ? fresh.reverse() : fresh).map((row) => document.adoptNode(row)));
    localise(part);
    rows[top ? "prepend" : "append"](part);
    for (let extra = rows.rows.length - rowsMax(rows); extra > 0; extra -= 1) rows.rows[top ? rows.rows.length - 1 : 0].remove();
    own("[data-when-empty]").forEach((one) => { one.hidden = true; });
    count(rows);
    if (read?.isConnected) scroller.scrollTop += read.getBoundingClientRect().top - before;
    if (following) scroller.scrollTop = scroller.scrollHeight;
    addRowsSoon();
  }

  /* --- countdowns and badge ---------------------------------------------------------------------------------------- */

  /* The time is the server's: who looks from another machine may have a clock that goes wrong. It was written when the
     page began to come, which is a while ago where that is slow. */
  const came = performance.getEntriesByType("navigation")[0]?.responseStart ?? performance.now();
  const ahead = Date.parse(BODY.dataset.now) - (Date.now() - Math.max(0, performance.now() - came)) || 0;
  const serverNow = () => Date.now() + (Math.abs(ahead) < SKEW_MS ? 0 : ahead);

  const two = (number) => String(number).padStart(2, "0");

  function spoken(seconds) {
    if (seconds < 60) return `${seconds}s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
    if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ${two(Math.floor((seconds % 3600) / 60))}m`;
    return `${Math.floor(seconds / 86_400)}d ${two(Math.floor((seconds % 86_400) / 3600))}h`;
  }

  function countDown() {
    for (const one of own("time[data-until]")) {
      const left = Math.ceil((Date.parse(one.dataset.until) - serverNow()) / 1000);
      if (Number.isNaN(left)) continue;
      const text = left > 0 ? `in ${spoken(left)}` : "expired";
      if (one.textContent === text) continue;
      const ended = left <= 0 && one.textContent.startsWith("in ");
      one.textContent = text;
      if (ended) refreshSoon();
    }
  }

  /* Times come in UTC, and are shown by the reader's own clock; the server's words stay in the title. */
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

  function ago(seconds) {
    if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : "";
  }

  function localise(root) {
    const now = serverNow();
    const today = new Date(now);
    for (const one of own("time[datetime]:not(.until)", root)) {
      const then = new Date(one.dateTime);
      if (Number.isNaN(then.getTime())) continue;
      const exact = "exact" in one.dataset;
      const year = then.getFullYear() === today.getFullYear() ? "" : ` ${then.getFullYear()}`;
      const day = then.toDateString() === today.toDateString() ? "" : `${then.getDate()} ${MONTHS[then.getMonth()]}${year} `;
      const since = exact ? "" : ago((now - then) / 1000);
      const text = `${day}${clock(then)}${exact ? `.${String(then.getMilliseconds()).padStart(3, "0")}` : since && ` · ${since}`}`;
      if (one.textContent !== text) one.textContent = text;
    }
  }

  const title = document.title;
  const counted = (id) => Number(byId(id)?.dataset.count) || 0;
  let waiting = counted("waiting");
  let alerted = counted("alerted");

  function badge() {
    const [count, alerts] = [counted("waiting"), counted("alerted")];
    document.title = count + alerts ? `(${count + alerts}) ${title}` : title;
    if (count > waiting) announce(count === 1 ? "An approval is asked for." : `${count} approvals are asked for.`);
    if (alerts > alerted) announce(alerts === 1 ? "An alert is open." : `${alerts} alerts are open.`);
    [waiting, alerted] = [count, alerts];
    notify();
  }

  /* A row of the log is as wide as its link; where text is selected nobody wants to leave. */
  function rowOpened(event) {
    const row = event.target.closest("table.log tbody tr");
    if (!row || event.target.closest("a") || !document.getSelection()?.isCollapsed || event.button > 1) return;
    const link = row.querySelector("th a");
    if (event.button || event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
    else link.click();
  }

  /* --- notifications: of what opens, where somebody asked for them; one for all windows -------------------------------- */

  const TOLD = `pmagent-notified-${BODY.dataset.log}`; // the newest position that was told of; without it nobody asked
  const notices = () => own("#notices [data-notice]");
  const newest = () => Math.max(0, ...notices().map((one) => Number(one.dataset.notice)));

  function told() {
    try { return localStorage.getItem(TOLD); } catch { return null; }
  }

  const telling = () => told() !== null && globalThis.Notification?.permission === "granted";

  function notify() {
    if (!telling()) return;
    const before = Number(told());
    for (const one of notices()) {
      if (Number(one.dataset.notice) <= before) continue;
      const body = document.querySelector(".where")?.textContent ?? "";
      const shown = new Notification(one.textContent, { tag: `${TOLD}-${one.dataset.notice}`, body });
      shown.onclick = () => { window.focus(); location.assign(one.dataset.link); };
    }
    localStorage.setItem(TOLD, String(Math.max(before, newest())));
  }

  function showNotify() {
    const button = byId("notify");
    if (!button || !globalThis.Notification) return;
    button.hidden = false;
    button.setAttribute("aria-pressed", String(telling()));
  }

  async function toggleNotify() {
    if (telling()) localStorage.removeItem(TOLD);
    else if (await Notification.requestPermission() === "granted") localStorage.setItem(TOLD, String(newest()));
    else announce("This browser does not allow notifications here.");
    showNotify();
  }

  /* --- copying --------------------------------------------------------------------------------------------------------- */

  async function copied(event) {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const word = (button.dataset.word ??= button.textContent);
    let done = "Copied";
    try { await navigator.clipboard.writeText(button.dataset.copy); } catch { done = "Not copied"; }
    button.textContent = done;
    announce(`${done}.`);
    setTimeout(() => { button.textContent = word; }, 1_500);
  }

  /* --- beginning ------------------------------------------------------------------------------------------------------- */

  /* What only works with scripts is shown now. */
  function wake(root) {
    own("[data-copy][hidden], #hold, #followed", root).forEach((one) => { one.hidden = false; });
    countDown();
    localise(root);
    own(".utc", root).forEach((one) => { one.hidden = true; });
  }

  let outOfSight = 0;

  function seen() {
    clearTimeout(outOfSight);
    if (!document.hidden) {
      heard = Math.max(heard, Date.now() - WATCH_MS);
      if (!source) { open(); refreshSoon(); } // also what else has changed than the log, e.g. how long ago it was
      return;
    }
    if (!telling()) outOfSight = setTimeout(() => { close(); show("", `as of ${position}`); }, HIDDEN_MS);
  }

  for (const region of own("[data-region][id]")) served.set(region.id, region.outerHTML);
  wake(document);
  badge();
  const current = document.querySelector("nav.sections [aria-current]");
  if (current) current.closest("ul").scrollLeft = Math.max(0, current.offsetLeft - 40); // on a telephone they are one line
  document.addEventListener("click", copied);
  for (const press of ["click", "auxclick"]) document.addEventListener(press, rowOpened);
  document.addEventListener("submit", stopping);
  document.addEventListener("focusout", () => { if (passedOver) refreshSoon(); });
  byId("hold")?.addEventListener("click", hold);
  byId("notify")?.addEventListener("click", toggleNotify);
  showNotify();
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", close);
  addEventListener("beforeprint", () => { // paper is read elsewhere, and later
    own("time[datetime]:not(.until)").forEach((one) => { one.textContent = one.title.replace(/\.\d+/, ""); });
  });
  addEventListener("afterprint", () => localise(document));
  addEventListener("pageshow", (event) => { if (event.persisted) { open(); refreshSoon(); } });
  setInterval(countDown, 1_000);
  setInterval(() => { if (!document.hidden && !tail()) localise(document); }, AGO_MS);
  setInterval(watchSilence, WATCH_MS);
  setInterval(() => { if (document.hidden && !source) refreshSoon(); }, HIDDEN_LOOK_MS);
  setInterval(() => { if (!document.hidden && document.querySelector("[data-again]")) refreshSoon(); }, UNFINISHED_MS);
  open();
})();
