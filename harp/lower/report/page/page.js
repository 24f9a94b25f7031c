"use strict";
// Every line has keys (data-k), and picks others by theirs (data-p, else its own); calls of kernels are numbers (data-c).
const byKey = new Map(), byCall = new Map();
const collect = (map, name) => {
  for (const element of document.querySelectorAll(`[data-${name}]`))
    for (const key of element.dataset[name].split(" ")) {
      if (!map.has(key)) map.set(key, []);
      map.get(key).push(element);
    }
};
collect(byKey, "k");
collect(byCall, "c");
let picked = null;

const words = (text) => (text ? text.split(" ") : []);
const linesOf = (element) => words(element.dataset.p ?? element.dataset.k).flatMap((key) => byKey.get(key) ?? []);
const partsOf = (element) => words(element.closest("[data-c]")?.dataset.c).flatMap((call) => byCall.get(call) ?? []);

const clear = (...names) => {
  for (const name of names)
    for (const element of document.querySelectorAll(`.${name}`)) element.classList.remove(name);
};

// Shows in every other pane where the first of these elements is.
const reveal = (elements, from) => {
  const done = new Set([from.closest(".pane")]);
  for (const element of elements) {
    const pane = element.closest(".pane");
    if (!pane || !pane.open || done.has(pane)) continue;
    done.add(pane);
    for (let outer = element; outer !== pane; outer = outer.parentElement) if ("open" in outer) outer.open = true;
    const place = element.getBoundingClientRect(), frame = pane.getBoundingClientRect();
    if (place.top < frame.top + 40 || place.bottom > frame.bottom - 10)
      pane.scrollTop += place.top - frame.top - frame.height / 3;
  }
};

const pick = (element) => {
  clear("on", "near", "hover", "picked");
  const again = element === picked;
  picked = again ? null : element;
  if (!picked) return;
  const lines = linesOf(element), parts = partsOf(element);
  for (const part of parts) part.classList.add("near");
  for (const line of lines) line.classList.add("on");
  element.classList.add("picked");
  reveal([...lines, ...parts], element);
  if (element.id) try { history.replaceState(null, "", `#${element.id}`); } catch { /* in a frame */ }
};

const lineAt = (event) => event.target.closest?.(".code div[data-k], .code div[data-p], .code div[data-c], tr[data-c]");

document.addEventListener("click", (event) => {
  const element = lineAt(event);
  if (element && getSelection().isCollapsed) pick(element);
});
document.addEventListener("mouseover", (event) => {
  const element = lineAt(event);
  clear("hover");
  if (!element) return;
  for (const line of linesOf(element)) line.classList.add("hover");
  if (!element.dataset.k && !element.dataset.p) for (const part of partsOf(element)) part.classList.add("hover");
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && picked) pick(picked);
});
const named = () => {
  const element = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!element?.matches("[data-k], [data-p], [data-c]") || element === picked) return;
  pick(element);
  reveal([element], document.body);
};
addEventListener("hashchange", named);
named();
