/* A run's graph: larger, smaller, fitted to its place; tasks that hold what one types stay, the others step back. It
   changes the picture's size by its own attributes, so the content policy needs to allow nothing. */
(() => {
  "use strict";

  const STEP = 1.25;
  const LEAST = 0.1;
  const MOST = 4;
  const zooms = new WeakMap();

  function sized(figure, scale) {
    const svg = figure.querySelector("svg");
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const bounded = Math.min(Math.max(scale, LEAST), MOST);
    const before = zooms.get(figure) ?? 1;
    const middle = [figure.scrollLeft + figure.clientWidth / 2, figure.scrollTop + figure.clientHeight / 2];
    zooms.set(figure, bounded);
    svg.setAttribute("width", String(Math.round(width * bounded)));
    svg.setAttribute("height", String(Math.round(height * bounded)));
    figure.scrollTo(middle[0] * bounded / before - figure.clientWidth / 2, middle[1] * bounded / before - figure.clientHeight / 2);
  }

  function zoom(figure, by) {
    if (by) return sized(figure, (zooms.get(figure) ?? 1) * STEP ** by);
    const [, , width] = figure.querySelector("svg").getAttribute("viewBox").split(" ").map(Number);
    sized(figure, (figure.clientWidth - 20) / width);
  }

  function mark(figure, text) {
    const wanted = text.trim().toLowerCase();
    for (const node of figure.querySelectorAll(".node")) node.classList.toggle("dim", Boolean(wanted) && !node.textContent.toLowerCase().includes(wanted));
    const first = wanted && figure.querySelector(".node:not(.dim)");
    if (first) first.scrollIntoView({ block: "nearest", inline: "center" });
  }

  const figureOf = (tools) => tools.parentElement.querySelector("figure.drawing");
  const wake = () => document.querySelectorAll("[data-zoom][hidden]").forEach((one) => { one.hidden = false; });

  document.addEventListener("click", (event) => {
    const tools = event.target.closest("[data-zoom]");
    if (tools && event.target.dataset.by) zoom(figureOf(tools), Number(event.target.dataset.by));
  });
  document.addEventListener("input", (event) => {
    const tools = event.target.closest("[data-zoom]");
    if (tools) mark(figureOf(tools), event.target.value);
  });
  document.addEventListener("keydown", (event) => {
    const figure = event.target instanceof Element && event.target.closest("figure.drawing");
    const by = { "+": 1, "=": 1, "-": -1, 0: 0 }[event.key];
    if (!figure || by === undefined || event.ctrlKey || event.metaKey || event.altKey || !figure.parentElement.querySelector("[data-zoom]")) return;
    event.preventDefault();
    zoom(figure, by);
  });
  new MutationObserver(wake).observe(document.getElementById("main"), { childList: true, subtree: true });
  wake();
})();
