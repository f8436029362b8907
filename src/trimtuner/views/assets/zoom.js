// Zoom and pan: marks are moved to their new places, and the axes get new numbers. Without script nothing is missing.
import { keep, kept, tell, when } from "./state.js";

const drawnAt = new WeakMap(); // mark -> its attributes as drawn
const ticksAt = new WeakMap(); // chart -> its axes as drawn
const ROUND = [1, 2, 2.5, 5, 10];

export function axisOf(svg, name) {
  const text = svg.dataset[name];
  if (!text) return null;
  const [low, high, begin, end, kind, named] = text.split(" ");
  return { low: Number(low), high: Number(high), begin: Number(begin), end: Number(end), isLog: kind === "log", isNamed: Boolean(named) };
}

function seen(axis, value) {
  return axis.isLog ? Math.log10(Math.max(value, 1e-300)) : value;
}

export function placeOn(axis, value) {
  const [low, high] = [seen(axis, axis.low), seen(axis, axis.high)];
  return axis.begin + ((axis.end - axis.begin) * (seen(axis, value) - low)) / (high - low || 1);
}

export function numberAt(axis, at) {
  const [low, high] = [seen(axis, axis.low), seen(axis, axis.high)];
  const value = low + ((at - axis.begin) / (axis.end - axis.begin)) * (high - low);
  return axis.isLog ? 10 ** value : value;
}

function nameOf(svg) {
  return svg.closest("figure").dataset.name || "";
}

// The range of numbers that each axis shows: [low, high], or nothing where it shows all.
export function rangesOf(svg) {
  const [x, y] = kept(`zoom.${nameOf(svg)}`).split("~").map((part) => part.split(",").map(Number));
  const valid = (range) => (range && range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null);
  return { x: axisOf(svg, "x") && valid(x), y: axisOf(svg, "y") && valid(y) };
}

// From the place of a mark as drawn to its place now, along one axis: place * scale + shift.
export function movement(svg, name) {
  const [axis, range] = [axisOf(svg, name), rangesOf(svg)[name]];
  if (!axis || !range) return { scale: 1, shift: 0 };
  const [from, to] = range.map((value) => placeOn(axis, value));
  const scale = (axis.end - axis.begin) / (to - from);
  return { scale, shift: axis.begin - from * scale };
}

export function setRanges(svg, x, y) {
  const text = (range) => (range ? range.map((value) => Number(value.toPrecision(8))).join(",") : "");
  keep(`zoom.${nameOf(svg)}`, x || y ? `${text(x)}~${text(y)}` : "");
  redraw(svg);
}

function zoomed(axis, range, factor, middle) {
  if (!axis) return null;
  const ends = (range || [axis.low, axis.high]).map((value) => placeOn(axis, value));
  const centre = middle ?? (ends[0] + ends[1]) / 2;
  return cut(axis, ends.map((end) => centre + (end - centre) / factor));
}

// Never beyond what is drawn; nothing where that is all.
function cut(axis, ends) {
  const size = Math.abs(ends[1] - ends[0]);
  if (size >= Math.abs(axis.end - axis.begin) * 0.999) return null;
  const sign = Math.sign(axis.end - axis.begin);
  let [from, to] = ends;
  if (sign * (from - axis.begin) < 0) [from, to] = [axis.begin, axis.begin + sign * size];
  if (sign * (to - axis.end) > 0) [from, to] = [axis.end - sign * size, axis.end];
  return [numberAt(axis, from), numberAt(axis, to)];
}

// By a factor around a place in the chart as it stands, or around its middle.
export function zoom(svg, factor, at) {
  const [ranges, moves] = [rangesOf(svg), { x: movement(svg, "x"), y: movement(svg, "y") }];
  const middle = (name) => (at ? (at[name] - moves[name].shift) / moves[name].scale : undefined);
  const next = (name) => zoomed(axisOf(svg, name), ranges[name], factor, middle(name));
  setRanges(svg, next("x"), next("y"));
}

export function pan(svg, right, down) {
  const ranges = rangesOf(svg);
  const next = (name, by) => {
    if (!ranges[name]) return null;
    const axis = axisOf(svg, name);
    return cut(axis, ranges[name].map((value) => placeOn(axis, value) - by / movement(svg, name).scale));
  };
  setRanges(svg, next("x", right), next("y", down));
}

function attributesOf(mark) {
  if (!drawnAt.has(mark)) {
    const names = ["cx", "cy", "x", "y", "width", "height", "transform"];
    drawnAt.set(mark, Object.fromEntries(names.map((name) => [name, mark.getAttribute(name)])));
  }
  return drawnAt.get(mark);
}

