"use strict";
// Parts that every tab is made of: elements, calls, tabs, code to copy.
const $ = id => document.getElementById(id);

// make("p", { className: "muted" }, "text", child, ...)
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

let labels = 0;
function labelled(text, input) {
  input.id = input.id || "field-" + ++labels;
  return make("span", {}, make("label", { htmlFor: input.id }, text + " "), input);
}

const number = (value, attributes = {}) =>
  make("input", { type: "number", value, style: "width: 6rem", ...attributes });
const milliseconds = s => (1000 * s).toFixed(s < 0.01 ? 2 : 1) + " ms";

function short(value, units) {
  let i = 0;
  while (value >= 1000 && i < units.length - 1) { value /= 1000; ++i; }
  return (i ? value.toFixed(1) : Math.round(value)) + units[i];
}
const bytes = value => short(value, [" B", " kB", " MB", " GB"]);

// ---- Calls ----

function headers(extra = {}) {
  const key = $("key").value.trim();
  return key ? { ...extra, Authorization: "Bearer " + key } : extra;
}

// What an error of an answer says, in whatever form it comes.
function errorText(error) {
  if (typeof error === "string") return error;
  return typeof error?.message === "string" && error.message || JSON.stringify(error);
}

async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: headers(options.headers) });
  if (response.status === 401) $("key-row").hidden = false;
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const message = body.error && errorText(body.error);
  const retry = response.headers.get("Retry-After");
  throw new Error((message || "HTTP " + response.status) + (retry ? ` (again in ${retry} s)` : ""));
}

const call = async (path, options) => (await request(path, options)).json();
const post = (path, body, signal) => request(path, {
  method: "POST", body: JSON.stringify(body), signal, headers: { "Content-Type": "application/json" } });

// ---- Code to copy ----

const quoted = text => "'" + text.replaceAll("'", "'\\''") + "'";
// A long text stands in a file of its own in what is shown.
const LONGEST_SHOWN = 600;

function shortened(value) {
  if (typeof value === "string" && value.length > LONGEST_SHOWN) return value.slice(0, 60) + " …";
  if (Array.isArray(value)) return value.slice(0, 8).map(shortened);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shortened(inner)]));
}

// The value as Python writes it; members without a value are left out, as JSON does.
function pythonOf(value) {
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).filter(([, inner]) => inner !== undefined);
    return `{${members.map(([name, inner]) => `${JSON.stringify(name)}: ${pythonOf(inner)}`).join(", ")}}`;
  }
  const words = { true: "True", false: "False", null: "None" };
  return typeof value === "string" ? JSON.stringify(value) : words[value] ?? String(value);
}

const curlKey = () => $("key").value ? ' -H "Authorization: Bearer $LONGVIEW_API_KEY"' : "";
const pythonKey = () => $("key").value ? '"Authorization": "Bearer ..."' : "";

function codeFor(path, body) {
  const shown = shortened(body);
  return showCode(`curl ${location.origin}${path}${curlKey()} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(shown))}`,
    `import requests\n\nanswer = requests.post(${JSON.stringify(location.origin + path)}, json=${
      pythonOf(shown)},\n                       headers={${pythonKey()}})\nprint(answer.json())`);
}

function showCode(curl, python) {
  return make("details", {}, make("summary", {}, "The same by curl and Python"),
    make("pre", {}, curl), make("pre", {}, python));
}

// ---- Tables ----

// rows: lists of texts, numbers or elements. A number's column is aligned to the right. `stacks`: where the
// screen is narrow a row's cells stand below each other, each behind its column's name.
function table(caption, columns, rows, stacks = false) {
  const head = make("tr", {}, ...columns.map((name, i) =>
    make("th", { scope: "col", className: typeof rows[0]?.[i] === "number" ? "number" : "" }, name)));
  const body = rows.map(row => make("tr", {}, ...row.map((value, i) => make("td", { "data-column": columns[i],
    className: typeof value === "number" ? "number" : value instanceof Node ? "wide" : "" },
    typeof value === "number" ? String(Number(value.toFixed(4))) : value))));
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    make("table", { className: stacks ? "stacks" : "" }, make("thead", {}, head), make("tbody", {}, ...body)));
}

const bar = share => make("span", { className: "bar", style: `width: ${100 * Math.max(0, share)}%` });

function scores(caption, labels, name = "name") {
  const largest = Math.max(...labels.map(label => Math.abs(label.score)), 1e-9);
  return table(caption, ["Label", "Score", ""],
    labels.map(label => [label[name], label.score, bar(Math.abs(label.score) / largest)]));
}

function timing(answer, seconds) {
  const cut = answer.usage.truncated_tokens;
  const size = answer.usage.width ? `${answer.usage.width} x ${answer.usage.height} pixels`
    : `${answer.usage.input_tokens} tokens${cut ? ` (${cut} cut)` : ""}`;
  const server = answer.timing ? ` · queue ${milliseconds(answer.timing.queue_seconds)} · compute ${
    milliseconds(answer.timing.compute_seconds)} · batch of ${answer.timing.batch_items}` : "";
  return make("p", { className: "muted" }, `${size}${server} · here ${milliseconds(seconds)}`);
}

