// The tab that finds where in a folder a question is answered.
const SEARCH_SAMPLE = { question: "what happens to a request that finds the queue full", files: {
  "admission.py": `def admit(request, queue):
    """Refuses a request at once when the waiting line is full, and says when to come back."""
    if queue.predicted_seconds > queue.limit:
        raise Refused(retry_after=queue.predicted_seconds - queue.limit)
    queue.append(request)
`,
  "tokenizer.py": `def split_words(text):
    """Cuts a text into words; punctuation stands alone."""
    return re.findall(r"\\w+|[^\\w\\s]", text)
`,
  "picture.py": `def shrink(picture, longest):
    """A copy whose longer side has at most \`longest\` pixels."""
    scale = min(1, longest / max(picture.size))
    return picture.resize([round(side * scale) for side in picture.size])
`,
  "harbour.md": `# The harbour

Grain leaves on Mondays; containers are counted at the gate.
`,
} };
const MOST_SHOWN = 10;
const BY_WORDS = "words alone";
const VECTORS_AT_ONCE = 64;

// Vectors of passages and of questions from one model; those of passages are kept with the file, by model.
class Embedder {
  constructor(model) {
    this.model = model;
    this.prompts = {};
  }

  async ask(body) {
    const answer = await (await post("/v1/embeddings", { model: this.model.id, encoding_format: "base64", ...body })).json();
    return answer.data.map(one =>
      new Float32Array(Uint8Array.from(atob(one.embedding), byte => byte.charCodeAt(0)).buffer));
  }

  // The first of the names under which the model has a prompt; undefined: it has none of them.
  async promptOf(names) {
    for (const name of names) {
      if (await this.ask({ input: "a", prompt_name: name }).then(() => true, problem => {
        if (!/prompt_name/.test(problem.message)) throw problem;
      })) return name;
    }
  }

  async question(text) {
    this.prompts.query ??= [await this.promptOf(["query"])];
    return (await this.ask({ input: text, prompt_name: this.prompts.query[0] }))[0];
  }

  // One pass over the text from the first of the passages to the last, and each by itself where that is refused.
  async passages(text, passages) {
    this.prompts.document ??= [await this.promptOf(["document", "passage", "corpus"])];
    const prompt_name = this.prompts.document[0];
    const begin = passages[0].begin;
    const place = at => codePoints(text.slice(begin, at));
    const chunks = passages.map(one => [place(one.begin), place(one.end)]);
    try {
      return await this.ask({ input: text.slice(begin, passages.at(-1).end), chunks, prompt_name });
    } catch (problem) {
      if (!/chunk|pooling|longer than|truncate/.test(problem.message)) throw problem;
    }
    return this.ask({ input: passages.map(one => text.slice(one.begin, one.end)), prompt_name, truncate: true });
  }

  async read(file) {
    file.vectors ??= new Map();
    if (file.vectors.has(this.model.id)) return;
    const vectors = [];
    const most = 3 * Math.max(this.model.max_tokens, 512);
    for (let from = 0, to; from < file.passages.length; from = to) {
      to = from + 1;
      while (to < file.passages.length && to - from < VECTORS_AT_ONCE &&
             file.passages[to].end - file.passages[from].begin < most) ++to;
      vectors.push(...await this.passages(file.text, file.passages.slice(from, to)));
    }
    file.vectors.set(this.model.id, vectors);
  }
}

const codePoints = text => text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length || 0);

// The best places of the texts, [{file, passage, score}]; `model`: null goes by words alone. `stopped`: whether the
// user wants no more vectors; then an Error.
async function searchTexts(texts, question, model, told, stopped) {
  const stems = questionStems(question);
  if (!stems.length) throw new Error("The question has no word to look for.");
  for (const [i, file] of texts.entries()) {
    if (i % 20 === 0) await pause();
    file.passages ??= passagesOf(file.text);
    file.counted ??= file.passages.map(one => countWords(file.path + "\n" + file.text.slice(one.begin, one.end)));
  }
  const places = texts.flatMap(file => file.passages.map((passage, i) => ({ file, passage, i })));
  if (!places.length) throw new Error("No text in these files.");
  let scores = bm25(texts.flatMap(file => file.counted), stems);
  if (model) {
    const embedder = new Embedder(model);
    const asked = await embedder.question(question);
    for (const [i, file] of texts.entries()) {
      if (stopped()) throw new Error("Stopped; what was read so far is kept for the next question.");
      told(`${model.id} reads: ${i} of ${texts.length} files`);
      await embedder.read(file);
    }
    const cosines = zScores(places.map(({ file, i }) => cosine(asked, file.vectors.get(model.id)[i])));
    scores = zScores(scores).map((score, i) => score + cosines[i]);
  }
  return places.map((place, i) => ({ ...place, score: scores[i] })).sort((a, b) => b.score - a.score);
}

