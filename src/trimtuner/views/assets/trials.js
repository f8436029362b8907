// The table of trials: filter, sort, choose columns, open a row. Rows that a live page has not got yet are asked for.
import { filtered, keep, kept, pause, tell, when } from "./state.js";
import { brushedKeys, showPicks, toggle } from "./marks.js";

export const asked = { detail: null, log: null, every: null }; // set by who can ask a server
const toldByRow = new WeakMap(); // row -> its words in small letters
const lists = new WeakMap(); // table -> its rows: every one, and those that fit the filter, in their order
const details = new WeakMap(); // row -> what it opens to; a live page has none before it was opened
const heights = new WeakMap(); // table -> the height of a row
const tops = new WeakMap(); // table -> how far it is scrolled
const opened = new WeakMap(); // row -> the height of what it opened to
const byLetters = new Intl.Collator();
const MOST_ROWS = 80; // a quarter of them above what is in sight
const USUAL_HEIGHT = 27.5;
let waiting = 0;
let turns = 0; // of the filter: a newer one ends those before it
let isPrinting = false;

function sectionOfTrials() {
  return document.getElementById("trials");
}

function tableOfTrials() {
  return sectionOfTrials()?.querySelector("table.trials");
}

function bodyOf(table) {
  return table.querySelector("tbody:not(.above):not(.below)");
}

function listOf(table) {
  if (!lists.has(table)) {
    const every = [...bodyOf(table).querySelectorAll("tr[data-trial]")];
    for (const row of every) if (row.nextElementSibling?.matches(".detail")) details.set(row, row.nextElementSibling);
    lists.set(table, { every, found: every });
  }
  return lists.get(table);
}

// All rows, whether or not they are in sight: those that are not are kept outside of the page.
export function rowsOf(table) {
  return listOf(table).every;
}

export function setRows(table, rows) {
  listOf(table).every = rows;
}

export function trialsOf(key) {
  const table = tableOfTrials();
  return table ? rowsOf(table).filter((row) => row.dataset.c === key).map((row) => row.dataset.trial) : [];
}

// A row that has changed, in the place of the old one.
export function renew(old, row) {
  row.setAttribute("aria-expanded", old.getAttribute("aria-expanded"));
  if (details.has(old)) details.set(row, details.get(old));
  const hadFocus = old === document.activeElement;
  if (old.isConnected) old.replaceWith(row);
  if (hadFocus) row.focus({ preventScroll: true });
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

function isOpen(row) {
  return row.getAttribute("aria-expanded") === "true";
}

function heightOf(table) {
  return heights.get(table) || USUAL_HEIGHT;
}

// Asked once: to ask is to have the table laid out.
function noteHeight(table) {
  const height = bodyOf(table).rows[0]?.getBoundingClientRect().height;
  if (height) heights.set(table, height);
}

// Of thousands of rows only those around what is in sight are on the page, between two fillers: all that is there is laid out whenever a row changes.
function showAround(table) {
  const { found } = listOf(table);
  const isLong = found.length > MOST_ROWS && !isPrinting;
  const height = heightOf(table);
  const above = isLong ? Math.floor((tops.get(table) || 0) / height) - MOST_ROWS / 4 : 0;
  const first = Math.max(Math.min(above - (above % 20), found.length - MOST_ROWS), 0);
  put(table, isLong ? found.slice(first, first + MOST_ROWS) : found);
  const room = (rows) => rows.reduce((sum, row) => sum + height + (isOpen(row) ? opened.get(row) || 0 : 0), 0);
  fill(table, "above", isLong ? room(found.slice(0, first)) : 0);
  fill(table, "below", isLong ? room(found.slice(first + MOST_ROWS)) : 0);
}

// Rows that stay are not touched, so that nobody loses the focus.
function put(table, rows) {
  const body = bodyOf(table);
  const wanted = rows.flatMap((row) => (details.has(row) ? [row, details.get(row)] : [row]));
  const isKept = new Set(wanted);
  const gone = [...body.children].filter((one) => !isKept.has(one));
  for (const row of gone) if (isOpen(row) && details.has(row)) opened.set(row, details.get(row).offsetHeight);
  gone.forEach((one) => one.remove());
  let at = body.firstElementChild;
  for (const one of wanted) {
    if (one === at) at = at.nextElementSibling;
    else body.insertBefore(one, at);
  }
  hideColumns(table);
  showPicks(body);
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

async function filterTrials() {
  const table = tableOfTrials();
  if (!table) return;
  const turn = (turns += 1);
  const list = listOf(table);
  const { isAll, fits } = fitting();
  const found = isAll ? list.every : await filtered(list.every, fits, () => turn === turns);
  if (turn !== turns) return;
  list.found = found;
  showAround(table);
  table.setAttribute("aria-rowcount", String(found.length + 1));
  sectionOfTrials().querySelector("[data-count]").textContent = isAll ? "" : `${found.length} of ${list.every.length} trials`;
  if (heights.has(table)) return;
  await pause();
  noteHeight(table);
  showAround(table);
}

function isPrinted(now) {
  isPrinting = now;
  const table = tableOfTrials();
  if (table) showAround(table);
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
    const by = Number.isNaN(left.number) || Number.isNaN(right.number) ? byLetters.compare(left.text, right.text) : left.number - right.number;
    return falls ? -by : by;
  };
  const pairs = rowsOf(table).map((row) => [value(row), row]);
  setRows(table, pairs.sort(order).map(([, row]) => row));
}

async function sortBy(name, direction) {
  const table = tableOfTrials();
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((one) => one.removeAttribute("aria-sort"));
  const head = heads.find((one) => one.textContent === name);
  if (!head) return;
  head.setAttribute("aria-sort", direction);
  if (asked.every) await asked.every();
  await pause();
  arrange(table);
  await pause();
  filterTrials();
}

function hideColumns(table) {
  const hidden = new Set(kept("hide").split(",").filter(Boolean));
  const isHidden = [...table.tHead.rows[0].cells].map((one) => hidden.has(one.textContent));
  for (const row of [table.tHead.rows[0], ...bodyOf(table).querySelectorAll("tr[data-trial]")]) {
    [...row.cells].forEach((cell, column) => { if (cell.hidden !== isHidden[column]) cell.hidden = isHidden[column]; });
  }
}

function offerColumns() {
  const [place, table] = [sectionOfTrials().querySelector("[data-columns]"), tableOfTrials()];
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
      hideColumns(table);
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
  details.set(row, detail);
  return detail;
}

export async function openRow(row) {
  const detail = details.get(row) || emptyDetail(row);
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
