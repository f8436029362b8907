// What stands for the same configuration is marked on every picture and in every table: pointed at, picked, brushed.
import { keep, kept, tell, when } from "./state.js";
import { axisOf, movement, numberAt, pan, placeOn, pointIn, setRanges, zoom } from "./zoom.js";

const MOST = 6; // picks, each with a colour of its own
const NEAR = 14; // units of the page
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
const spoken = document.createElement("div");
spoken.className = "seen-by-none";
spoken.setAttribute("aria-live", "polite");
document.body.append(tip, spoken);
let hovered = null;
let drag = null;
let isBrushed = false;

export function picks() {
  return kept("pick").split(",").filter(Boolean);
}

export function setPicks(keys) {
  keep("pick", keys.slice(-MOST).join(","));
  showPicks(document);
  tell("picked");
}

export function toggle(key) {
  const now = picks();
  setPicks(now.includes(key) ? now.filter((one) => one !== key) : [...now, key]);
}

export function showPicks(within) {
  const keys = picks();
  for (const one of within.querySelectorAll(".is-picked")) {
    one.classList.remove("is-picked", ...Array.from({ length: MOST }, (_, place) => `pick-${place}`));
  }
  keys.forEach((key, place) => {
    for (const one of within.querySelectorAll(`[data-c="${CSS.escape(key)}"]`)) {
      one.classList.add("is-picked", `pick-${place}`);
      if (one.ownerSVGElement && keys.length) one.parentNode.append(one); // above the others
    }
  });
  for (const svg of within.querySelectorAll("figure svg.chart")) {
    svg.classList.toggle("has-picks", keys.length > 0 && Boolean(svg.querySelector(".is-picked")));
  }
}

// --- what is pointed at

function toldOf(mark) {
  const title = mark.querySelector(":scope > title");
  if (title) {
    mark.dataset.told = title.textContent; // else the browser would show it a second time
    title.remove();
  }
  return mark.dataset.told || "";
}

function markAt(event) {
  const svg = event.target.closest && event.target.closest("figure svg.chart");
  if (!svg) return null;
  for (let one = event.target; one && one !== svg; one = one.parentNode) {
    if (one.dataset && (one.dataset.told || one.querySelector(":scope > title"))) return one;
  }
  const at = pointIn(svg, event);
  let [nearest, best] = [null, NEAR];
  for (const mark of svg.querySelectorAll("circle[data-c]")) {
    const far = Math.hypot(Number(mark.getAttribute("cx")) - at.x, Number(mark.getAttribute("cy")) - at.y);
    if (far < best) [nearest, best] = [mark, far];
  }
  return nearest;
}

function point(mark, left, top) {
  if (hovered) hovered.classList.remove("is-hovered");
  hovered = mark;
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("is-hovered");
  tip.textContent = toldOf(mark);
  const size = tip.getBoundingClientRect();
  const [x, y] = [Math.min(left + 14, window.innerWidth - size.width - 8), top + 16 + size.height > window.innerHeight ? top - size.height - 10 : top + 16];
  tip.style.left = `${Math.max(x, 4)}px`;
  tip.style.top = `${Math.max(y, 4)}px`;
}

// --- keys: arrows go from mark to mark, Enter picks, + - 0 zoom, shift and arrows pan

function step(figure, key) {
  const marks = [...figure.querySelectorAll("svg.chart [data-c]")].map((one) => [one.getBoundingClientRect(), one]).sort((a, b) => a[0].left - b[0].left);
  if (!marks.length) return;
  const now = marks.findIndex((pair) => pair[1] === hovered);
  const last = marks.length - 1;
  const next = { ArrowRight: now < 0 ? 0 : Math.min(now + 1, last), ArrowLeft: now < 0 ? last : Math.max(now - 1, 0), Home: 0, End: last }[key];
  const [box, mark] = marks[next];
  point(mark, box.left + box.width / 2, box.top + box.height / 2);
  spoken.textContent = tip.textContent;
}

