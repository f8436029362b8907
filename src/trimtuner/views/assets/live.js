// Keeps the page as the record is: the server says which version of each view there is, and what changed is drawn anew.
import { pause, tell } from "./state.js";
import { changes } from "./compare.js";
import { ask } from "./tools.js";
import { arrange, asked, renew, rowsOf, setRows } from "./trials.js";

const study = document.getElementById("study");
const base = study ? `/study/${study.dataset.number}` : "";
const versions = new Map(); // view -> version on the page
const scrolled = new WeakSet(); // what somebody scrolled
const followed = new Map(); // trial -> the element with its log
const NO_ACCESS = "no access: open the link that trimtuner dashboard printed last";
const PIECE_LETTERS = 50000; // of HTML, read without a pause
let reading = null; // of the rows that are not on the page yet
let drawing = Promise.resolve();

async function answerOf(address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw new Error(answer.status === 401 || answer.status === 403 ? NO_ACCESS : `${answer.status} ${await answer.text()}`.slice(0, 300));
  return answer;
}

async function textOf(address) {
  return (await answerOf(address)).text();
}

// The server has escaped what came from outside, and the policy runs no script but ours; read piece by piece, with pauses between.
async function partsOf(html) {
  const apart = document.implementation.createHTMLDocument();
  apart.write("<body>");
  for (let at = 0; at < html.length; at += PIECE_LETTERS) {
    if (at) await pause();
    apart.write(html.slice(at, at + PIECE_LETTERS));
  }
  apart.close();
  const parts = document.createDocumentFragment();
  parts.append(...apart.body.childNodes);
  return parts;
}

async function draw(name) {
  const section = document.getElementById(name);
  const parts = await partsOf(await textOf(`${base}/view/${name}`));
  if (name === "trials" && section.querySelector("table.trials") && parts.querySelector("table.trials")) return merge(section, parts);
  const body = section.querySelector(".body");
  const unfolded = [...section.querySelectorAll("details")].map((one) => one.open);
  // To ask how far something is scrolled is to have it laid out: only what somebody did scroll is asked.
  const places = [...section.querySelectorAll(".scroll")].map((one) => (scrolled.has(one) ? [one.scrollLeft, one.scrollTop] : null));
  const focused = [...section.querySelectorAll("[tabindex], button, summary")].indexOf(document.activeElement);
  body.replaceChildren(parts);
  section.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(unfolded[place]); });
  section.querySelectorAll(".scroll").forEach((one, place) => { if (places[place]) [one.scrollLeft, one.scrollTop] = places[place]; });
  tell("drawn", section);
  if (focused >= 0) [...section.querySelectorAll("[tabindex], button, summary")][focused]?.focus({ preventScroll: true });
}

// New rows come on top and changed ones in place, so that whoever reads, filters or sorts the table is not disturbed.
function merge(section, parts) {
  const table = section.querySelector("table.trials");
  const known = new Map(rowsOf(table).map((row) => [row.dataset.trial, row]));
  const found = [...parts.querySelectorAll("tr[data-trial]")];
  if (!found.some((row) => known.has(row.dataset.trial))) {
    section.querySelector(".body").replaceChildren(parts); // so many are new that rows between would be missing
    return tell("drawn", section);
  }
  const added = found.filter((row) => !known.has(row.dataset.trial));
  const renewed = new Map();
  for (const row of found) {
    const old = known.get(row.dataset.trial);
    if (!old || old.textContent === row.textContent) continue;
    renew(old, row);
    renewed.set(old, row);
  }
  setRows(table, [...added, ...rowsOf(table).map((row) => renewed.get(row) || row)]);
  arrange(table);
  tell("drawn", section);
  const more = section.querySelector(".more");
  if (more && parts.querySelector(".more") && !reading) more.replaceWith(parts.querySelector(".more"));
}

async function readRows() {
  const section = document.getElementById("trials");
  const table = section.querySelector("table.trials");
  const more = section.querySelector(".more");
  if (!more) return;
  for (;;) {
    const numbers = rowsOf(table).map((row) => Number(row.dataset.trial));
    const parts = await partsOf(`<table><tbody>${await textOf(`${base}/trials?below=${Math.min(...numbers)}`)}</tbody></table>`);
    const rows = parts.querySelectorAll("tr[data-trial]");
    if (!rows.length) break;
    more.textContent = `reading: ${numbers.length} of ${more.dataset.rows} trials`;
    setRows(table, [...rowsOf(table), ...rows]);
    await pause();
  }
  more.remove();
  arrange(table);
  tell("drawn", section);
}

