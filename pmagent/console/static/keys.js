/* Keys that move. None of them sends a form but Escape, which ends what is being typed; none works while somebody types,
   or when #keys-on is not checked (WCAG 2.1.4), but Escape, which is no character. Without scripts there are none, and everything is reached by Tab. */
(() => {
  "use strict";

  const CHORD_MS = 1_500;
  const SEARCH_MS = 150;
  const KEYS_OFF = "pmagent-keys-off";
  const ROWS = "main tbody tr, main .causes li, main [data-row]";
  const SECTIONS = "nav.sections a[data-key]";

  const own = (selector) => Array.from(document.querySelectorAll(selector));
  let chord = 0;

  function keysOff() {
    try { return localStorage.getItem(KEYS_OFF) === "1"; } catch { return false; }
  }

  function move(step) {
    const links = own(ROWS).map((row) => row.querySelector("a[href]")).filter((link) => link?.offsetParent);
    if (!links.length) return;
    const row = document.activeElement?.closest(ROWS);
    const now = links.findIndex((link) => link.closest(ROWS) === row);
    const next = now < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, now + step));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  }

  /* The palette: what /search finds, as one types. The arrows move between the field and what was found. */
  const palette = document.getElementById("palette");
  let asked = 0;

  async function search(field, place) {
    const number = asked += 1;
    const answer = field.value.trim() && await fetch(`/search?q=${encodeURIComponent(field.value)}`, { headers: { "X-Pmagent-Part": "regions" }, redirect: "manual" });
    if (number !== asked) return; // something else has been typed meanwhile
    const found = answer && answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
    place.replaceChildren(...(found ? Array.from(found.children, (one) => document.importNode(one, true)) : []));
  }

  if (palette) {
    const field = palette.querySelector("input");
    const place = palette.querySelector("div");
    let soon = 0;
    field.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(() => search(field, place).catch(() => place.replaceChildren()), SEARCH_MS); });
    palette.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const stops = [field, ...place.querySelectorAll("a[href]")];
      const next = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      stops[Math.min(Math.max(next, 0), stops.length - 1)].focus();
      event.preventDefault();
    });
    palette.querySelector("form").addEventListener("submit", (event) => {
      const first = place.querySelector("a[href]");
      if (first) { event.preventDefault(); location.assign(first.href); }
    });
    document.querySelector(".seek > kbd").hidden = false;
  }

  function pressed(event) {
    const at = event.target;
    if (palette && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k" && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      palette.showModal();
      palette.querySelector("input").select();
      return;
    }
    const typing = document.querySelector("form[data-escape]");
    if (event.key === "Escape" && typing && !document.querySelector("dialog[open]")) {
      typing.requestSubmit(typing.querySelector(".halt"));
      return;
    }
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || event.isComposing || keysOff()) return;
    if (event.key === "Escape" && at instanceof HTMLElement && at.matches("input, textarea, select")) at.blur();
    if (!(at instanceof HTMLElement) || at.isContentEditable || at.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    if (chord && Date.now() - chord < CHORD_MS) {
      chord = 0;
      const section = own(SECTIONS).find((link) => link.dataset.key === event.key);
      if (section) { event.preventDefault(); location.assign(section.href); }
      return;
    }
    chord = 0;
    if (event.key === "g") chord = Date.now();
    else if (event.key === "j" || event.key === "k") move(event.key === "j" ? 1 : -1);
    else if (event.key === "?") document.querySelector("dialog#keys")?.showModal();
    else if (event.key === "/") {
      const field = document.querySelector("main form[role=search] :is(input:not([type=hidden]), select, textarea)") ?? document.getElementById("seek");
      if (!field) return;
      event.preventDefault();
      field.closest("details:not([open])")?.setAttribute("open", "");
      field.focus();
    }
  }

  const switchKeys = document.getElementById("keys-on");
  if (switchKeys) {
    switchKeys.checked = !keysOff();
    switchKeys.addEventListener("change", () => {
      try { localStorage.setItem(KEYS_OFF, switchKeys.checked ? "0" : "1"); } catch { /* it holds for this page only */ }
    });
  }
  document.addEventListener("keydown", pressed);
})();
