// Tabs that compare texts: embeddings and reranking.
const lines = area => area.value.split("\n").map(line => line.trim()).filter(Boolean);
// The first is about what the third is about, in other words.
const EMBED_SAMPLE = ["def read_lines(path): return open(path).read().splitlines()",
  "int Sum(const std::vector<int>& numbers) { int sum = 0; for (int n : numbers) sum += n; return sum; }",
  "def load_lines(name): return list(open(name, encoding=\"utf-8\"))",
  "The harbour was dredged in winter, and grain leaves on Mondays."].join("\n");
const RERANK_SAMPLE = ["Notice must be given in writing.", "The agreement ends after twelve years.",
  "The harbour was dredged in winter."].join("\n");

const isReranker = serves("rerank");
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b) || 1);

TABS_TO_ADD.push({ name: "Embed", fits: serves("embedding"), prefers: onlyEmbeds, build(panel, tab) {
  const text = textField("Texts, one a line; the first is compared with the others", EMBED_SAMPLE);
  addForm(tab, [make("div", { className: "row" }, modelSelect(tab)), text.box], "Embed", async () => {
    const body = { model: tab.select.value, input: lines(text.area) };
    const [answer, seconds] = await timed(post("/v1/embeddings", body));
    const vectors = answer.data.map(one => one.embedding);
    const [first, ...others] = vectors.map((vector, i) => [body.input[i], cosine(vectors[0], vector)]);
    const rows = [first, ...others.sort((a, b) => b[1] - a[1])].map(([line, similarity]) =>
      [line, similarity, bar(similarity)]);
    return [table("Cosine with the first text", ["Text", "Cosine", ""], rows),
      make("p", { className: "muted" }, `${vectors[0].length} dimensions · ${
        answer.usage.prompt_tokens} tokens · here ${milliseconds(seconds)}`),
      codeFor("/v1/embeddings", body)];
  });
} });

TABS_TO_ADD.push({ name: "Rerank", fits: isReranker, build(panel, tab) {
  const query = make("input", { required: true, size: 50, value: "How long does the lease run?" });
  const text = textField("Documents, one a line", RERANK_SAMPLE);
  addForm(tab, [make("div", { className: "row" }, modelSelect(tab), labelled("Query", query)), text.box],
    "Rerank", async () => {
      const body = { model: tab.select.value, query: query.value, documents: lines(text.area) };
      const [answer, seconds] = await timed(post("/v1/rerank", body));
      const largest = Math.max(...answer.results.map(one => Math.abs(one.relevance_score)), 1e-9);
      return [table("Documents by relevance", ["Document", "Score", ""], answer.results.map(one =>
        [body.documents[one.index], one.relevance_score, bar(one.relevance_score / largest)])),
        make("p", { className: "muted" }, `here ${milliseconds(seconds)}`), codeFor("/v1/rerank", body)];
    });
} });
