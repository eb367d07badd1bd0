package clients;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.http.StreamResponse;
import com.openai.errors.OpenAIServiceException;
import com.openai.models.completions.Completion;
import com.openai.models.completions.CompletionCreateParams;
import com.openai.models.embeddings.EmbeddingCreateParams;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

/** openai-java. */
final class OpenAi implements Main.Client {
  private final OpenAIClient client;
  private final Main.Inputs inputs;

  OpenAi(String url, Main.Inputs inputs) {
    this.client = OpenAIOkHttpClient.builder().baseUrl(url + "/v1").apiKey("-").build();
    this.inputs = inputs;
  }

  private EmbeddingCreateParams.Builder embedding(String model) {
    return EmbeddingCreateParams.builder()
        .model(model)
        .inputOfArrayOfStrings(inputs.list("texts"));
  }

  private Object embed(EmbeddingCreateParams request) {
    return client.embeddings().create(request).data().stream()
        .map(entry -> entry.embedding())
        .collect(Collectors.toList());
  }

  private CompletionCreateParams completion(String model) {
    return CompletionCreateParams.builder()
        .model(model)
        .prompt(inputs.text("prompt"))
        .maxTokens(inputs.number("max_tokens"))
        .temperature(0.0)
        .build();
  }

  private Object complete(String model) {
    return client.completions().create(completion(model)).choices().get(0).text();
  }

  private Object stream() {
    try (StreamResponse<Completion> pieces =
        client.completions().createStreaming(completion("code-lm"))) {
      return pieces.stream()
          .map(piece -> piece.choices().get(0).text())
          .collect(Collectors.joining());
    }
  }

  private Object models() {
    return client.models().list().autoPager().stream()
        .map(model -> model.id())
        .collect(Collectors.toList());
  }

  @Override
  public Map<String, Callable<Object>> cases() {
    Map<String, Callable<Object>> cases = new LinkedHashMap<>();
    cases.put("embed", () -> embed(embedding("embedder").build()));
    cases.put(
        "embed_short",
        () -> embed(embedding("embedder").dimensions(inputs.number("dimensions")).build()));
    cases.put("complete", () -> complete("code-lm"));
    cases.put("stream", this::stream);
    cases.put("models", this::models);
    cases.put("unknown_model", () -> embed(embedding("nobody").build()));
    cases.put("lacking_task", () -> complete("embedder"));
    return cases;
  }

  @Override
  public Integer status(Throwable error) {
    return error instanceof OpenAIServiceException answer ? answer.statusCode() : null;
  }
}
