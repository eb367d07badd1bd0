// Calls a server with JavaScript's stock clients at their defaults:
//   node clients.mjs CLIENT HTTP_URL [CASE] <inputs.json
// Prints an object: the answer of each case, or {error: {status, message}}.
import { readFileSync } from "node:fs";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { InferenceClient } from "@huggingface/inference";
import { OpenAI as LangChainOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { embedMany, generateText } from "ai";
import { CohereClient, CohereClientV2 } from "cohere-ai";
import OpenAI from "openai";

const [name, url, only] = process.argv.slice(2);
const inputs = JSON.parse(readFileSync(0, "utf8"));

function openai() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "-" });
  const embed = async (model, more) => {
    const answer = await client.embeddings.create({ model, input: inputs.texts, ...more });
    return answer.data.map((entry) => entry.embedding);
  };
  const prompt = (model) => ({
    model,
    prompt: inputs.prompt,
    max_tokens: inputs.max_tokens,
    temperature: 0,
  });
  return {
    embed: () => embed("embedder"),
    embed_short: () => embed("embedder", { dimensions: inputs.dimensions }),
    complete: async () => (await client.completions.create(prompt("code-lm"))).choices[0].text,
    stream: async () => {
      const pieces = [];
      for await (const chunk of await client.completions.create({
        ...prompt("code-lm"),
        stream: true,
      })) {
        pieces.push(chunk.choices[0].text);
      }
      return pieces.join("");
    },
    models: async () => {
      const ids = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },
    unknown_model: () => embed("nobody"),
    lacking_task: () => client.completions.create(prompt("embedder")),
  };
}

function huggingface() {
  const client = new InferenceClient();
  const at = (path, model) => ({ endpointUrl: `${url}${path}?model=${model}` });
  const embed = (model, more) =>
    client.featureExtraction({ ...at("/embed", model), inputs: inputs.texts, ...more });
  return {
    embed: () => embed("embedder"),
    embed_settings: () => embed("embedder", { parameters: { normalize: true, truncate: true } }),
    similarity: () =>
      client.sentenceSimilarity({
        ...at("/similarity", "embedder"),
        inputs: { source_sentence: inputs.query, sentences: inputs.documents },
      }),
    // This client reads the first of several answers, so the text is the one element of a list of inputs.
    classify: () =>
      client.textClassification({ ...at("/predict", "code-language"), inputs: [[inputs.sources[0]]] }),
    zero_shot_refused: () =>
      client.zeroShotClassification({
        ...at("/predict", "code-language"),
        inputs: inputs.query,
        parameters: { candidate_labels: ["code", "prose"] },
      }),
    unknown_model: () => embed("nobody"),
    lacking_task: () => embed("code-lm"),
  };
}

function cohere() {
  const first = new CohereClient({ token: "-", environment: url });
  const second = new CohereClientV2({ token: "-", environment: url });
  const { query, documents } = inputs;
  const pairs = (answer) => answer.results.map((entry) => [entry.index, entry.relevanceScore]);
  const embed = async (inputType) => {
    const answer = await second.embed({
      model: "embedder",
      texts: inputs.texts,
      inputType,
      embeddingTypes: ["float"],
    });
    return answer.embeddings.float;
  };
  return {
    rerank: async () => pairs(await second.rerank({ model: "reranker", query, documents })),
    rerank_first: async () => pairs(await first.rerank({ model: "reranker", query, documents })),
    rerank_settings: async () =>
      pairs(
        await second.rerank({
          model: "reranker",
          query,
          documents,
          topN: 2,
          maxTokensPerDoc: 4096,
          priority: 0,
        }),
      ),
    embed: () => embed("search_document"),
    embed_query: () => embed("search_query"),
    unknown_model: () => second.rerank({ model: "nobody", query, documents }),
    lacking_task: () => second.rerank({ model: "code-lm", query, documents }),
  };
}

function langchain() {
  const configuration = { baseURL: `${url}/v1` };
  const embedder = (model, more) =>
    new OpenAIEmbeddings({ model, apiKey: "-", configuration, ...more });
  const writer = (model) =>
    new LangChainOpenAI({
      model,
      apiKey: "-",
      configuration,
      temperature: 0,
      maxTokens: inputs.max_tokens,
    });
  return {
    embed: () => embedder("embedder", { stripNewLines: false }).embedDocuments(inputs.texts),
    embed_one_line: () => embedder("embedder").embedDocuments(inputs.texts),
    embed_short: () =>
      embedder("embedder", {
        dimensions: inputs.dimensions,
        stripNewLines: false,
      }).embedDocuments(inputs.texts),
    complete: () => writer("code-lm").invoke(inputs.prompt),
    stream: async () => {
      const pieces = [];
      for await (const piece of await writer("code-lm").stream(inputs.prompt)) pieces.push(piece);
      return pieces.join("");
    },
    unknown_model: () => embedder("nobody").embedDocuments(inputs.texts),
    lacking_task: () => writer("embedder").invoke(inputs.prompt),
  };
}

function vercel() {
  const provider = createOpenAICompatible({
    name: "longview",
    baseURL: `${url}/v1`,
    apiKey: "-",
  });
  const embed = async (model) => {
    const answer = await embedMany({ model: provider.embeddingModel(model), values: inputs.texts });
    return answer.embeddings;
  };
  const complete = async (model) => {
    const answer = await generateText({
      model: provider.completionModel(model),
      prompt: inputs.prompt,
      temperature: 0,
      maxOutputTokens: inputs.max_tokens,
    });
    return answer.text;
  };
  return {
    embed: () => embed("embedder"),
    complete_as_user: () => complete("code-lm"),
    unknown_model: () => embed("nobody"),
    lacking_task: () => complete("embedder"),
  };
}

const answers = {};
for (const [key, call] of Object.entries({ openai, huggingface, cohere, langchain, vercel }[name]())) {
  if (only && only !== key) continue;
  try {
    answers[key] = await call();
  } catch (error) {
    const status = error.status ?? error.statusCode ?? error.httpResponse?.status ?? null;
    const body = error.httpResponse?.body ?? error.body;
    answers[key] = { error: { status, message: `${error.message} ${JSON.stringify(body)}` } };
  }
}
console.log(JSON.stringify(answers));
