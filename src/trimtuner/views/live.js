// Keeps the page as the record is: asks which version of each view there is, and draws anew those that have changed.
"use strict";
(() => {
  const page = (window.trimtuner = window.trimtuner || {});
  const study = document.getElementById("study");
  const base = study ? `/study/${study.dataset.number}` : "";
  const shown = new Map(); // view -> version on the page
  let reading = null; // of the rows that are not on the page yet
  const NO_ACCESS = "no access: open the link that trimtuner dashboard printed last";
  const PAUSE = 1500; // milliseconds between looks; a page in the background looks less often

  async function answerOf(address, options) {
    const answer = await fetch(address, options);
    if (!answer.ok) throw new Error(answer.status === 401 || answer.status === 403 ? NO_ACCESS : String(answer.status));
    return answer;
  }

  async function textOf(address) {
    return (await answerOf(address)).text();
  }

  function partsOf(html) {
    const template = document.createElement("template");
    template.innerHTML = html; // the server has escaped what came from outside, and the policy runs no script but ours
    return template.content;
  }

  async function draw(name) {
    const section = document.getElementById(name);
    const parts = partsOf(await textOf(`${base}/view/${name}`));
    if (name === "trials" && section.querySelector("table.trials") && parts.querySelector("table.trials")) {
      return merge(section, parts);
    }
    const before = page.stateOf(section);
    const hadFocus = section.contains(document.activeElement);
    section.querySelector(".body").replaceChildren(parts);
    page.restore(section, before);
    const figure = hadFocus && section.querySelector(".pickable");
    if (figure) figure.focus({ preventScroll: true });
  }

  // New rows come on top and changed ones in place, so that whoever reads, filters or sorts the table is not disturbed.
  function merge(section, parts) {
    const table = section.querySelector("table.trials");
    const body = table.tBodies[0];
    const known = new Map([...body.querySelectorAll("tr[data-trial]")].map((row) => [row.dataset.trial, row]));
    if (![...parts.querySelectorAll("tr[data-trial]")].some((row) => known.has(row.dataset.trial))) {
      return section.querySelector(".body").replaceChildren(parts); // so many are new that rows between would be missing
    }
    const added = document.createDocumentFragment();
    for (const row of [...parts.querySelectorAll("tr[data-trial]")]) {
      const old = known.get(row.dataset.trial);
      if (!old) added.append(row.cloneNode(true), row.nextElementSibling.cloneNode(true));
      else if (old.textContent !== row.textContent) {
        row.setAttribute("aria-expanded", old.getAttribute("aria-expanded"));
        const hadFocus = old === document.activeElement;
        old.replaceWith(row);
        if (hadFocus) row.focus({ preventScroll: true });
      }
    }
    body.prepend(added);
    page.arrange(table);
    page.filter(section);
    const more = section.querySelector(".more");
    if (more && parts.querySelector(".more") && !reading) more.replaceWith(parts.querySelector(".more"));
  }

  async function readRows() {
    const section = document.getElementById("trials");
    const table = section.querySelector("table.trials");
    const more = section.querySelector(".more");
    if (!more) return;
    for (;;) {
      const numbers = [...table.tBodies[0].querySelectorAll("tr[data-trial]")].map((row) => Number(row.dataset.trial));
      const parts = partsOf(`<table><tbody>${await textOf(`${base}/trials?below=${Math.min(...numbers)}`)}</tbody></table>`);
      const rows = parts.querySelector("tbody").children;
      if (!rows.length) break;
      page.hideUnfit(section, parts.querySelectorAll("tr[data-trial]")); // before they are laid out
      more.textContent = `reading: ${numbers.length} of ${more.dataset.rows} trials`;
      table.tBodies[0].append(...rows);
      await new Promise((done) => window.requestAnimationFrame(() => window.setTimeout(done)));
    }
    more.remove();
    page.arrange(table);
    page.filter(section);
  }

  async function look() {
    const line = document.getElementById("state");
    try {
      const state = await (await answerOf(`${base}/state`)).json();
      document.getElementById("goal").textContent = state.goal;
      for (const [name, version] of Object.entries(state.views)) {
        if (version === null || shown.get(name) === version) continue;
        await draw(name);
        shown.set(name, version);
      }
      line.textContent = state.trouble || state.said;
      line.classList.toggle("trouble", Boolean(state.trouble));
    } catch (error) {
      line.textContent = `not connected (${error.message}); trying again`;
      line.classList.add("trouble");
    }
    window.setTimeout(look, document.hidden ? 10 * PAUSE : PAUSE);
  }

  async function list() {
    const place = document.getElementById("studies");
    try {
      const parts = partsOf(await textOf("/studies"));
      const focused = document.activeElement && document.activeElement.getAttribute("href");
      place.replaceChildren(parts);
      const link = focused && [...place.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused);
      if (link) link.focus();
    } catch (error) {
      document.getElementById("state").textContent = `not connected (${error.message}); trying again`;
    }
    window.setTimeout(list, document.hidden ? 10 * PAUSE : 2 * PAUSE);
  }

  Object.assign(page, {
    every() {
      reading = reading || readRows().finally(() => { reading = null; });
      return reading;
    },
    async detail(trial, place) {
      try {
        place.replaceChildren(partsOf(await textOf(`${base}/trial/${trial}`)));
      } catch (error) {
        place.textContent = `not to be had (${error.message})`;
      }
    },
    async log(trial, place) {
      place.textContent = "being read";
      try {
        place.textContent = await textOf(`${base}/log/${trial}`);
      } catch (error) {
        place.textContent = `no log (${error.message})`;
      }
    },
  });
  document.addEventListener("submit", async (event) => {
    if (!event.target.matches("[data-stop]")) return;
    event.preventDefault();
    const said = event.target.querySelector("[role=status]");
    try {
      said.textContent = await (await answerOf(event.target.action, { method: "POST", body: new URLSearchParams(new FormData(event.target)) })).text();
    } catch (error) {
      said.textContent = `refused (${error.message})`;
    }
  });
  if (study) look();
  else window.setTimeout(list, PAUSE);
})();