function onKey(event) {
  const scroll = event.target.closest("figure > .scroll");
  if (event.key === "Escape") { point(null); if (scroll && (picks().length || kept("brush"))) { setPicks([]); setBrush(null); } return; }
  const svg = scroll && scroll.querySelector("svg.chart");
  if (!svg) return;
  const by = { ArrowRight: [-60, 0], ArrowLeft: [60, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
  if (event.shiftKey && by) pan(svg, ...by);
  else if (["ArrowRight", "ArrowLeft", "Home", "End"].includes(event.key)) step(scroll, event.key);
  else if (event.key === "Enter" && hovered && hovered.dataset.c) toggle(hovered.dataset.c);
  else if (event.key === "+" || event.key === "=") zoom(svg, 1.5);
  else if (event.key === "-") zoom(svg, 1 / 1.5);
  else if (event.key === "0") setRanges(svg, null, null);
  else return;
  event.preventDefault();
}

// --- a range that is brushed: kept as numbers of the axes, or as places where there are none

function boxOf(svg, corners) {
  const along = (name, low, high) => {
    const [axis, { scale, shift }] = [axisOf(svg, name), movement(svg, name)];
    const ends = [(low - shift) / scale, (high - shift) / scale];
    return (axis ? ends.map((end) => numberAt(axis, end)) : ends).sort((a, b) => a - b);
  };
  return [...along("x", corners.left, corners.right), ...along("y", corners.top, corners.bottom)];
}

export function setBrush(svg, corners) {
  const name = svg && svg.closest("figure").dataset.name;
  keep("brush", name ? `${name}~${boxOf(svg, corners).map((value) => Number(value.toPrecision(8))).join(",")}` : "");
  showBrush();
}

function brushOf() {
  const [name, text] = kept("brush").split("~");
  const figure = name && document.querySelector(`figure[data-name="${CSS.escape(name)}"]`);
  const svg = figure && figure.querySelector("svg.chart");
  return svg && text ? { svg, box: text.split(",").map(Number) } : null;
}

function cornersOf({ svg, box }) {
  const along = (name, ends) => {
    const [axis, { scale, shift }] = [axisOf(svg, name), movement(svg, name)];
    return ends.map((end) => (axis ? placeOn(axis, end) : end) * scale + shift).sort((a, b) => a - b);
  };
  const [[left, right], [top, bottom]] = [along("x", box.slice(0, 2)), along("y", box.slice(2))];
  return { left, right, top, bottom };
}

function isIn(mark, { left, right, top, bottom }) {
  const within = (x, y) => x >= left && x <= right && y >= top && y <= bottom;
  const number = (name) => Number(mark.getAttribute(name));
  if (mark.tagName === "circle") return within(number("cx"), number("cy"));
  if (mark.tagName === "rect") return number("x") <= right && number("x") + number("width") >= left && number("y") <= bottom && number("y") + number("height") >= top;
  if (mark.tagName === "g") return [...mark.querySelectorAll("rect")].some((one) => isIn(one, { left, right, top, bottom }));
  const moved = (mark.getAttribute("transform") || "").match(/-?[\d.e-]+/g);
  if (moved && moved.length === 2) return within(Number(moved[0]), Number(moved[1]));
  const [sx, , , sy, tx, ty] = moved && moved.length === 6 ? moved.map(Number) : [1, 0, 0, 1, 0, 0];
  const points = [...(mark.getAttribute("d") || "").matchAll(/(-?[\d.]+),(-?[\d.]+)/g)];
  return points.some(([, x, y]) => within(Number(x) * sx + tx, Number(y) * sy + ty));
}

export function brushedKeys() {
  const brush = brushOf();
  if (!brush) return null;
  const corners = cornersOf(brush);
  return new Set([...brush.svg.querySelectorAll("[data-c]")].filter((mark) => isIn(mark, corners)).map((mark) => mark.dataset.c));
}

function showBrush() {
  const keys = brushedKeys();
  if (!keys && !isBrushed) return;
  isBrushed = Boolean(keys);
  document.querySelectorAll("rect.brush").forEach((one) => one.remove());
  for (const svg of document.querySelectorAll("figure svg.chart")) {
    svg.classList.toggle("has-brush", Boolean(keys) && Boolean(svg.querySelector("[data-c]")));
    for (const mark of svg.querySelectorAll("[data-c]")) mark.classList.toggle("is-brushed", Boolean(keys) && keys.has(mark.dataset.c));
  }
  const brush = brushOf();
  if (brush) outline(brush.svg, cornersOf(brush));
  tell("brushed", keys);
}

function outline(svg, { left, right, top, bottom }) {
  let box = svg.querySelector("rect.brush");
  if (!box) {
    box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("class", "brush");
    svg.append(box);
  }
  for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) box.setAttribute(name, value);
}

export function zoomToBrush(svg) {
  const brush = brushOf();
  if (!brush || brush.svg !== svg) return;
  const { box } = brush;
  setBrush(null);
  setRanges(svg, axisOf(svg, "x") && box.slice(0, 2), axisOf(svg, "y") && box.slice(2));
}

// --- pointers

function onMove(event) {
  if (drag) {
    const now = pointIn(drag.svg, event);
    if (!drag.moved && Math.hypot(now.x - drag.from.x, now.y - drag.from.y) < 5) return;
    drag.moved = true;
    point(null);
    if (drag.pans) { pan(drag.svg, now.x - drag.last.x, now.y - drag.last.y); drag.last = now; return; }
    const [[left, right], [top, bottom]] = [[drag.from.x, now.x].sort((a, b) => a - b), [drag.from.y, now.y].sort((a, b) => a - b)];
    drag.corners = { left, right, top, bottom };
    outline(drag.svg, drag.corners);
    return;
  }
  if (event.pointerType === "touch") return;
  const mark = markAt(event);
  if (mark || hovered) point(mark, event.clientX, event.clientY);
}

document.addEventListener("pointermove", onMove);
document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest("figure svg.chart");
  if (!svg || event.button !== 0 || event.pointerType === "touch" || !svg.querySelector("[data-c]")) return;
  const from = pointIn(svg, event);
  drag = { svg, from, last: from, pans: event.shiftKey, moved: false, corners: null };
  event.preventDefault();
  const scroll = svg.closest(".scroll");
  if (scroll) scroll.focus({ preventScroll: true });
});
document.addEventListener("pointerup", (event) => {
  const was = drag;
  drag = null;
  if (was && was.moved) { if (was.corners) setBrush(was.svg, was.corners); return; }
  const mark = markAt(event);
  if (mark && mark.dataset.c) {
    toggle(mark.dataset.c);
    if (event.pointerType === "touch") point(mark, event.clientX, event.clientY);
  } else if (was && kept("brush")) setBrush(null);
});
document.addEventListener("keydown", onKey);
document.addEventListener("click", (event) => {
  const row = event.target.closest("table.data tr[data-c], table.plain tr[data-c]");
  if (row) toggle(row.dataset.c);
});
function showAll(within) { showPicks(within); showBrush(); }
when("drawn", showAll);
when("address", () => { showAll(document); tell("picked"); });
when("moved", () => { if (kept("brush")) showBrush(); });
showAll(document);
