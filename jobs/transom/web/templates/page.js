"use strict";

// Airflow's switch of light and dark; this page has its origin.
function follow() {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}
follow();
addEventListener("storage", follow);

// Airflow shows this page in a frame that may not open another page of Airflow itself.
function openInAirflow(address) {
  const anchor = parent.document.createElement("a");
  anchor.href = address;
  parent.document.body.append(anchor);
  anchor.click();
  anchor.remove();
}

async function ask(address, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(address, options);
  const answer = await response.json();
  if (response.status === 403) throw new Error("you lack the permission in Airflow");
  if (!response.ok) throw new Error(`${response.status}: ${typeof answer.detail === "string" ? answer.detail : JSON.stringify(answer.detail)}`);
  return answer;
}

async function run(form) {
  const status = form.querySelector("[role=status]");
  const button = form.querySelector("button");
  const dag = form.dataset.run;
  button.disabled = true;
  let id;
  try {
    const conf = { from: form.elements.from.value, to: form.elements.to.value, recompute: form.elements.recompute.checked };
    let state = await ask(`${dag}/dagRuns`, { logical_date: null, conf });
    id = state.dag_run_id;
    const paused = (await ask(dag)).is_paused;
    while (["queued", "running"].includes(state.state)) {
      const waits = paused && state.state === "queued" ? "; the DAG is paused, and the run waits until it is not" : "";
      show(status, `The run is ${state.state}${waits}. `, form, id, "Watch it in Airflow");
      await new Promise(resolve => setTimeout(resolve, 2000));
      state = await ask(`${dag}/dagRuns/${encodeURIComponent(id)}`);
    }
    show(status, `The run has ended: ${state.state}. `, form, id, "See its tasks");
    const again = document.createElement("a");
    again.href = location.href;
    again.textContent = "Show the result";
    status.append(" ", again);
  } catch (error) {
    // A run that exists goes on without this page.
    if (id) show(status, `The state of the run is not known: ${error.message}. `, form, id, "Watch it in Airflow");
    else status.textContent = `Not run: ${error.message}`;
  }
  button.disabled = false;
}

function show(status, text, form, id, label) {
  const link = document.createElement("a");
  link.href = `${form.dataset.dag}/runs/${encodeURIComponent(id)}`;
  link.dataset.airflow = "";
  link.textContent = label;
  status.replaceChildren(text, link);
}

// The number of hours of the form that runs them; NaN if its fields have no hours.
function hoursOf(form) {
  const [from, to] = ["from", "to"].map(name => Date.parse(`${form.elements[name].value}Z`));
  const hours = (to - from) / 3_600_000;
  return Number.isInteger(hours) && hours > 0 ? hours : NaN;
}

// The button has the number of hours, and a question about other hours is void.
function count(form) {
  const hours = hoursOf(form);
  const status = form.querySelector("[role=status]");
  form.querySelector("button").textContent = hours ? `Run ${hours} hour${hours > 1 ? "s" : ""}` : "Run";
  if (form.dataset.asked) status.textContent = "";
  delete form.dataset.asked;
}

// A run of many hours may take hours, so it needs a second press.
const MANY = 48;
function isSure(form) {
  const hours = hoursOf(form);
  if (!(hours > MANY) || form.dataset.asked) return true;
  const days = Math.round(hours / 24);
  form.dataset.asked = "yes";
  form.querySelector("button").textContent = `Yes, run ${hours} hours`;
  form.querySelector("[role=status]").textContent = `Nothing runs yet. These are ${hours} hours, about ${days} days: press the button again to run them.`;
  return false;
}

// A page that stays open shows what is there now. Only its live parts are replaced, and only those that differ:
// what a person has typed, opened or scrolled to stays.
const live = tree => [...tree.querySelectorAll("[data-live]")];
let shown = [];
let refreshed = 0;

async function refresh() {
  const status = document.querySelector("[data-refresh] [role=status]");
  refreshed = Date.now();
  try {
    const response = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    const parts = live(fresh);
    if (!response.ok || parts.length !== shown.length) throw new Error(fresh.querySelector("h1")?.textContent || response.status);
    live(document).forEach((part, index) => {
      if (parts[index].innerHTML !== shown[index]) replace(part, parts[index], index);
    });
    follows(fresh);
    status.textContent = "";
  } catch (error) {
    status.textContent = `Not refreshed: ${error.message}. The page is as before.`;
  }
}

