// What a page of views can do: pick a point, open a trial, filter and sort the table. No library, no request of its own;
// whoever shows the page live sets window.trimtuner.detail, .log and .every to fetch what is not in it.
"use strict";
(() => {
  const page = (window.trimtuner = window.trimtuner || {});
  const picked = new Map(); // section id -> the picked point, kept when a section is drawn anew
  const told = new WeakMap(); // row -> its words in small letters
  let waiting = 0;

  function pick(figure, mark) {
    figure.querySelectorAll(".is-picked").forEach((one) => one.classList.remove("is-picked"));
    mark.classList.add("is-picked");
    const section = figure.closest("section");
    const title = mark.querySelector("title");
    picked.set(section.id, mark.dataset.pick);
    section.querySelector(".picked").textContent = title ? title.textContent : "";
    const [around, own] = [figure.getBoundingClientRect(), mark.getBoundingClientRect()];
    if (own.left < around.left || own.right > around.right) figure.scrollLeft += own.left - around.left - around.width / 2;
  }

  function marksOf(figure) {
    const places = [...figure.querySelectorAll("[data-pick]")].map((mark) => [mark.getBoundingClientRect().left, mark]);
    return places.sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
  }

  function step(figure, key) {
    const marks = marksOf(figure);
    if (!marks.length) return;
    const now = marks.findIndex((mark) => mark.classList.contains("is-picked"));
    const last = marks.length - 1;
    const next = { ArrowRight: now < 0 ? 0 : Math.min(now + 1, last), ArrowLeft: now < 0 ? last : Math.max(now - 1, 0), Home: 0, End: last };
    pick(figure, marks[next[key]]);
  }

  async function toggle(row) {
    const detail = row.nextElementSibling;
    const opens = detail.hidden;
    detail.hidden = !opens;
    row.setAttribute("aria-expanded", String(opens));
    if (!opens) return;
    if (page.detail) await page.detail(row.dataset.trial, detail.cells[0]);
    const log = detail.querySelector("[data-log]");
    if (log && page.log) await page.log(row.dataset.trial, log);
  }

  function rowsOf(table) {
    return [...table.tBodies[0].querySelectorAll("tr[data-trial]")];
  }

  function wordsOf(row) {
    if (!told.has(row)) told.set(row, row.textContent.toLowerCase());
    return told.get(row);
  }

  function termsOf(section) {
    return section.querySelector("[data-filter]").value.toLowerCase().split(/\s+/).filter(Boolean);
  }

  function hideUnfit(rows, terms) {
    let shown = 0;
    for (const row of rows) {
      const fits = terms.every((term) => wordsOf(row).includes(term));
      shown += fits;
      if (row.hidden === !fits) continue;
      row.hidden = !fits;
      if (!fits) { row.nextElementSibling.hidden = true; row.setAttribute("aria-expanded", "false"); }
    }
    return shown;
  }

  function filter(section) {
    const table = section.querySelector("table.trials");
    if (!table) return;
    const [rows, terms] = [rowsOf(table), termsOf(section)];
    const shown = hideUnfit(rows, terms);
    section.querySelector("[data-count]").textContent = terms.length ? `${shown} of ${rows.length} trials` : "";
  }

  async function filterAll(section) {
    if (page.every && section.querySelector("[data-filter]").value.trim()) await page.every();
    filter(section);
  }

  function arrange(table) {
    const head = table.querySelector("th[aria-sort]");
    if (!head) return;
    const [column, falls] = [head.cellIndex, head.getAttribute("aria-sort") === "descending"];
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [left, right] = [a[0], b[0]];
      if (left === "-" || right === "-") return (left === "-") - (right === "-");
      const [x, y] = [Number(left), Number(right)];
      const order = Number.isNaN(x) || Number.isNaN(y) ? left.localeCompare(right) : x - y;
      return falls ? -order : order;
    };
    const pairs = rowsOf(table).map((row) => [value(row), row, row.nextElementSibling]);
    pairs.sort(compare);
    table.tBodies[0].append(...pairs.flatMap((pair) => pair.slice(1)));
  }

  async function sort(button) {
    const head = button.closest("th");
    const next = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    head.closest("tr").querySelectorAll("th").forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", next);
    if (page.every) await page.every();
    arrange(head.closest("table"));
  }

  document.addEventListener("click", (event) => {
    const target = event.target;
    const mark = target.closest("[data-pick]");
    if (mark && mark.closest(".pickable")) return pick(mark.closest(".pickable"), mark);
    if (target.closest("[data-sort]")) return sort(target.closest("[data-sort]"));
    const row = target.closest("tr[data-trial]");
    if (row) return toggle(row);
    if (target.closest("[data-more]") && page.every) return page.every();
  });
  document.addEventListener("keydown", (event) => {
    const figure = event.target.closest(".pickable");
    if (figure && ["ArrowRight", "ArrowLeft", "Home", "End"].includes(event.key)) {
      event.preventDefault();
      return step(figure, event.key);
    }
    const row = event.target.closest("tr[data-trial]");
    if (row && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); toggle(row); }
  });
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => filterAll(event.target.closest("section")), 120);
  });

  // After a section was drawn anew: what was picked, unfolded and scrolled in it before is so again.
  Object.assign(page, {
    filter,
    arrange,
    hideUnfit(section, rows) { hideUnfit(rows, termsOf(section)); },
    stateOf(section) {
      const unfolded = [...section.querySelectorAll("details")].map((one) => one.open);
      const scrolled = [...section.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
      return { unfolded, scrolled };
    },
    restore(section, before) {
      section.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(before.unfolded[place]); });
      section.querySelectorAll(".scroll").forEach((one, place) => { one.scrollLeft = before.scrolled[place] || 0; });
      const figure = section.querySelector(".pickable");
      const mark = figure && picked.has(section.id) && figure.querySelector(`[data-pick="${picked.get(section.id)}"]`);
      if (mark) pick(figure, mark);
    },
  });
})();
