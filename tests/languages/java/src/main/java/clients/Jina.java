package clients;

import dev.langchain4j.model.jina.JinaEmbeddingModel;
import dev.langchain4j.model.jina.JinaScoringModel;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;

/** langchain4j-jina. */
final class Jina implements Main.Client {
  private final String url;
  private final Main.Inputs inputs;

  Jina(String url, Main.Inputs inputs) {
    this.url = url;
    this.inputs = inputs;
  }

  // The client's paths are rerank here and v1/embeddings below.
  private Object score(String model) {
    return JinaScoringModel.builder()
        .baseUrl(url + "/v1/")
        .apiKey("-")
        .modelName(model)
        .build()
        .scoreAll(Cohere.segments(inputs.list("documents")), inputs.text("query"))
        .content();
  }

  private Object embed(String model) {
    return Cohere.vectors(
        JinaEmbeddingModel.builder()
            .baseUrl(url)
            .apiKey("-")
            .modelName(model)
            .build()
            .embedAll(Cohere.segments(inputs.list("texts")))
            .content());
  }

  @Override
  public Map<String, Callable<Object>> cases() {
    Map<String, Callable<Object>> cases = new LinkedHashMap<>();
    cases.put("score", () -> score("reranker"));
    cases.put("embed", () -> embed("embedder"));
    cases.put("unknown_model", () -> embed("nobody"));
    cases.put("lacking_task", () -> score("code-lm"));
    return cases;
  }

  @Override
  public Integer status(Throwable error) {
    return null; // Its exceptions have the status in their message alone.
  }
}
