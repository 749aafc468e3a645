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

document.addEventListener("DOMContentLoaded", () => {
  for (const link of [...document.querySelectorAll("[data-grid] a")].slice(1)) link.tabIndex = -1;
});
document.addEventListener("keydown", move);
document.addEventListener("submit", event => {
  if (event.target.matches("[data-run]")) {
    event.preventDefault();
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