function replace(part, fresh, index) {
  shown[index] = fresh.innerHTML;
  const focused = part.contains(document.activeElement) && document.activeElement;
  const all = (of, selector) => [...of.querySelectorAll(selector)];
  const name = of => of.ariaLabel ?? `${of.href} ${of.title} ${of.textContent.split(":")[0]}`;
  for (const [place, details] of all(fresh, "details").entries()) {
    details.open = all(part, "details")[place]?.open ?? details.open;
  }
  const scrolled = all(part, ".scroll").map(box => box.scrollLeft);
  part.replaceChildren(...fresh.childNodes);
  all(part, ".scroll").forEach((box, place) => { box.scrollLeft = scrolled[place] ?? 0; });
  tabs(part);
  fades();
  if (!focused) return;
  const same = all(part, "a, summary, .scroll").find(next => name(next) === name(focused));
  if (same?.matches("[data-grid] a")) {
    part.querySelector("[data-grid] a").tabIndex = -1;
    same.tabIndex = 0;
  }
  same?.focus();
}

// Fields that nobody has changed follow the hours of the page.
function follows(fresh) {
  for (const [place, form] of document.querySelectorAll("form").entries()) {
    for (const field of form.querySelectorAll("input[name=from], input[name=to]")) {
      const next = fresh.querySelectorAll("form")[place]?.elements[field.name];
      if (next && field.value === field.defaultValue && field !== document.activeElement) {
        field.defaultValue = field.value = next.defaultValue;
      }
    }
    if (form.matches("[data-run]")) count(form);
  }
}

function stayFresh() {
  const place = document.querySelector("[data-refresh]");
  if (!place) return;
  const choice = place.querySelector("input");
  const every = 1000 * place.dataset.refresh;
  const isDue = () => choice.checked && !document.hidden && Date.now() - refreshed >= every;
  shown = live(document).map(part => part.innerHTML);
  refreshed = Date.now();
  place.hidden = false;
  choice.checked = localStorage.getItem("transom.refresh") !== "off";
  choice.addEventListener("change", () => localStorage.setItem("transom.refresh", choice.checked ? "on" : "off"));
  setInterval(() => isDue() && refresh(), 1000);
}

// Arrow keys in a grid. One cell takes part in the order of the tab key.
function move(event) {
  const cell = event.target.closest("[data-grid] td");
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  if (!cell || !(event.key in steps)) return;
  const [down, right] = steps[event.key];
  const rows = [...cell.closest("tbody").rows];
  let row = rows.indexOf(cell.parentElement) + down;
  let column = cell.cellIndex + right;
  let next;
  while ((next = rows[row]?.cells[column]) && next.tagName === "TD") {
    const link = next.querySelector("a");
    if (link) {
      event.target.tabIndex = -1;
      link.tabIndex = 0;
      link.focus();
      break;
    }
    row += down;
    column += right;
  }
  event.preventDefault();
}

function tabs(tree) {
  for (const link of [...tree.querySelectorAll("[data-grid] a")].slice(1)) link.tabIndex = -1;
}

// A box that can be scrolled fades where there is more.
function fade(box) {
  const more = box.scrollWidth - box.clientWidth;
  const left = getComputedStyle(box).direction === "rtl" ? more + box.scrollLeft : box.scrollLeft;
  box.classList.toggle("before", left > 1);
  box.classList.toggle("after", left < more - 1);
}

const fades = () => document.querySelectorAll(".scroll, nav").forEach(fade);
addEventListener("resize", fades);
document.addEventListener("scroll", event => event.target.matches?.(".scroll, nav") && fade(event.target), true);
document.addEventListener("toggle", fades, true);
document.addEventListener("DOMContentLoaded", () => {
  stayFresh();
  tabs(document);
  fades();
});
document.addEventListener("input", event => {
  const form = event.target.closest("[data-run]");
  if (form) count(form);
});
document.addEventListener("keydown", move);
document.addEventListener("submit", event => {
  if (event.target.matches("[data-run]")) {
    event.preventDefault();
    if (!isSure(event.target)) return;
    count(event.target);
    run(event.target);
  }
});
document.addEventListener("click", event => {
  const link = event.target.closest("a[data-airflow]");
  if (link && parent !== window && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openInAirflow(link.href);
  }
});
