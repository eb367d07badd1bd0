// Tabs about the server itself: estimates, models, metrics; and the start of the page.
TABS_TO_ADD.push({ name: "Estimate", fits: null, build(panel, tab) {
  tab.select = make("select", { required: true });
  const tokens = number(4096, { min: 1 });
  const width = number(1240, { min: 1 });
  const height = number(1754, { min: 1 });
  const isPicture = () => {
    const model = MODELS.find(one => one.id === tab.select.value);
    return model && serves("object-detection", "image-classification")(model);
  };
  addForm(tab, [make("div", { className: "row" }, labelled("Model", tab.select), labelled("Tokens", tokens),
    labelled("or picture of width", width), labelled("and height", height))], "Estimate", async () => {
    const body = isPicture()
      ? { model: tab.select.value, width: Number(width.value), height: Number(height.value) }
      : { model: tab.select.value, num_tokens: Number(tokens.value) };
    const [answer] = await timed(post("/v1/estimate", body));
    const card = (name, value) => make("div", { className: "card" }, make("b", {}, value), name);
    return [make("div", { className: "cards" }, card("compute", milliseconds(answer.seconds)),
      card("wait in front of it", milliseconds(answer.queue_seconds)),
      card("workspace, exact", bytes(answer.workspace_bytes)), card("state, exact", bytes(answer.state_bytes)),
      card("fits", answer.fits ? "yes" : "no")),
    make("p", { className: "error" }, answer.reason), codeFor("/v1/estimate", body)];
  });
} });

TABS_TO_ADD.push({ name: "Models", fits: null, build(panel, tab) {
  tab.list = make("div");
  panel.append(make("h2", {}, "Models"), tab.list);
  tab.shown = () => refresh();
} });

function controlOf(model) {
  const action = model.state === "READY" ? "unload" : "load";
  const button = make("button", { type: "button", "aria-label": `${action} ${model.id}` }, action);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await request(`/v2/repository/models/${encodeURIComponent(model.id)}/${action}`, { method: "POST", body: "{}" });
      $("notice").textContent = "";
    } catch (problem) {
      $("notice").textContent = problem.message;
    }
    refresh();
  });
  return button;
}

function listModels(panel) {
  panel.replaceChildren(table("Models", ["Name", "State", "Tasks", "Family", "Type", "Device", "Limit",
    "Parameters", "Memory", ""], MODELS.map(model => [model.id,
    make("span", { className: "state " + (model.state === "READY" ? "good" : "bad"), title: model.reason },
      model.state.toLowerCase()),
    model.tasks.join(", ") || model.task, model.family, model.dtype, model.device,
    model.max_tokens ? model.max_tokens + " tokens" : model.max_pixels ? short(model.max_pixels, ["", " k", " M"]) + "pixels" : "",
    short(model.parameters, ["", " k", " M", " G"]), bytes(model.memory_bytes), controlOf(model)]), true));
}

// Sums of the samples of a metric whose labels hold all of `wanted`.
function sum(text, name, wanted = "") {
  let total = 0;
  for (const line of text.split("\n")) {
    if ((line.startsWith(name + "{") || line.startsWith(name + " ")) && line.includes(wanted)) {
      total += Number(line.slice(line.lastIndexOf(" ") + 1));
    }
  }
  return total;
}

TABS_TO_ADD.push({ name: "Metrics", fits: null, build(panel, tab) {
  const cards = make("div", { className: "cards" });
  panel.append(make("h2", {}, "At a glance"), cards,
    make("p", { className: "muted" }, "All of them: ", make("a", { href: "metrics" }, "/metrics")));
  let before = null;
  tab.poll = async () => {
    const text = await (await request("/metrics")).text();
    const now = { time: performance.now() / 1000, calls: sum(text, "longview_request_duration_seconds_count"),
      tokens: sum(text, "longview_tokens_total") };
    const rate = name => before ? (now[name] - before[name]) / (now.time - before.time) : 0;
    const shown = [["requests", now.calls], ["requests a second", rate("calls").toFixed(1)],
      ["tokens", short(now.tokens, ["", " k", " M", " G"])], ["tokens a second", short(rate("tokens"), ["", " k", " M"])],
      ["work that waits", milliseconds(sum(text, "longview_queued_work_seconds"))],
      ["cache in use", bytes(sum(text, "longview_generation_cache_bytes"))],
      ["resident memory", bytes(sum(text, "process_resident_memory_bytes"))]];
    before = now;
    cards.replaceChildren(...shown.map(([name, value]) =>
      make("div", { className: "card" }, make("b", {}, String(value)), name)));
  };
  tab.shown = () => tab.poll().catch(problem => { $("notice").textContent = problem.message; });
} });

async function health() {
  for (const name of ["live", "ready"]) {
    const well = await fetch(name + "z").then(response => response.ok, () => false);
    $(name).className = "state " + (well ? "good" : "bad");
    $(name).textContent = (well ? "" : "not ") + name;
  }
}

// Whether the models are known. No tab is shown before: which there are depends on them.
async function refresh() {
  try {
    MODELS = (await call("/v1/models")).data;
    $("notice").textContent = "";
  } catch (problem) {
    $("notice").textContent = problem.message;
    $("waiting").hidden = true;
    return false;
  }
  for (const tab of TABS) {
    if (tab.fits) tab.button.hidden = !MODELS.some(tab.fits);
    fillModels(tab);
    if (tab.list) listModels(tab.list);
    if (tab.filled) tab.filled();
  }
  if ($("tabs").hidden) {
    $("waiting").hidden = true;
    $("tabs").hidden = $("panels").hidden = false;
    const wanted = TABS.find(tab => "#" + tab.id === location.hash && !tab.button.hidden);
    showTab(wanted || TABS.find(tab => !tab.button.hidden));
  }
  return true;
}

function start() {
  TABS_TO_ADD.forEach(addTab);
  $("key").addEventListener("change", refresh);
  fetch("version").then(response => response.json()).then(answer => { $("version").textContent = answer.version; });
  health();
  refresh();
  setInterval(() => {
    health();
    const shown = TABS.find(tab => !tab.panel.hidden);
    if (shown && shown.poll) shown.shown();
  }, 5000);
}
