// Reads the figures of both sides, which are scripts beside this page, and writes the tables.
// Names come from runs of strangers: they only ever become text, and a file is loaded only if
// results.js has its name.
"use strict";
const form = document.querySelector("#choice");
const answer = document.querySelector("#answer");
const problem = document.querySelector("#problem");
const loaded = new Map();
window.kteardownData = (name, value) => loaded.set(name, value);

function load(name) {
  return new Promise((resolve, reject) => {
    if (loaded.has(name)) return resolve(loaded.get(name));
    const script = document.createElement("script");
    script.src = `${encodeURIComponent(name)}.js`;
    script.onload = () => (loaded.has(name) ? resolve(loaded.get(name)) : reject(new Error(`${name}.js has no data`)));
    script.onerror = () => reject(new Error(`${name}.js cannot be loaded: write the site again`));
    document.head.append(script);
  });
}

function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

// Four digits that matter, as in the reports.
function number(value) {
  if (value === null || value === undefined) return "-";
  if (value === 0) return "0";
  const decimals = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}
function percent(ratio) {
  if (ratio === null || ratio === undefined) return "-";
  const change = 100 * (ratio - 1);
  return `${change < 0 ? "" : "+"}${change.toFixed(2)}%`;
}
function interval(row) {
  return row.low === null ? "" : ` [${percent(row.low).slice(0, -1)}, ${percent(row.high).slice(0, -1)}]`;
}

// The rows of a table as objects; the metric, a number in the file, as what it is.
function rows(result, name) {
  const { columns, rows: values } = result[name];
  return values.map((value) => {
    const row = Object.fromEntries(columns.map((column, at) => [column, value[at]]));
    return { ...row, metric: result.metrics[row.metric] };
  });
}
function key(row, ...names) {
  return JSON.stringify([row.metric.workload, row.metric.metric, ...names.map((name) => row[name])]);
}

function table(title, columns, lines) {
  const section = element("section");
  section.append(element("h2", title));
  const scroll = element("div", undefined, "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", title);
  const made = element("table", undefined, "l1");
  const head = element("tr");
  for (const column of columns) {
    const cell = element("th", column);
    cell.scope = "col";
    head.append(cell);
  }
  made.append(element("thead"));
  made.tHead.append(head);
  const body = element("tbody");
  for (const line of lines) {
    const row = element("tr");
    for (const cell of line) row.append(cell instanceof Node ? cell : element("td", cell));
    body.append(row);
  }
  made.append(body);
  scroll.append(made);
  section.append(scroll);
  return section;
}

// Intervals of both sides on one axis of ratios, from the smallest end to the largest.
function drawn(pair, ends) {
  const [low, high] = ends;
  const place = (ratio) => 4 + (92 * Math.log(ratio / low)) / Math.log(high / low || 2);
  const namespace = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(namespace, "svg");
  picture.setAttribute("width", "160");
  picture.setAttribute("height", "22");
  picture.setAttribute("viewBox", "0 0 100 22");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  const line = (from, to, y, colour, width) => {
    const made = document.createElementNS(namespace, "path");
    made.setAttribute("d", `M${from} ${y}H${to}`);
    made.setAttribute("stroke", `var(--${colour})`);
    made.setAttribute("stroke-width", width);
    picture.append(made);
  };
  if (low <= 1 && high >= 1) {
    const zero = document.createElementNS(namespace, "path");
    zero.setAttribute("d", `M${place(1)} 0V22`);
    zero.setAttribute("stroke", "var(--grid)");
    picture.append(zero);
  }
  pair.forEach((row, at) => {
    if (!row || !(row.ratio > 0)) return;
    const from = row.low > 0 ? place(row.low) : place(row.ratio);
    const to = row.high > 0 ? place(row.high) : place(row.ratio);
    line(from, to, 7 + 8 * at, at ? "kernel1" : "kernel0", 2);
    line(place(row.ratio) - 1, place(row.ratio) + 1, 7 + 8 * at, at ? "kernel1" : "kernel0", 6);
  });
  const cell = element("td");
  cell.append(picture);
  return cell;
}

function grouped(list, ...names) {
  const groups = new Map();
  for (const entry of list) {
    const name = key(entry.row, ...names);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(entry);
  }
  return [...groups.values()];
}

function title(row, kernel) {
  const statistic = row.statistic && row.statistic !== "median" ? ` (${row.statistic})` : "";
  return `${row.metric.workload}: ${row.metric.name}${statistic}${kernel ? `, ${kernel} against base` : ""}`;
}