async function follow(trial, spot) {
  const first = !followed.has(trial);
  followed.set(trial, spot);
  try {
    const text = await textOf(`${base}/log/${trial}`);
    if (text === spot.textContent) return;
    const isAtEnd = first || spot.scrollTop + spot.clientHeight >= spot.scrollHeight - 8;
    spot.textContent = text;
    if (isAtEnd) spot.scrollTop = spot.scrollHeight;
  } catch (error) {
    spot.textContent = `no log (${error.message})`;
  }
}

function followLogs() {
  for (const [trial, spot] of followed) {
    if (!spot.isConnected || !spot.offsetParent) followed.delete(trial);
    else follow(trial, spot);
  }
}

async function take(state) {
  const line = document.getElementById("state");
  document.getElementById("goal").textContent = state.goal;
  for (const [name, version] of Object.entries(state.views)) {
    if (version === null || versions.get(name) === version) continue;
    await draw(name);
    versions.set(name, version);
    await pause(); // for whoever scrolls or types meanwhile
  }
  line.textContent = state.trouble || state.said;
  line.classList.toggle("trouble", Boolean(state.trouble));
  followLogs();
}

function say(error) {
  const line = document.getElementById("state");
  line.textContent = `not connected (${error.message}); trying again`;
  line.classList.add("trouble");
}

function listen(address, act) {
  const source = new EventSource(address);
  source.onmessage = (event) => { drawing = drawing.then(() => act(JSON.parse(event.data))).catch(say); };
  source.onerror = () => {
    say(new Error("the page is no longer served"));
    if (source.readyState !== EventSource.CLOSED) return; // else it tries again by itself
    answerOf(address.replace(/events$/, "state")).catch(say);
    window.setTimeout(() => listen(address, act), 3000);
  };
  window.addEventListener("pagehide", () => source.close());
}

async function list() {
  const place = document.getElementById("studies");
  const parts = await partsOf(await textOf("/studies"));
  const focused = document.activeElement && document.activeElement.getAttribute("href");
  const ticked = new Set([...place.querySelectorAll("input:checked")].map((one) => one.value));
  place.replaceChildren(parts);
  place.querySelectorAll("input").forEach((one) => { one.checked = ticked.has(one.value); });
  const link = focused && [...place.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
  if (link) link.focus();
}

function every() {
  reading = reading || readRows().finally(() => { reading = null; });
  return reading;
}

async function detail(trial, spot) {
  try {
    spot.replaceChildren(await partsOf(await textOf(`${base}/trial/${trial}`)));
  } catch (error) {
    spot.textContent = `not to be had (${error.message})`;
  }
}

document.addEventListener("scroll", (event) => { if (event.target !== document) scrolled.add(event.target); }, { capture: true, passive: true });
document.addEventListener("submit", async (event) => {
  if (!event.target.matches("[data-change]")) return;
  event.preventDefault();
  const said = event.target.querySelector("[role=status]");
  if ((await ask(event.target.dataset.change, ["Yes", "No"])) !== "Yes") return;
  said.textContent = await sent(event.target.action, new FormData(event.target));
});

// What the server says to a form.
async function sent(address, form) {
  try {
    return await (await answerOf(address, { method: "POST", body: new URLSearchParams(form) })).text();
  } catch (error) {
    return `refused (${error.message})`;
  }
}

// A picked configuration is tested next, on as much of the data as is chosen.
async function enqueue(key, name) {
  const form = document.querySelector('form[action$="/enqueue"]');
  const words = new Map(form.querySelector("[data-shares]").dataset.shares.split(" ").map((share) => [share === "1.0" ? "On all of the data" : `On ${Number((100 * share).toPrecision(3))} %`, share]));
  const chosen = words.get(await ask(`Test ${name} next, whatever the method would ask? It is charged like every trial.`, [...words.keys(), "No"]));
  if (!chosen) return "";
  return sent(form.action, [["form_token", form.elements.form_token.value], ["picked", key], ["fraction", chosen]]);
}
if (study) {
  Object.assign(asked, { detail, log: follow, every });
  if (document.querySelector("[data-shares]")) changes.enqueue = enqueue;
  for (const section of study.querySelectorAll("section[data-version]")) versions.set(section.id, section.dataset.version);
  listen(`${base}/events`, take);
} else if (document.getElementById("studies")) listen("/events", list);
