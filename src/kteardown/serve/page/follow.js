// Updates the page while a run is measured: the progress of one run, or the list of runs.
"use strict";
const PERIOD_MS = 2000;
const LIST_PERIOD_MS = 5000;
const live = document.getElementById("live");
const list = document.querySelector("[data-live=list] tbody");

async function followRun() {
  const answer = await fetch(live.dataset.follow);
  if (!answer.ok) return;
  const fragment = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (answer.headers.get("x-run-state") !== live.dataset.state) {
    location.reload();
    return;
  }
  live.replaceChildren(...fragment.body.childNodes);
}

async function followList() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const rows = page.querySelector("[data-live=list] tbody");
  // Keep the runs that the user has selected.
  for (const picked of list.querySelectorAll("input:checked")) {
    const same = rows?.querySelector(`input[name=${picked.name}][value="${CSS.escape(picked.value)}"]`);
    if (same) same.checked = true;
  }
  if (rows) list.replaceChildren(...rows.childNodes);
}

function every(periodMs, step) {
  setTimeout(async () => {
    try {
      if (!document.hidden) await step();
    } catch {
      // The server was stopped: keep the page as it is, and try again.
    }
    every(periodMs, step);
  }, periodMs);
}

if (live) every(PERIOD_MS, followRun);
if (list) every(LIST_PERIOD_MS, followList);
