// The filters and the theme of a report, and the choice of one chart of each kind. Nothing here goes to the network.
"use strict";
(() => {
const root = document.documentElement;
const first = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Filters.
const form = first("#filters");
function chosen() {
  const boxes = (name) => {
    const inputs = form ? all(`input[name=${name}]`, form) : [];
    const on = new Set(inputs.filter((input) => input.checked).map((input) => input.value));
    return (value) => !value || !inputs.some((input) => input.value === value) || on.has(value);
  };
  const metric = form ? form.elements.metric.value : "";
  return { variant: boxes("variant"), verdict: boxes("verdict"), metric: (value) => !value || !metric || value === metric, name: metric && form.elements.metric.selectedOptions[0].text };
}
let filters = chosen();

// Of each kind of charts, only the one is shown that the reader chooses.
function setUp(figure) {
  const views = all(".view", figure), selects = all("select", figure);
  const keys = views.map((view) => view.dataset.key.split(" ").map(Number));
  for (const select of selects) select.addEventListener("change", () => {
    // Not every combination has a chart: the one that keeps what was just chosen, and most of the rest.
    const match = (key) => selects.reduce((sum, other, n) => sum + (key[n] === other.selectedIndex) * (other === select ? 100 : 1), 0);
    const best = keys.reduce((nearest, key, n) => (match(key) > match(keys[nearest]) ? n : nearest), 0);
    views.forEach((view, n) => view.classList.toggle("on", n === best));
    first(".title", figure).textContent = first(".title", views[best]).textContent;
    selects.forEach((other, n) => { other.selectedIndex = keys[best][n]; });
  });
}

function applyFilters() {
  filters = chosen();
  let shown = 0, total = 0;
  for (const element of all("main [data-variant], main [data-metric], .f[data-verdict]")) {
    const { variant, verdict } = element.dataset, { metric } = element.closest("[data-metric]")?.dataset ?? {};
    const row = element.tagName === "TR";
    const visible = filters.variant(variant) && filters.metric(metric) && (!(row || element.matches(".f")) || filters.verdict(verdict));
    element.toggleAttribute("hidden", !visible);
    if (row && verdict) { total++; shown += visible; }
  }
  for (const plot of all(".forest")) {
    for (const rows of all(".rows", plot)) if (!first(".f[data-verdict]:not([hidden])", rows)) rows.hidden = true;
    first(".empty", plot).hidden = Boolean(first(".rows:not([hidden])", plot));
  }
  const count = first("#count");
  if (count) count.textContent = shown === total ? `all ${total.toLocaleString("en")} comparisons` : `${shown.toLocaleString("en")} of ${total.toLocaleString("en")} comparisons`;
  for (const select of all("figure.chart select")) {
    const option = filters.name && [...select.options].find(({ value }) => value === filters.name || value.startsWith(filters.name + " ("));
    if (option && select.value !== option.value) { select.value = option.value; select.dispatchEvent(new Event("change")); }
  }
}

// Theme: that of the system, or the one that the reader chose.
const themes = ["system", "light", "dark"];
function setTheme(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  first("#theme").textContent = "theme: " + name;
}

// On paper all tables are open.
let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not([open])");
  closed.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));

all("figure.chart:not(.forest)").forEach(setUp);
const button = first("#theme");
button.hidden = false;
button.addEventListener("click", () => {
  setTheme(themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length]);
});
if (form) {
  form.hidden = false;
  form.addEventListener("change", applyFilters);
  form.addEventListener("reset", () => setTimeout(applyFilters));
  form.addEventListener("submit", (event) => event.preventDefault());
  applyFilters();
}
})();
