// The charts, the filters and the theme of a report. Nothing here goes to the network.
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
  return { variant: boxes("variant"), verdict: boxes("verdict"), metric: (value) => !value || !metric || value === metric, name: metric };
}
let filters = chosen();

function wanted(trace) {
  const meta = trace.meta || {};
  return filters.variant(meta.variant) && filters.verdict(meta.verdict) && filters.metric(meta.metric);
}

function filtered(figure) {
  const { data, layout } = figure;
  figure.data = data.filter(wanted);
  const shown = new Set();
  for (const trace of figure.data) if (trace.meta?.verdict) for (const y of trace.y) shown.add(y);
  for (const trace of figure.data) {
    const { headings } = trace.meta || {};
    if (!headings) continue;
    const keep = headings.map((_, n) => [...shown].some((key) => key.startsWith(trace.y[n] + "|")));
    for (const field of ["x", "y", "text"]) trace[field] = trace[field].filter((_, n) => keep[n]);
    trace.y.forEach((key) => shown.add(key));
  }
  const axis = layout.yaxis;
  if (axis?.type === "category") {
    const before = axis.categoryarray.length;
    axis.categoryarray = axis.categoryarray.filter((key) => shown.has(key));
    const keep = axis.tickvals.map((key) => shown.has(key));
    for (const field of ["tickvals", "ticktext"]) axis[field] = axis[field].filter((_, n) => keep[n]);
    for (const trace of figure.data) {
      if (!trace.meta?.verdict && !trace.meta?.headings) {
        const stays = trace.y.map((key, n) => shown.has(key) || (key === null && shown.has(trace.y[n - 1])));
        for (const field of ["x", "y"]) trace[field] = trace[field].filter((_, n) => stays[n]);
      }
    }
    axis.range = [axis.categoryarray.length - 0.4, -0.6];
    layout.height -= 21 * (before - axis.categoryarray.length);
    const named = new Set();
    for (const trace of figure.data) {
      if (trace.legendgroup) {
        trace.showlegend = !named.has(trace.legendgroup) && trace.y.length > 0;
        if (trace.y.length) named.add(trace.legendgroup);
      }
    }
    if (!named.size) figure.data = [];
  }
  return figure;
}

// Charts are drawn when they are scrolled into view, and again when their inputs have changed.
const separator = "\u001f";
const charts = new Map();
const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
const touch = matchMedia("(pointer: coarse)").matches;

function setUp(figure) {
  const known = JSON.parse(one("script.charts", figure).textContent);
  const state = { known, key: JSON.parse(figure.dataset.first).join(separator), log: false, stale: true, near: false };
  charts.set(figure, state);
  const selects = all("select[data-choice]", figure);
  const choose = (changed) => {
    const key = selects.map((select) => select.value);
    state.key = known[key.join(separator)] ? key.join(separator) : nearest(known, key, changed);
    state.key.split(separator).forEach((value, n) => { if (selects[n]) selects[n].value = value; });
    redraw(figure);
  };
  selects.forEach((select, n) => select.addEventListener("change", () => choose(n)));
  const button = one("button.log", figure);
  button?.addEventListener("click", () => {
    state.log = !state.log;
    button.setAttribute("aria-pressed", String(state.log));
    redraw(figure);
  });
}

// Not every combination of choices has a chart: the one that keeps what was just chosen, and most of the rest.
function nearest(known, key, changed) {
  const same = (other) => other.split(separator).reduce((sum, value, n) => sum + (value === key[n] ? (n === changed ? 100 : 1) : 0), 0);
  return Object.keys(known).reduce((best, other) => (same(other) > same(best) ? other : best));
}

function redraw(figure) {
  const state = charts.get(figure);
  state.stale = true;
  if (state.near) return draw(figure);
}

