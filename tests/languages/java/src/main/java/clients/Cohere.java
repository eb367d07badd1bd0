package clients;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.cohere.CohereEmbeddingModel;
import dev.langchain4j.model.cohere.CohereScoringModel;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/** langchain4j-cohere. */
final class Cohere implements Main.Client {
  private final String url;
  private final Main.Inputs inputs;

  Cohere(String url, Main.Inputs inputs) {
    this.url = url + "/v1/";
    this.inputs = inputs;
  }

  static List<TextSegment> segments(List<String> texts) {
    return texts.stream().map(TextSegment::from).collect(Collectors.toList());
  }

  static Object vectors(List<Embedding> embeddings) {
    return embeddings.stream().map(Embedding::vectorAsList).collect(Collectors.toList());
  }

  private Object score(String model) {
    return CohereScoringModel.builder()
        .baseUrl(url)
        .apiKey("-")
        .modelName(model)
        .build()
        .scoreAll(segments(inputs.list("documents")), inputs.text("query"))
        .content();
  }

  private Object embed(String kind) {
    return vectors(
        CohereEmbeddingModel.builder()
            .baseUrl(url)
            .apiKey("-")
            .modelName("embedder")
            .inputType(kind)
            .build()
            .embedAll(segments(inputs.list("texts")))
            .content());
  }

  @Override
  public Map<String, Callable<Object>> cases() {
    Map<String, Callable<Object>> cases = new LinkedHashMap<>();
    cases.put("score", () -> score("reranker"));
    cases.put("embed", () -> embed(null));
    cases.put("embed_query", () -> embed("search_query"));
    cases.put("unknown_model", () -> score("nobody"));
    cases.put("lacking_task", () -> score("code-lm"));
    return cases;
  }

  @Override
  public Integer status(Throwable error) {
    return null; // Its exceptions have the status in their message alone.
  }
}
