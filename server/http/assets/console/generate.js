// The tab of generation, token by token.

// The data of each server-sent event of an answer.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      if (text.startsWith("data: ")) yield text.slice(6, end);
    }
  }
}

// What a small model of source text knows by heart.
const GENERATE_SAMPLE = "# Licensed under the Apache License, Version 2.0 (the \"License\");\n" +
  "# you may not use this file except in compliance with the License.\n# You may ";

TABS_TO_ADD.push({ name: "Generate", fits: serves("text-generation", "text2text-generation"), build(panel, tab) {
  const prompt = textField("Prompt", GENERATE_SAMPLE);
  const tokens = number(84, { min: 1 });
  const temperature = number(0, { min: 0, step: 0.05 });
  const stop = make("input", { size: 10, placeholder: "none" });
  const halt = make("button", { type: "button", disabled: true }, "Stop");
  const speed = make("span", { className: "muted", "aria-live": "polite" });
  let running = null;
  halt.addEventListener("click", () => running.abort());
  tab.extra = [halt, speed];
  const view = addForm(tab, [make("div", { className: "row" }, modelSelect(tab), labelled("Tokens", tokens),
    labelled("Temperature", temperature), labelled("Stop at", stop)), prompt.box], "Generate", async () => {
    const body = { model: tab.select.value, prompt: prompt.area.value, max_tokens: Number(tokens.value),
      temperature: Number(temperature.value), stop: stop.value || null, stream: true,
      stream_options: { include_usage: true } };
    const output = make("div", { className: "output" }, make("span", { className: "prompt" }, body.prompt));
    const code = codeFor("/v1/completions", { ...body, stream: false, stream_options: undefined });
    view.result.replaceChildren(output);
    running = new AbortController();
    halt.disabled = false;
    try {
      await follow(await post("/v1/completions", body, running.signal), output, speed);
    } catch (problem) {
      if (problem.name !== "AbortError") throw problem;
    } finally {
      halt.disabled = true;
    }
    return [output, code];
  });
} });

async function follow(response, output, speed) {
  const begin = performance.now();
  let pieces = 0;
  for await (const data of events(response)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error) throw new Error(errorText(event.error));
    for (const choice of event.choices) output.append(choice.text);
    pieces += event.choices.length;
    const seconds = (performance.now() - begin) / 1000;
    speed.textContent = event.usage
      ? `${event.usage.prompt_tokens} tokens read (${event.usage.prompt_tokens_details.cached_tokens
        } from the cache), ${event.usage.completion_tokens} written in ${seconds.toFixed(1)} s`
      : `${pieces} pieces, ${(pieces / seconds).toFixed(0)} per second`;
  }
}
