// Tabs that read a text: classes, tags, answers, masks.
const CODE_SAMPLE = `#include <vector>

// Sum of all numbers.
int Sum(const std::vector<int>& numbers) {
  int sum = 0;
  for (const int number : numbers) sum += number;
  return sum;
}
`;
const LIST_SAMPLE = "[MAX 4 3 [MIN 2 3 ] 1 0 [MEDIAN 1 5 8 9 2 ] ]";
const PROSE_SAMPLE = "The lease between Harbor Freight Ltd. and the City of Rotterdam was signed on 3 May " +
  "2021. It ends after twelve years, unless either party gives notice in writing six months before.";

// A text that the chosen model can make something of.
const textSample = tab => () => /listops/.test(tab.select.value) ? LIST_SAMPLE : CODE_SAMPLE;

// The text with marks around [start, end) of each span, which count code points.
function marked(text, spans, name) {
  const points = Array.from(text);
  const out = make("pre");
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < at) continue;
    out.append(points.slice(at, span.start).join(""),
      make("mark", { title: span.score.toFixed(4) }, points.slice(span.start, span.end).join(""),
        name(span) ? make("small", {}, name(span)) : null));
    at = span.end;
  }
  out.append(points.slice(at).join(""));
  return out;
}

addTextTab("Classify", serves("text-classification"), "/v1/classify", textSample,
  tab => ({ top_k: labelled("Labels", number(8, { min: 1 })) }),
  answer => [scores("Labels by score", answer.labels)]);

addTextTab("Tags", serves("token-classification"), "/v1/classify-tokens", () => PROSE_SAMPLE, () => ({}),
  (answer, body) => [marked(body.text, answer.entities, entity => entity.label),
    table("Entities", ["Label", "Text", "Score"],
      answer.entities.map(entity => [entity.label, entity.text, entity.score]))]);

addTextTab("Question", serves("question-answering"), "/v1/answer", () => PROSE_SAMPLE,
  () => ({ question: labelled("Question", make("input", { required: true, size: 40,
    value: "When was the lease signed?" })), top_k: labelled("Answers", number(3, { min: 1 })) }),
  (answer, body) => [marked(body.text, answer.answers.slice(0, 1), () => ""),
    table("Answers", ["Answer", "Probability", "Score"],
      answer.answers.map(one => [one.text, one.probability, one.score]))]);

addTextTab("Fill mask", serves("fill-mask"), "/v1/fill-mask",
  () => "The capital of France is <mask>.", () => ({ top_k: labelled("Candidates", number(5, { min: 1 })) }),
  answer => answer.masks.map(mask => scores("Candidates of the mask at token " + mask.position,
    mask.candidates.map(one => ({ name: one.token, score: Math.exp(one.logprob) })))));

// `options(tab)`: labelled inputs by the name of the field; `show(answer, body)`: elements.
function addTextTab(name, fits, path, sample, options, show) {
  TABS_TO_ADD.push({ name, fits, build(panel, tab) {
    const model = modelSelect(tab);
    const text = textField("Text", sample(tab));
    const given = options(tab);
    const truncate = make("input", { type: "checkbox" });
    addForm(tab, [make("div", { className: "row" }, model, ...Object.values(given),
      labelled("Cut if too long", truncate)), text.box], name, async () => {
      const body = { model: tab.select.value, text: text.area.value, truncate: truncate.checked };
      for (const [field, label] of Object.entries(given)) {
        const input = label.querySelector("input");
        body[field] = input.type === "number" ? Number(input.value) : input.value;
      }
      const [answer, seconds] = await timed(post(path, body));
      return [...show(answer, body), timing(answer, seconds), codeFor(path, body)];
    });
  } });
}
