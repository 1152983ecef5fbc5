// The filters and the theme of a report, and the charts that plotly draws when the reader asks for more than the
// pictures in the page show. Nothing here goes to the network.
"use strict";
(() => {
const root = document.documentElement;
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Decompress data that is embedded in the page.
async function unpack(id) {
  const packed = atob(one("#" + id).textContent);
  const bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; n++) bytes[n] = packed.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

let ready;
function library() {
  ready ??= Promise.all([unpack("plotly"), unpack("figures")]).then(([source, figures]) => {
    const script = document.createElement("script");
    script.textContent = source;
    document.head.append(script);
    return { Plotly: window.Plotly, figures: JSON.parse(figures) };
  });
  return ready;
}

// Replace the names of colours in the figures with the colours of the theme.
function coloured(text) {
  const style = getComputedStyle(root);
  return JSON.parse(text.replace(/"\$([a-z0-9-]+)"/g, (_, name) => JSON.stringify(style.getPropertyValue("--" + name).trim())));
}

let hasGraphicsCard;
function graphicsCard() {
  if (hasGraphicsCard === undefined) {
    const canvas = document.createElement("canvas");
    hasGraphicsCard = Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
  }
  return hasGraphicsCard;
}

// Filters.
const form = one("#filters");
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

function wanted(trace) {
  const meta = trace.meta || {};
  return filters.variant(meta.variant) && filters.verdict(meta.verdict) && filters.metric(meta.metric);
}

// A chart is the picture in the page, until the reader chooses another point, logarithmic axes or zooming.
const separator = "\u001f";
const charts = new Map();
const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
const touch = matchMedia("(pointer: coarse)").matches;

function setUp(figure) {
  const known = JSON.parse(one("script.charts", figure).textContent);
  const first = JSON.parse(figure.dataset.first).join(separator);
  const picture = [...one(".plot", figure).childNodes];
  const state = { known, first, picture, key: first, log: false, zoom: false };
  charts.set(figure, state);
  const selects = all("select[data-choice]", figure);
  const choose = (changed) => {
    const key = selects.map((select) => select.value);
    state.key = known[key.join(separator)] ? key.join(separator) : nearest(known, key, changed);
    state.key.split(separator).forEach((value, n) => { if (selects[n]) selects[n].value = value; });
    redraw(figure);
  };
  selects.forEach((select, n) => select.addEventListener("change", () => choose(n)));
  for (const name of ["log", "zoom"]) {
    const button = one("button." + name, figure);
    button?.addEventListener("click", () => {
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      redraw(figure);
    });
  }
}

// Not every combination of choices has a chart: the one that keeps what was just chosen, and most of the rest.
function nearest(known, key, changed) {
  const same = (other) => other.split(separator).reduce((sum, value, n) => sum + (value === key[n] ? (n === changed ? 100 : 1) : 0), 0);
  return Object.keys(known).reduce((best, other) => (same(other) > same(best) ? other : best));
}

function isPicture(state) {
  return state.key === state.first && !state.log && !state.zoom;
}

function redraw(figure, width) {
  const state = charts.get(figure);
  if (!isPicture(state)) return draw(figure, width);
  describe(figure, state.known[state.key]);
  if (!figure.dataset.drawn) return;
  const plot = one(".plot", figure);
  window.Plotly.purge(plot);
  delete figure.dataset.drawn;
  plot.removeAttribute("style");
  plot.setAttribute("role", "img");
  plot.replaceChildren(...state.picture);
}

function describe(figure, about) {
  one(".title", figure).textContent = about.title;
  one(".plot", figure).setAttribute("aria-label", about.about);
  one(".notes", figure).replaceChildren(...about.notes.map((text) => Object.assign(document.createElement("p"), { className: "note", textContent: text })));
}

async function draw(figure, width) {
  const state = charts.get(figure);
  const about = state.known[state.key];
  const { Plotly, figures } = await library();
  if (isPicture(state) || state.known[state.key] !== about) return;
  const plot = one(".plot", figure);
  const drawn = coloured(figures[about.name]);
  drawn.data = drawn.data.filter(wanted);
  describe(figure, about);
  const many = drawn.data.filter((trace) => trace.type === "scattergl");
  if (many.length && !graphicsCard()) for (const trace of many) trace.type = "scatter";
  if (state.log) for (const name of ["xaxis", "yaxis"]) logarithmic(drawn.layout[name]);
  if (touch) drawn.layout.dragmode = false;
  if (width) Object.assign(drawn.layout, { width, autosize: false });
  if ((width || plot.clientWidth) < 520) drawn.layout.margin = { ...drawn.layout.margin, l: 12, r: 10 };
  if (!figure.dataset.drawn) plot.replaceChildren();
  plot.setAttribute("role", "group");
  plot.style.minHeight = drawn.layout.height + "px";
  await Plotly.react(plot, drawn.data, drawn.layout, { ...config, displayModeBar: touch ? false : "hover", toImageButtonOptions: { format: "svg", filename: about.name } });
  figure.dataset.drawn = about.name;
}

function logarithmic(axis) {
  Object.assign(axis, { type: "log", rangemode: "normal", minexponent: 2 });
  axis.title.text += ", logarithmic";
}

function applyFilters() {
  filters = chosen();
  let shown = 0, known = 0;
  for (const element of all("main [data-variant], main [data-metric]")) {
    const { variant, metric, verdict } = element.dataset;
    const row = element.tagName === "TR";
    const visible = filters.variant(variant) && filters.metric(metric) && (!(row || element.matches(".f")) || filters.verdict(verdict));
    element.toggleAttribute("hidden", !visible);
    if (row && verdict) { known++; shown += visible; }
  }
  for (const plot of all(".forest")) {
    for (const rows of all(".rows", plot)) if (!one(".f[data-verdict]:not([hidden])", rows)) rows.hidden = true;
    one(".empty", plot).hidden = Boolean(one(".rows:not([hidden])", plot));
  }
  const count = one("#count");
  if (count) count.textContent = shown === known ? `all ${known.toLocaleString("en")} comparisons` : `${shown.toLocaleString("en")} of ${known.toLocaleString("en")} comparisons`;
  for (const [figure, state] of charts) {
    for (const select of all("select[data-choice]", figure)) {
      const option = filters.name && [...select.options].find(({ value }) => value === filters.name || value.startsWith(filters.name + " ("));
      if (option && select.value !== option.value) { select.value = option.value; select.dispatchEvent(new Event("change")); }
    }
    if (!isPicture(state)) draw(figure);
  }
}

// Theme: that of the system, or the one that the reader chose.
const themes = ["system", "light", "dark"];
function setTheme(name) {
  if (name === "system") delete root.dataset.theme;
  else root.dataset.theme = name;
  one("#theme").textContent = "theme: " + name;
  for (const figure of charts.keys()) redraw(figure);
}

// For printing: open all tables, and draw in the light theme, as wide as the page, what is no picture.
let before;
addEventListener("beforeprint", () => {
  before = { theme: root.dataset.theme, closed: all("details:not([open])") };
  root.dataset.theme = "light";
  before.closed.forEach((details) => { details.open = true; });
  for (const figure of charts.keys()) redraw(figure, 680);
});
addEventListener("afterprint", () => {
  before.closed.forEach((details) => { details.open = false; });
  setTheme(before.theme || "system");
});

root.classList.add("scripted");
all("figure.chart:not(.forest)").forEach(setUp);
const button = one("#theme");
button.hidden = false;
button.addEventListener("click", () => {
  setTheme(themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const figure of charts.keys()) redraw(figure); });
if (form) {
  form.hidden = false;
  form.addEventListener("change", applyFilters);
  form.addEventListener("reset", () => setTimeout(applyFilters));
  form.addEventListener("submit", (event) => event.preventDefault());
  applyFilters();
}
})();