async function draw(figure, width) {
  const state = charts.get(figure);
  const about = state.known[state.key];
  state.stale = false;
  const { Plotly, figures } = await library();
  const plot = one(".plot", figure);
  const drawn = filtered(coloured(figures[about.name]));
  one(".title", figure).textContent = about.title;
  plot.setAttribute("aria-label", about.about);
  one(".notes", figure).replaceChildren(...about.notes.map((text) => Object.assign(document.createElement("p"), { className: "note", textContent: text })));
  one(".empty", figure)?.remove();
  if (!drawn.data.length) {
    Plotly.purge(plot);
    plot.style.minHeight = "0";
    plot.after(Object.assign(document.createElement("p"), { className: "empty", textContent: "No data matches the filters." }));
    return;
  }
  const many = drawn.data.filter((trace) => trace.type === "scattergl");
  if (many.length && !graphicsCard()) for (const trace of many) trace.type = "scatter";
  if (state.log) for (const name of ["xaxis", "yaxis"]) Object.assign(drawn.layout[name], { type: "log", rangemode: "normal" });
  if (touch) drawn.layout.dragmode = false;
  if (width) Object.assign(drawn.layout, { width, autosize: false });
  const narrow = (width || plot.clientWidth) < 520;
  if (narrow) narrowed(drawn.layout);
  plot.style.minHeight = drawn.layout.height + "px";
  await Plotly.react(plot, drawn.data, drawn.layout, { ...config, displayModeBar: touch ? false : "hover", toImageButtonOptions: { format: "svg", filename: about.name } });
  figure.dataset.drawn = about.name;
}

// On a narrow screen, long names of rows are above their marks, and there are fewer ticks.
function narrowed(layout) {
  layout.margin = { ...layout.margin, l: Math.min(layout.margin.l, 12), r: 10 };
  const { xaxis, yaxis } = layout;
  if (yaxis?.type !== "category") return;
  const none = xaxis.ticktext.indexOf("0");
  const kept = xaxis.ticktext.map((_, n) => (n - none) % 2 === 0);
  for (const field of ["tickvals", "ticktext"]) xaxis[field] = xaxis[field].filter((_, n) => kept[n]);
  xaxis.tickangle = 0;
  if (yaxis.ticktext.some((text) => text.length > 14)) {
    layout.annotations = yaxis.tickvals.map((key, n) => ({
      text: yaxis.ticktext[n], font: yaxis.tickfont, xref: "paper", x: 0, xanchor: "left", y: key, yshift: 13, showarrow: false,
    }));
    yaxis.showticklabels = false;
    layout.height += 16 * yaxis.categoryarray.length;
  }
}

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const state = charts.get(target);
    state.near = isIntersecting;
    if (isIntersecting && state.stale) draw(target);
  }
}, { rootMargin: "300px 0px" });

function applyFilters() {
  filters = chosen();
  let shown = 0, known = 0;
  for (const element of all("main [data-variant], main [data-metric]")) {
    const { variant, metric, verdict } = element.dataset;
    const row = element.tagName === "TR";
    const visible = filters.variant(variant) && filters.metric(metric) && (!row || filters.verdict(verdict));
    element.hidden = !visible;
    if (row && verdict) { known++; shown += visible; }
  }
  const count = one("#count");
  if (count) count.textContent = shown === known ? `all ${known.toLocaleString("en")} comparisons` : `${shown.toLocaleString("en")} of ${known.toLocaleString("en")} comparisons`;
  for (const [figure, state] of charts) {
    for (const select of all("select[data-choice]", figure)) {
      const option = filters.name && [...select.options].find(({ value }) => value === filters.name || value.startsWith(filters.name + " ("));
      if (option && select.value !== option.value) { select.value = option.value; select.dispatchEvent(new Event("change")); }
    }
    state.stale = true;
    if (state.near && !figure.hidden) draw(figure);
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

// For printing: open all tables and draw every chart in the light theme, as wide as the page.
let before;
addEventListener("beforeprint", () => {
  before = { theme: root.dataset.theme, closed: all("details:not([open])") };
  root.dataset.theme = "light";
  before.closed.forEach((details) => { details.open = true; });
  for (const figure of charts.keys()) draw(figure, 680);
});
addEventListener("afterprint", () => {
  before.closed.forEach((details) => { details.open = false; });
  setTheme(before.theme || "system");
});

all("figure.chart").forEach(setUp);
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
for (const figure of charts.keys()) watcher.observe(figure);
// Decompress the library early, after the page itself is loaded.
(window.requestIdleCallback || setTimeout)(library);
})();