// Variants of one name belong together, and the only one of each side that the other has not.
function paired(a, b) {
  const [ours, theirs] = [a, b].map((changes) => [...new Set(changes.map((row) => row.kernel))]);
  const pairs = new Map(ours.filter((name) => theirs.includes(name)).map((name) => [name, name]));
  const [left, right] = [ours.filter((name) => !pairs.has(name)), theirs.filter((name) => !pairs.has(name))];
  if (left.length === 1 && right.length === 1) pairs.set(left[0], right[0]);
  return pairs;
}

function compareResults(a, b) {
  const [changesA, changesB] = [rows(a, "changes"), rows(b, "changes")];
  const pairs = paired(changesA, changesB);
  const theirs = new Map(changesB.map((row) => [key(row, "statistic", "point", "kernel"), row]));
  const both = [];
  for (const row of changesA) {
    const other = theirs.get(key({ ...row, kernel: pairs.get(row.kernel) }, "statistic", "point", "kernel"));
    if (other) both.push({ row, other });
  }
  const apart = both.filter(({ row, other }) => isApart(row, other)).length;
  const differ = both.filter(({ row, other }) => row.verdict !== other.verdict).length;
  answer.append(element("p", both.length
    ? `${both.length} comparisons are in both results: the intervals of ${apart} are apart, and ${differ} have different verdicts.`
    : "No comparison is in both results.", "answer"));
  if (a.clock !== b.clock) answer.append(element("p", `A was measured on the clock "${a.clock}" and B on "${b.clock}", which measure different things.`, "line worse"));
  for (const group of grouped(both, "statistic", "kernel")) {
    const numbers = group.flatMap(({ row, other }) => [row, other]).flatMap((row) => [row.low, row.ratio, row.high]).filter((value) => value > 0);
    const ends = [Math.min(1, ...numbers), Math.max(1, ...numbers)];
    const kernel = pairs.get(group[0].row.kernel);
    const name = kernel === group[0].row.kernel ? kernel : `${group[0].row.kernel} (A) and ${kernel} (B)`;
    answer.append(table(title(group[0].row, name),
      ["point", "A", "verdict of A", "B", "verdict of B", "intervals", "A above B"],
      group.map(({ row, other }) => [
        row.point || "all",
        percent(row.ratio) + interval(row), verdict(row),
        percent(other.ratio) + interval(other), verdict(other),
        row.low === null || other.low === null ? "-" : isApart(row, other) ? "apart" : "overlap",
        drawn([row, other], ends),
      ])));
  }
}
function isApart(row, other) {
  return row.low !== null && other.low !== null && (row.low > other.high || row.high < other.low);
}
function verdict(row) {
  return element("td", row.verdict, row.verdict);
}

function compareKernels(a, b, kernelA, kernelB) {
  if (a.clock !== b.clock) throw new Error(`A was measured on the clock "${a.clock}" and B on "${b.clock}": their values cannot be compared.`);
  laws(a, b, kernelA, kernelB);
  const of = (result, kernel) => rows(result, "values").filter((row) => row.kernel === kernel);
  const theirs = new Map(of(b, kernelB).map((row) => [key(row, "statistic", "point"), row]));
  const both = of(a, kernelA).map((row) => ({ row, other: theirs.get(key(row, "statistic", "point")) })).filter(({ other }) => other);
  answer.prepend(element("p", both.length
    ? `${both.length} values are of both kernels. They have no verdict here, since their boots were not compared.`
    : "No value is of both kernels.", "answer"));
  for (const group of grouped(both, "statistic")) {
    answer.append(table(`${title(group[0].row)}, in ${group[0].row.metric.unit}`,
      ["point", "A", "B", "B / A"],
      group.map(({ row, other }) => [row.point || "all", number(row.value), number(other.value), row.value ? percent(other.value / row.value) : "-"])));
  }
}

function laws(a, b, kernelA, kernelB) {
  const of = (result, kernel) => rows(result, "laws").filter((row) => row.kernel === kernel && row.one_more !== null);
  const theirs = new Map(of(b, kernelB).map((row) => [key(row, "parameter", "point"), row]));
  const lines = [];
  const ends = (row) => (row.low === null ? "" : ` [${number(row.low)}, ${number(row.high)}]`);
  for (const row of of(a, kernelA)) {
    const other = theirs.get(key(row, "parameter", "point"));
    if (other) lines.push([
      `${row.metric.name} by ${row.parameter}${row.point ? `, ${row.point}` : ""}`, row.metric.unit,
      number(row.one_more) + ends(row), row.law, number(other.one_more) + ends(other), other.law,
      row.one_more ? percent(other.one_more / row.one_more) : "-",
    ]);
  }
  if (lines.length) answer.append(table("What one more costs", ["metric", "unit", "A", "law of A", "B", "law of B", "B / A"], lines));
}