function showPlace({ file, passage, score }, stems) {
  const text = make("pre", { tabIndex: 0 });
  // Words of the question stand out.
  for (const part of file.text.slice(passage.begin, passage.end).split(/([\p{L}\p{N}\p{M}]+)/u)) {
    text.append(wordsOf(part).some(word => stems.includes(stem(word))) ? make("mark", {}, part) : part);
  }
  return make("article", { className: "place" }, make("h3", {},
    `${file.path}:${passage.first}-${passage.last} `, make("span", { className: "muted" }, score.toFixed(2))), text);
}

TABS_TO_ADD.push({ name: "Search", fits: null, build(panel, tab) {
  let texts = [];
  const state = make("span", { className: "muted", "aria-live": "polite" }, "No files yet.");
  const told = words => { state.textContent = words; };
  let taking = 0, reading = false;
  // Takes what `files` promises, unless other files were taken meanwhile.
  const take = async (files, from) => {
    const mine = ++taking;
    view.error.textContent = "";
    told("Reading the files …");
    texts = [];
    reading = true;
    try {
      const read = await readTexts(await files, words => mine === taking && told(words));
      if (mine !== taking) return;
      texts = read.texts;
      told(`${texts.length} text files${from}${read.left}`);
    } catch (problem) {
      if (mine !== taking) return;
      told("No files.");
      view.error.textContent = problem.message;
    } finally {
      if (mine === taking) reading = false;
    }
  };
  const question = make("input", { required: true, size: 50, placeholder: "where is …" });
  const models = make("select");
  const pick = (title, properties) => {
    const file = make("input", { type: "file", multiple: true, "aria-label": title, ...properties });
    file.addEventListener("change", () => file.files.length && take((async () => openedFiles(file.files))(), ""));
    return labelled(title, file);
  };
  const server = make("button", { type: "button", hidden: true }, "The server's folder");
  const openServer = async () => {
    const before = taking;
    const listed = await serverFiles();
    server.hidden = !listed;
    // Files that were dropped meanwhile stay.
    if (listed && before === taking) await take(listed.files, ` of ${listed.folder}${listed.more ? ", more are left out" : ""}`);
  };
  server.addEventListener("click", () => openServer().catch(problem => { view.error.textContent = problem.message; }));
  const sample = make("button", { type: "button", onclick: () => {
    question.value = SEARCH_SAMPLE.question;
    ++taking;
    reading = false;
    texts = Object.entries(SEARCH_SAMPLE.files).map(([path, text]) => ({ path, text }));
    told(`${texts.length} text files of the sample`);
  } }, "Sample");
  const box = make("div", { className: "drop" }, make("div", { className: "row" }, sample, server,
    pick("Folder", { webkitdirectory: true }), pick("Files", {}),
    make("span", { className: "muted" }, "or drop them here; they stay in this page, the model reads their text"),
    ), state);
  takeDrops(box, (first, transfer) => take(droppedFiles(transfer), ""));
  const halt = make("button", { type: "button", disabled: true }, "Stop");
  let stopped = false;
  halt.addEventListener("click", () => { stopped = true; });
  tab.extra = [halt];
  const view = addForm(tab, [box, make("div", { className: "row" }, labelled("Question", question),
    labelled("Model", models))], "Search", async () => {
    if (reading) throw new Error("The files are still being read.");
    if (!texts.length) throw new Error("Drop files first, or take the sample.");
    const before = state.textContent;
    const model = MODELS.find(one => one.id === models.value) || null;
    const searched = texts;
    stopped = false;
    halt.disabled = false;
    try {
      const begin = performance.now();
      const places = await searchTexts(searched, question.value, model, told, () => stopped);
      const seconds = (performance.now() - begin) / 1000;
      return [...places.slice(0, MOST_SHOWN).filter(place => model || place.score > 0).map(
        place => showPlace(place, questionStems(question.value))),
      make("p", { className: "muted" }, `${places.length} places of ${searched.length} files compared by ${
        model ? `words and ${model.id}` : "words"} · here ${milliseconds(seconds)}`)];
    } finally {
      told(before);
      halt.disabled = true;
    }
  });
  let picked = false;
  models.addEventListener("change", () => { picked = true; });
  tab.filled = () => {
    const fitting = MODELS.filter(serves("embedding"));
    const choices = [BY_WORDS, ...fitting.map(model => model.id)];
    const preferred = picked && choices.includes(models.value) ? models.value : fitting.find(onlyEmbeds)?.id ?? BY_WORDS;
    models.replaceChildren(...choices.map(id => new Option(id, id, false, id === preferred)));
  };
  let asked = false;
  tab.shown = () => {
    if (!asked) openServer().catch(() => { asked = false; });
    asked = true;
  };
} });
