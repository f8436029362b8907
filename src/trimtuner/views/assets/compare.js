// The configurations that are picked: named at the foot of the page, and beside each other where that is asked for.
import { when } from "./state.js";
import { picks, setPicks, toggle } from "./marks.js";
import { trialsOf } from "./trials.js";

export const changes = { enqueue: null }; // set by a page that may change its study
const LETTERS = "ABCDEF";
const said = document.createElement("span");
said.setAttribute("role", "status");
const tray = document.createElement("aside");
tray.id = "tray";
tray.setAttribute("aria-label", "Picked configurations");
tray.hidden = true;
const panel = document.createElement("dialog");
panel.setAttribute("aria-label", "Comparison");
document.body.append(tray, panel);

function made(name, words, className) {
  const one = document.createElement(name);
  if (words !== undefined) one.textContent = words;
  if (className) one.className = className;
  return one;
}

const SHARE = "share of the data";
const SKIPPED = new Set(["trial", "attempt", "asked (s)", "began (s)", "ended (s)", "state", "configuration", "machines", "USD", SHARE, "measured", "predicted", "at least", "at most", "trials there"]);

// What a row of a table says, by the name of its column, and on how much of the data that is.
function saidBy(row) {
  const heads = [...row.closest("table").tHead.rows[0].cells].map((one) => one.textContent);
  const said = new Map([...row.cells].map((cell, place) => [heads[place], cell.textContent]));
  return { said, share: Number(said.get(SHARE) ?? 1) };
}

// Everything that the tables of the page say of a configuration, by the name of its column: on most of the data.
function factsOf(key) {
  const facts = new Map();
  const own = `tr[data-c="${CSS.escape(key)}"]`;
  const found = [...document.querySelectorAll(`#tradeoff ${own}, #machines ${own}, #parallel ${own}`)].map(saidBy);
  for (const { said } of found.sort((one, other) => other.share - one.share)) {
    for (const [name, words] of said) if (!SKIPPED.has(name) && words && !facts.has(name)) facts.set(name, words);
  }
  if (found.length && found[0].share < 1) facts.set("figures are on", `${(found[0].share * 100).toPrecision(2)} % of the data`);
  const trials = trialsOf(key);
  if (trials.length) facts.set("trials", trials.join(", "));
  return facts;
}

export function nameOfPick(key) {
  const facts = factsOf(key);
  const others = picks().map(factsOf);
  const differing = [...facts].filter(([name, value]) => others.some((one) => (one.get(name) ?? "") !== value) && name !== "trials");
  return (differing.length ? differing : [...facts]).slice(0, 6).map(([name, value]) => `${name}=${value}`).join(" ") || key;
}

function showTray() {
  const keys = picks();
  tray.hidden = keys.length === 0;
  const chips = keys.map((key, place) => {
    const chip = made("span", undefined, `chip pick-${place}`);
    const remove = made("button", "×");
    remove.setAttribute("aria-label", `Unpick ${LETTERS[place]}`);
    remove.addEventListener("click", () => toggle(key));
    const test = changes.enqueue && made("button", "Test it next");
    test?.setAttribute("aria-label", `Test ${LETTERS[place]} next`);
    test?.addEventListener("click", async () => { said.textContent = await changes.enqueue(key, `${LETTERS[place]} (${nameOfPick(key)})`); });
    chip.append(...[made("span", `${LETTERS[place]} ${nameOfPick(key)}`), test, remove].filter(Boolean));
    return chip;
  });
  const open = made("button", keys.length > 1 ? "Compare" : "Look at it");
  open.addEventListener("click", () => { compare(); panel.showModal(); });
  const clear = made("button", "Clear");
  clear.addEventListener("click", () => setPicks([]));
  tray.replaceChildren(made("b", "Picked:"), ...chips, open, clear, said);
}

function compare() {
  const keys = picks();
  const facts = keys.map(factsOf);
  const names = [...new Set(facts.flatMap((one) => [...one.keys()]))];
  const differs = (name) => new Set(facts.map((one) => one.get(name) ?? "")).size > 1;
  const table = made("table");
  const head = table.createTHead().insertRow();
  head.append(made("th", "what differs first"), ...keys.map((_, place) => {
    const cell = made("th", LETTERS[place]);
    cell.scope = "col";
    cell.prepend(made("span", "", `legend-key pick-${place}`));
    return cell;
  }));
  const body = table.createTBody();
  for (const name of [...names.filter(differs), ...names.filter((one) => !differs(one))]) {
    const row = body.insertRow();
    if (!differs(name)) row.className = "same";
    const title = made("th", name);
    title.scope = "row";
    row.append(title, ...facts.map((one) => made("td", one.get(name) ?? "-", differs(name) ? "differs" : "")));
  }
  const close = made("button", "Close");
  close.addEventListener("click", () => panel.close());
  const scroll = made("div", undefined, "scroll");
  scroll.append(table);
  panel.replaceChildren(close, made("h2", keys.length > 1 ? "Side by side" : "One configuration"), scroll, ...curvesOf(keys));
}

// The pictures of curves with only what is picked on them.
function curvesOf(keys) {
  const found = [];
  for (const svg of document.querySelectorAll("#curves figure svg.chart, #within figure svg.chart")) {
    if (!svg.querySelector(".is-picked")) continue;
    const copy = svg.cloneNode(true);
    copy.classList.remove("has-picks", "has-brush");
    copy.querySelectorAll("[data-c]:not(.is-picked), .band, rect.brush").forEach((one) => one.remove());
    copy.querySelectorAll(".is-picked").forEach((one) => one.classList.remove("is-hovered"));
    const figure = made("figure");
    figure.append(copy);
    found.push(figure);
  }
  return keys.length && found.length ? [made("h3", "Curves over each other"), ...found] : [];
}

when("picked", showTray);
when("drawn", showTray);
showTray();
