// The table of trials: filter, sort, choose columns, open a row. Rows that a live page has not got yet are asked for.
import { keep, kept, tell, when } from "./state.js";
import { brushedKeys, toggle } from "./marks.js";

export const asked = { detail: null, log: null, every: null }; // set by who can ask a server
const toldByRow = new WeakMap(); // row -> its words in small letters
let waiting = 0;

function sectionOfTrials() {
  return document.getElementById("trials");
}

export function rowsOf(table) {
  return [...table.tBodies[0].querySelectorAll("tr[data-trial]")];
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

export function hideUnfit(rows) {
  const { fits } = fitting();
  let shown = 0;
  for (const row of rows) {
    const isFit = fits(row);
    shown += isFit;
    if (row.hidden === !isFit) continue;
    row.hidden = !isFit;
    if (!isFit && row.nextElementSibling) { row.nextElementSibling.hidden = true; row.setAttribute("aria-expanded", "false"); }
  }
  return shown;
}

export function filterTrials() {
  const section = sectionOfTrials();
  const table = section && section.querySelector("table.trials");
  if (!table) return;
  const rows = rowsOf(table);
  const shown = hideUnfit(rows);
  section.querySelector("[data-count]").textContent = fitting().isAll ? "" : `${shown} of ${rows.length} trials`;
}

async function filterAll() {
  if (asked.every && !fitting().isAll) await asked.every();
  filterTrials();
}

export function arrange(table) {
  const head = table.querySelector("th[aria-sort]");
  if (!head) return;
  const [column, falls] = [head.cellIndex, head.getAttribute("aria-sort") === "descending"];
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => {
    const [left, right] = [a[0], b[0]];
    if (left === "-" || right === "-") return (left === "-") - (right === "-");
    const [x, y] = [Number(left), Number(right)];
    const by = Number.isNaN(x) || Number.isNaN(y) ? left.localeCompare(right) : x - y;
    return falls ? -by : by;
  };
  const pairs = rowsOf(table).map((row) => [value(row), row, row.nextElementSibling]);
  pairs.sort(order);
  table.tBodies[0].append(...pairs.flatMap((pair) => pair.slice(1)));
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

export async function openRow(row) {
  const detail = row.nextElementSibling;
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
when("brushed", filterAll);
when("drawn", (section) => { if (section.id === "trials") showTrials(); });
when("address", showTrials);
tell("brushed");
showTrials();