// ---- Tabs ----

// {name, fits(model): whether the tab is for it, null if it needs none, prefers(model): whether it is chosen at
// first, build(panel, tab)}; in the order of the bar.
const TABS_TO_ADD = [];
const TABS = [];
let MODELS = [];

const serves = (...tasks) => model => model.state === "READY" &&
  [model.task, ...model.tasks].some(task => tasks.includes(task));
// What was made for embedding says more of a text than what embeds beside its task.
const onlyEmbeds = model => serves("embedding")(model) && model.tasks.every(task => task === "embedding");

function fillModels(tab) {
  if (!tab.select) return;
  const fitting = MODELS.filter(tab.fits || (model => model.state === "READY"));
  const preferred = fitting.find(model => model.id === tab.select.value)?.id ??
    fitting.find(tab.prefers || (() => false))?.id;
  tab.select.replaceChildren(...fitting.map(
    model => new Option(model.id, model.id, false, model.id === preferred)));
}

function showTab(tab, focus = false) {
  for (const other of TABS) {
    const selected = other === tab;
    other.button.setAttribute("aria-selected", selected);
    other.button.tabIndex = selected ? 0 : -1;
    other.panel.hidden = !selected;
  }
  // The bar may be wider than the screen.
  const strip = $("tabs");
  strip.scrollLeft = tab.button.offsetLeft - (strip.clientWidth - tab.button.offsetWidth) / 2;
  if (focus) tab.button.focus({ preventScroll: true });
  history.replaceState(null, "", "#" + tab.id);
  if (tab.shown) tab.shown();
}

function addTab(tab) {
  tab.id = tab.name.toLowerCase().replaceAll(" ", "-");
  tab.button = make("button", { type: "button", role: "tab", id: "tab-" + tab.id,
    "aria-controls": tab.id, onclick: () => showTab(tab) }, tab.name);
  tab.panel = make("section", { id: tab.id, role: "tabpanel", "aria-labelledby": "tab-" + tab.id,
    hidden: true });
  tab.button.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const there = TABS.filter(other => !other.button.hidden);
    if (step) showTab(there[(there.indexOf(tab) + step + there.length) % there.length], true);
  });
  TABS.push(tab);
  $("tabs").append(tab.button);
  $("panels").append(tab.panel);
  tab.build(tab.panel, tab);
}

// A form whose answer, or error, stands below it. run() gives the elements of the answer.
function addForm(tab, fields, action, run) {
  const error = make("p", { className: "error", role: "alert" });
  const result = make("div", { "aria-live": "polite" });
  const button = make("button", { type: "submit", className: "primary" }, action);
  const form = make("form", {}, ...fields, make("div", { className: "row" }, button, ...(tab.extra || [])));
  form.addEventListener("submit", async event => {
    event.preventDefault();
    error.textContent = "";
    result.replaceChildren();
    button.disabled = true;
    try {
      result.replaceChildren(...await run());
    } catch (problem) {
      if (problem.name !== "AbortError") error.textContent = problem.message;
    }
    button.disabled = false;
  });
  tab.panel.append(form, error, result);
  return { form, result, error };
}

function modelSelect(tab) {
  tab.select = make("select", { required: true });
  return labelled("Model", tab.select);
}

// A text that can be typed, dropped, opened or taken from a sample.
function textField(title, sample, attributes = {}) {
  const area = make("textarea", { required: true, spellcheck: false, ...attributes });
  const count = make("span", { className: "muted", "aria-live": "polite" });
  const file = make("input", { type: "file", "aria-label": "Open a file for: " + title });
  const set = text => { area.value = text; area.dispatchEvent(new Event("input")); };
  area.addEventListener("input", () => {
    count.textContent = area.value ? area.value.length.toLocaleString("en") + " characters" : "";
  });
  file.addEventListener("change", async () => file.files.length && set(await file.files[0].text()));
  const box = make("div", { className: "drop" }, labelled(title, area),
    make("div", { className: "row" },
      make("button", { type: "button", onclick: () => set(typeof sample === "function" ? sample() : sample) }, "Sample"),
      file, count));
  takeDrops(box, async dropped => set(await dropped.text()));
  return { area, box };
}

function takeDrops(box, take) {
  for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    box.addEventListener(name, event => {
      event.preventDefault();
      box.classList.toggle("over", over);
      if (name === "drop" && event.dataTransfer.files.length) take(event.dataTransfer.files[0], event.dataTransfer);
    });
  }
}

const pause = () => new Promise(resolve => setTimeout(resolve));

async function timed(promise) {
  const begin = performance.now();
  const answer = await (await promise).json();
  return [answer, (performance.now() - begin) / 1000];
}