function about(a, b, kernelA, kernelB) {
  const lines = [["result", a.name, b.name], ["measured (UTC)", a.began, b.began], ["experiment", a.experiment, b.experiment], ["clock", a.clock, b.clock]];
  const [ours, theirs] = [a.kernels[kernelA || "base"], b.kernels[kernelB || "base"]];
  for (const name of Object.keys(ours || {})) {
    if (ours[name] || (theirs && theirs[name])) lines.push([name, ours[name] || "none", (theirs && theirs[name]) || "none"]);
  }
  const made = lines.map(([name, left, right]) => {
    const cells = [element("td", name)];
    for (const [text, result] of [[left, a], [right, b]]) {
      const cell = element("td", undefined, left === right ? "" : "differs");
      if (name === "result") {
        const link = element("a", text);
        link.href = result.page;
        cell.append(link);
      } else cell.textContent = text;
      cells.push(cell);
    }
    return cells;
  });
  answer.append(table(`What was measured, and the kernel ${kernelA ? "" : "base "}of both`, ["what", kernelA ? `A: ${kernelA}` : "A", kernelB ? `B: ${kernelB}` : "B"], made));
  if (!kernelA) {
    for (const [side, result] of [["A", a], ["B", b]]) if (result.sentence) answer.append(element("p", `${side}: ${result.sentence}`, "line"));
  }
}

// NAME or NAME:KERNEL; a name of a result has no colon.
function split(text) {
  const at = text.indexOf(":");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
function sides() {
  const query = new URLSearchParams(location.search);
  return ["a", "b"].map((name) => split(query.get(name) || ""));
}

function fill(results) {
  const names = document.querySelector("#names");
  for (const result of results) {
    const option = element("option");
    option.value = result.name;
    option.label = `${result.experiment}, ${result.clock}, ${result.began}`;
    names.append(option);
  }
  sides().forEach(([name, kernel], at) => {
    const side = "ab"[at];
    const choose = () => {
      const select = form.elements[`kernel_${side}`];
      const result = results.find((entry) => entry.name === form.elements[side].value);
      select.replaceChildren(new Option("the whole result", ""), ...(result ? result.kernels : []).map((kernel) => new Option(kernel, kernel)));
    };
    form.elements[side].value = name;
    choose();
    if (kernel) form.elements[`kernel_${side}`].value = kernel;
    form.elements[side].addEventListener("input", choose);
  });
  form.hidden = false;
}

function go(event) {
  event.preventDefault();
  const query = ["a", "b"].map((side) => {
    const kernel = form.elements[`kernel_${side}`].value;
    return `${side}=${encodeURIComponent(form.elements[side].value.trim() + (kernel ? `:${kernel}` : ""))}`;
  });
  if (event.swap) query.splice(0, 2, query[1].replace(/^b/, "a"), query[0].replace(/^a/, "b"));
  location.search = `?${query.join("&")}`;
}

async function show() {
  const results = await load("results");
  const entry = (name) => results.find((result) => result.name === name);
  fill(results);
  const [[nameA, kernelA], [nameB, kernelB]] = sides();
  if (!nameA || !nameB) return;
  for (const name of [nameA, nameB]) {
    if (!results.some((result) => result.name === name)) throw new Error(`This site has no result with the name "${name}". Choose one of the list.`);
  }
  if (Boolean(kernelA) !== Boolean(kernelB)) throw new Error("Choose a kernel on both sides, or the whole result on both.");
  const [a, b] = await Promise.all([nameA, nameB].map((name) => load(`result-${name}`)));
  for (const [result, kernel] of [[a, kernelA], [b, kernelB]]) {
    if (kernel && !entry(result.name).kernels.includes(kernel)) throw new Error(`${result.name} has no kernel "${kernel}". Choose one of the list.`);
  }
  document.title = `${kernelA || nameA} and ${kernelB || nameB} – kteardown`;
  if (kernelA) compareKernels(a, b, kernelA, kernelB);
  else compareResults(a, b);
  about(a, b, kernelA, kernelB);
}

form.addEventListener("submit", go);
document.querySelector("#swap").addEventListener("click", (event) => {
  event.swap = true;
  go(event);
});
show().catch((error) => {
  problem.textContent = error.message;
  problem.hidden = false;
});
