// What the reader chose, kept in the address: "#section?pick=…&zoom.tradeoff=…". Whoever opens the link sees the same.
const values = new Map();
const PIECE_MILLISECONDS = 8; // of work without a pause
let place = "";

function readAddress() {
  const [section, query] = window.location.hash.slice(1).split("?");
  place = section;
  if (query === undefined) return; // a link to a section: what was chosen stays
  values.clear();
  for (const [name, value] of new URLSearchParams(query)) values.set(name, value);
}

function writeAddress() {
  const query = new URLSearchParams([...values]).toString();
  const hash = place || query ? `#${place}${query ? `?${query}` : ""}` : " ";
  window.history.replaceState(null, "", hash === " " ? window.location.pathname + window.location.search : hash);
}

export function kept(name) {
  return values.get(name) ?? "";
}

export function keep(name, value) {
  if (value) values.set(name, value);
  else values.delete(name);
  writeAddress();
}

export function addressOf(section) {
  const query = new URLSearchParams([...values]).toString();
  return `${window.location.href.split("#")[0]}#${section}${query ? `?${query}` : ""}`;
}

// Modules tell each other what happened by events of the document: "drawn" (a section), "picked", "brushed", "address".
export function tell(what, detail) {
  document.dispatchEvent(new CustomEvent(`trimtuner:${what}`, { detail }));
}

export function when(what, act) {
  document.addEventListener(`trimtuner:${what}`, (event) => act(event.detail));
}

// Lets the page do what else it has to: draw, scroll, take what is typed.
export function pause() {
  return new Promise((done) => window.setTimeout(done));
}

// Those that fit, found in pieces with pauses between; what is over has no answer.
export async function filtered(items, fits, isWanted) {
  const found = [];
  let began = performance.now();
  for (const item of items) {
    if (performance.now() - began > PIECE_MILLISECONDS) {
      await pause();
      if (!isWanted()) return null;
      began = performance.now();
    }
    if (fits(item)) found.push(item);
  }
  return found;
}

readAddress();
document.documentElement.classList.add("scripted");
window.addEventListener("hashchange", () => { readAddress(); writeAddress(); tell("address"); });
window.addEventListener("load", () => {
  const section = place && document.getElementById(place);
  if (section && kept !== undefined && window.location.hash.includes("?")) section.scrollIntoView();
});
