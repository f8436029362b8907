// The table of trials: filter, sort, choose columns, open a row. Rows that a live page has not got yet are asked for.
import { keep, kept, tell, when } from "./state.js";
import { brushedKeys, toggle } from "./marks.js";

export const asked = { detail: null, log: null, every: null }; // set by who can ask a server
const toldByRow = new WeakMap(); // row -> its words in small letters
const fitted = new WeakMap(); // table -> its rows that fit the filter, in their order
const shownRows = new WeakMap(); // table -> of those, the ones that are there
const heights = new WeakMap(); // table -> the height of a row
const tops = new WeakMap(); // table -> how far it is scrolled
const opened = new WeakMap(); // row -> the height of what it opened to
const MOST_ROWS = 120;
let waiting = 0;
let isPrinting = false;

function sectionOfTrials() {
  return document.getElementById("trials");
}

export function bodyOf(table) {
  return table.querySelector("tbody:not(.above):not(.below)");
}

export function rowsOf(table) {
  return [...bodyOf(table).querySelectorAll("tr[data-trial]")];
}

function wordsOf(row) {
  if (!toldByRow.has(row)) toldByRow.set(row, row.textContent.toLowerCase());
  return toldByRow.get(row);
}

function fitting() {
  const terms = kept("filter").toLowerCase().split(/\s+/).filter(Boolean);
  const keys = brushedKeys();
  return { isAll: !terms.length && !keys, fits: (row) => (!keys || keys.has(row.dataset.c)) && terms.every((term) => wordsOf(row).includes(term)) };
}

// What a row opens to; a live page has none before it was opened.
function detailOf(row) {
  const next = row.nextElementSibling;
  return next && next.matches(".detail") ? next : null;
}

function isOpen(row) {
  return row.getAttribute("aria-expanded") === "true";
}

export function hide(row) {
  if (row.hidden) return;
  const detail = detailOf(row);
  if (detail && isOpen(row)) opened.set(row, detail.offsetHeight);
  row.hidden = true;
  if (detail) detail.hidden = true;
}

function unhide(row) {
  if (!row.hidden) return;
  row.hidden = false;
  const detail = detailOf(row);
  if (detail) detail.hidden = !isOpen(row);
}

function heightOf(table) {
  const known = heights.get(table);
  if (known) return known;
  const height = shownRows.get(table)?.[0]?.offsetHeight;
  if (height) heights.set(table, height); // asked once: to ask is to have the table laid out
  return height || 28;
}

// A browser lays out all rows of a table whenever one changes: of thousands only those in sight are there, between two fillers.
function showAround(table) {
  const found = fitted.get(table);
  if (!found) return;
  const isLong = found.length > MOST_ROWS && !isPrinting;
  const height = heightOf(table);
  const above = isLong ? Math.floor((tops.get(table) || 0) / height) - MOST_ROWS / 2 : 0;
  const first = Math.max(Math.min(above - (above % 20), found.length - MOST_ROWS), 0);
  const inSight = isLong ? found.slice(first, first + MOST_ROWS) : found;
  const isKept = new Set(inSight);
  for (const row of shownRows.get(table) || []) if (!isKept.has(row)) hide(row);
  inSight.forEach(unhide);
  shownRows.set(table, inSight);
  const room = (rows) => rows.reduce((sum, row) => sum + height + (isOpen(row) ? opened.get(row) || 0 : 0), 0);
  fill(table, "above", isLong ? room(found.slice(0, first)) : 0);
  fill(table, "below", isLong ? room(found.slice(first + MOST_ROWS)) : 0);
}

function fill(table, where, height) {
  let filler = table.querySelector(`tbody.${where}`);
  if (!filler) {
    filler = document.createElement("tbody");
    filler.className = where;
    filler.setAttribute("aria-hidden", "true");
    filler.insertRow().insertCell().colSpan = table.tHead.rows[0].cells.length;
    if (where === "above") table.tHead.after(filler);
    else table.append(filler);
  }
  filler.hidden = height === 0;
  filler.rows[0].cells[0].style.height = `${height}px`;
}

export function filterTrials() {
  const section = sectionOfTrials();
  const table = section && section.querySelector("table.trials");
  if (!table) return;
  const { isAll, fits } = fitting();
  const rows = rowsOf(table);
  const found = rows.filter(fits);
  if (!fitted.has(table)) shownRows.set(table, rows);
  fitted.set(table, found);
  showAround(table);
  table.setAttribute("aria-rowcount", String(found.length + 1));
  section.querySelector("[data-count]").textContent = isAll ? "" : `${found.length} of ${rows.length} trials`;
}

function isPrinted(now) {
  isPrinting = now;
  filterTrials();
}

async function filterAll() {
  if (asked.every && !fitting().isAll) await asked.every();
  filterTrials();
}

