// Beside each picture: zoom, and the picture as SVG, PNG, CSV or as a link to this very state.
import { addressOf, when } from "./state.js";
import { zoomToBrush } from "./marks.js";
import { setRanges, zoom } from "./zoom.js";

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity", "font-family", "font-size", "font-weight", "paint-order"];
const PIXELS = 2; // of a PNG, for each unit

function plainPicture(svg) {
  const copy = svg.cloneNode(true);
  const [own, copied] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  own.forEach((one, place) => {
    const look = getComputedStyle(one);
    for (const name of LOOKS) copied[place].setAttribute(name, look.getPropertyValue(name));
    copied[place].removeAttribute("class");
  });
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: getComputedStyle(svg.closest("section, dialog") || document.body).backgroundColor })) paper.setAttribute(name, value);
  copy.prepend(paper);
  copy.removeAttribute("class");
  return new XMLSerializer().serializeToString(copy);
}

function give(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function asPng(svg, name) {
  const image = new Image();
  const { width, height } = svg.viewBox.baseVal;
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * PIXELS, height * PIXELS];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => give(`${name}.png`, blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(plainPicture(svg))}`;
}

export function csvOf(table) {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((one) => cell(one.textContent)).join(",")).join("\n");
}

function button(words, help, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.title = help;
  made.setAttribute("aria-label", help);
  made.addEventListener("click", () => act(made));
  return made;
}

// A question on the page itself, and the answer that was chosen; nothing where it was closed.
export function ask(question, answers) {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", question);
  dialog.className = "question";
  const words = document.createElement("p");
  words.textContent = question;
  dialog.append(words, ...answers.map((one) => button(one, one, () => dialog.close(one))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => { dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue); }); });
}

async function copyLink(section, made) {
  const address = addressOf(section);
  try {
    await navigator.clipboard.writeText(address);
    made.textContent = "copied";
  } catch {
    await ask(`The link to this state: ${address}`, ["Close"]);
  }
  window.setTimeout(() => { made.textContent = "link"; }, 1500);
}

function equip(figure) {
  const svg = figure.querySelector("svg.chart");
  const scroll = figure.querySelector(".scroll");
  if (!svg || figure.querySelector(".tools")) return;
  const name = figure.dataset.name || "picture";
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.setAttribute("role", "toolbar");
  tools.setAttribute("aria-label", `Tools of ${svg.getAttribute("aria-label")}`);
  if (svg.dataset.x) {
    const box = () => (svg.querySelector("rect.brush") ? zoomToBrush(svg) : zoom(svg, 1.5));
    tools.append(button("+", "Zoom in, or to what is brushed", box), button("-", "Zoom out", () => zoom(svg, 1 / 1.5)), button("all", "Show all again", () => setRanges(svg, null, null)));
  }
  tools.append(button("SVG", "Save as SVG", () => give(`${name}.svg`, new Blob([plainPicture(svg)], { type: "image/svg+xml" }))), button("PNG", "Save as PNG", () => asPng(svg, name)));
  const table = figure.querySelector("table");
  if (table) tools.append(button("CSV", "Save its numbers as CSV", () => give(`${name}.csv`, new Blob([csvOf(table)], { type: "text/csv" }))));
  tools.append(button("link", "Copy a link to this very state", (made) => copyLink(figure.closest("section").id, made)));
  figure.prepend(tools);
  if (!svg.querySelector("[data-c]")) return;
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `${svg.getAttribute("aria-label")}: arrows go from mark to mark, Enter picks, plus and minus zoom, shift and arrows pan, Escape clears`);
}

function equipAll(within) {
  within.querySelectorAll("section figure").forEach(equip);
  for (const code of within.querySelectorAll("#answer pre > code")) {
    if (code.parentNode.nextElementSibling?.matches(".copy")) continue;
    const made = button("Copy the command", "Copy the command", async () => {
      try { await navigator.clipboard.writeText(code.textContent); made.textContent = "Copied"; } catch { window.getSelection().selectAllChildren(code); }
      window.setTimeout(() => { made.textContent = "Copy the command"; }, 1500);
    });
    made.className = "copy";
    code.parentNode.after(made);
  }
}

when("drawn", equipAll);
equipAll(document);