function move(mark, x, y) {
  const was = attributesOf(mark);
  const set = (name, { scale, shift }) => mark.setAttribute(name, Number(was[name]) * scale + shift);
  if (mark.tagName === "circle") { set("cx", x); set("cy", y); }
  else if (mark.tagName === "text") { set("x", x); set("y", y); }
  else if (mark.tagName === "rect") {
    set("x", x); set("y", y);
    mark.setAttribute("width", Number(was.width) * x.scale);
    mark.setAttribute("height", Number(was.height) * y.scale);
  } else if (was.transform) {
    const [left, top] = was.transform.match(/-?[\d.]+/g).map(Number);
    mark.setAttribute("transform", `translate(${left * x.scale + x.shift},${top * y.scale + y.shift})`);
  } else mark.setAttribute("transform", `matrix(${x.scale} 0 0 ${y.scale} ${x.shift} ${y.shift})`);
}

export function redraw(svg) {
  const plot = svg.querySelector("svg.plot");
  if (!plot) return;
  const [x, y] = [movement(svg, "x"), movement(svg, "y")];
  for (const mark of plot.children) if (!mark.matches("rect.brush")) move(mark, x, y);
  drawAxes(svg, { x, y });
  tell("moved", svg);
}

function linearTicks(low, high, about) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ROUND.reduce((best, one) => (Math.abs(Math.log((one * power) / raw)) < Math.abs(Math.log((best * power) / raw)) ? one : best));
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number += 1) ticks.push(number * step);
  return ticks;
}

function ticksOf(axis, [low, high], about) {
  if (!axis.isLog || high / low < 8) return linearTicks(low, high, about);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const one of high / low > 300 ? [1] : [1, 2, 5]) if (one * 10 ** power >= low && one * 10 ** power <= high) ticks.push(one * 10 ** power);
  }
  return ticks;
}

function tickText(value) {
  return String(Number(value.toPrecision(6)));
}

function element(name, attributes, words) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

function drawAxes(svg, moves) {
  const axes = svg.querySelector("g.axes");
  if (!axes) return;
  if (!ticksAt.has(svg)) ticksAt.set(svg, [...axes.children]);
  const ranges = rangesOf(svg);
  const kept = ticksAt.get(svg).filter((one) => (one.classList.contains("x") ? !ranges.x : !ranges.y));
  const [x, y] = [axisOf(svg, "x"), axisOf(svg, "y")];
  const made = [];
  const [left, right] = x ? [x.begin, x.end] : [0, 0];
  if (ranges.y) {
    for (const value of ticksOf(y, ranges.y, 5)) {
      const at = placeOn(y, value) * moves.y.scale + moves.y.shift;
      made.push(element("path", { d: `M${left},${at}L${right},${at}`, class: "grid y" }), element("text", { x: left - 6, y: at + 4, class: "tick y", "text-anchor": "end" }, tickText(value)));
    }
  }
  if (ranges.x && x.isNamed) {
    for (const one of ticksAt.get(svg).filter((tick) => tick.matches("text.x"))) {
      const at = Number(one.getAttribute("x")) * moves.x.scale + moves.x.shift;
      if (at < left || at > right) continue;
      const copy = one.cloneNode(true);
      copy.setAttribute("x", at);
      made.push(copy);
    }
  } else if (ranges.x) {
    const bottom = Number(svg.viewBox.baseVal.height) - 44 + 17;
    for (const value of ticksOf(x, ranges.x, 7)) {
      const at = placeOn(x, value) * moves.x.scale + moves.x.shift;
      made.push(element("text", { x: at, y: bottom, class: "tick x", "text-anchor": "middle" }, tickText(value)));
    }
  }
  axes.replaceChildren(...kept, ...made);
}

export function pointIn(svg, event) {
  const [box, view] = [svg.getBoundingClientRect(), svg.viewBox.baseVal];
  return { x: ((event.clientX - box.left) * view.width) / box.width, y: ((event.clientY - box.top) * view.height) / box.height };
}

function redrawAll(within) {
  for (const svg of within.querySelectorAll("figure svg.chart[data-x]")) {
    const ranges = rangesOf(svg);
    if (ranges.x || ranges.y || ticksAt.has(svg)) redraw(svg);
  }
}

when("drawn", redrawAll);
when("address", () => redrawAll(document));
redrawAll(document);
document.addEventListener("wheel", (event) => {
  const svg = event.target.closest && event.target.closest("figure svg.chart[data-x]");
  if (!svg || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  zoom(svg, event.deltaY < 0 ? 1.25 : 0.8, pointIn(svg, event));
}, { passive: false });
document.addEventListener("dblclick", (event) => {
  const svg = event.target.closest("figure svg.chart[data-x]");
  if (svg) setRanges(svg, null, null);
});