export function arrange(table) {
  const head = table.querySelector("th[aria-sort]");
  if (!head) return;
  const [column, falls] = [head.cellIndex, head.getAttribute("aria-sort") === "descending"];
  const value = (row) => {
    const text = row.children[column].getAttribute("data-value") ?? row.children[column].textContent;
    return { text, number: Number(text), isNone: text === "-" };
  };
  const order = ([left], [right]) => {
    if (left.isNone || right.isNone) return left.isNone - right.isNone;
    const by = Number.isNaN(left.number) || Number.isNaN(right.number) ? left.text.localeCompare(right.text) : left.number - right.number;
    return falls ? -by : by;
  };
  const body = bodyOf(table);
  const pairs = rowsOf(table).map((row) => [value(row), row, detailOf(row)]);
  pairs.sort(order);
  const after = body.nextSibling;
  body.remove(); // rows are moved faster where nobody looks
  body.append(...pairs.flatMap((pair) => pair.slice(1)).filter(Boolean));
  table.insertBefore(body, after);
}

async function sortBy(name, direction) {
  const table = sectionOfTrials().querySelector("table.trials");
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((one) => one.removeAttribute("aria-sort"));
  const head = heads.find((one) => one.textContent === name);
  if (!head) return;
  head.setAttribute("aria-sort", direction);
  if (asked.every) await asked.every();
  arrange(table);
  filterTrials();
}

function hideColumns() {
  const section = sectionOfTrials();
  const table = section && section.querySelector("table.trials");
  if (!table) return;
  const hidden = new Set(kept("hide").split(",").filter(Boolean));
  const heads = [...table.tHead.rows[0].cells].map((one) => one.textContent);
  const rows = [table.tHead.rows[0], ...rowsOf(table)];
  heads.forEach((name, column) => {
    const isHidden = hidden.has(name);
    if (rows[0].cells[column].hidden === isHidden && rows.at(-1).cells[column].hidden === isHidden) return;
    for (const row of rows) row.cells[column].hidden = isHidden;
  });
}

function offerColumns() {
  const section = sectionOfTrials();
  const place = section && section.querySelector("[data-columns]");
  const table = section && section.querySelector("table.trials");
  if (!place || !table || place.children.length) return;
  const hidden = new Set(kept("hide").split(",").filter(Boolean));
  for (const name of [...table.tHead.rows[0].cells].map((one) => one.textContent)) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !hidden.has(name);
    box.addEventListener("change", () => {
      const now = new Set(kept("hide").split(",").filter(Boolean));
      if (box.checked) now.delete(name); else now.add(name);
      keep("hide", [...now].join(","));
      hideColumns();
    });
    label.append(box, ` ${name} `);
    place.append(label);
  }
}

function emptyDetail(row) {
  const detail = document.createElement("tr");
  detail.className = "detail";
  detail.hidden = true;
  detail.insertCell().colSpan = row.cells.length;
  row.after(detail);
  return detail;
}

export async function openRow(row) {
  const detail = detailOf(row) || emptyDetail(row);
  const opens = detail.hidden;
  detail.hidden = !opens;
  row.setAttribute("aria-expanded", String(opens));
  if (!opens) return;
  if (asked.detail) await asked.detail(row.dataset.trial, detail.cells[0]);
  const log = detail.querySelector("[data-log]");
  if (log) (asked.log || logInReport)(row.dataset.trial, log);
}

function logInReport(trial, place) {
  const logs = JSON.parse(document.getElementById("logs").textContent);
  place.textContent = logs[trial] || "(not kept in this report)";
}

function showTrials() {
  const section = sectionOfTrials();
  const input = section && section.querySelector("[data-filter]");
  if (!input) return;
  if (document.activeElement !== input) input.value = kept("filter");
  offerColumns();
  hideColumns();
  const [name, direction] = kept("sort").split("~");
  const head = section.querySelector("th[aria-sort]");
  if (name && !head) sortBy(name, direction);
  filterAll();
}

document.addEventListener("click", (event) => {
  const target = event.target;
  const sorts = target.closest("[data-sort]");
  if (sorts) {
    const head = sorts.closest("th");
    const next = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    keep("sort", `${head.textContent}~${next}`);
    return sortBy(head.textContent, next);
  }
  const row = target.closest("tr[data-trial]");
  if (row && target.closest("[data-pick]")) return toggle(row.dataset.c);
  if (row) return openRow(row);
  if (target.closest("[data-more]") && asked.every) return asked.every();
});
document.addEventListener("keydown", (event) => {
  const row = event.target.matches("tr[data-trial]") && event.target;
  if (!row) return;
  if (event.key === "Enter") { event.preventDefault(); openRow(row); }
  if (event.key === " ") { event.preventDefault(); toggle(row.dataset.c); }
});
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-filter]")) return;
  keep("filter", event.target.value.trim());
  window.clearTimeout(waiting);
  waiting = window.setTimeout(filterAll, 120);
});
document.addEventListener("scroll", (event) => {
  const table = event.target.matches?.(".scroll.rows") && event.target.querySelector("table.trials");
  if (!table) return;
  tops.set(table, event.target.scrollTop);
  showAround(table);
}, { capture: true, passive: true });
window.addEventListener("beforeprint", () => isPrinted(true));
window.addEventListener("afterprint", () => isPrinted(false));
when("brushed", filterAll);
when("drawn", (section) => { if (section.id === "trials") showTrials(); });
when("address", showTrials);
tell("brushed");
showTrials();
