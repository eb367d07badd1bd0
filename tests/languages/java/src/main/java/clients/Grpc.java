package clients;

import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Status;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.longview.v1.ClassifyRequest;
import org.longview.v1.EmbedRequest;
import org.longview.v1.GenerateRequest;
import org.longview.v1.ListModelsRequest;
import org.longview.v1.ModelServiceGrpc;
import org.longview.v1.RerankRequest;
import org.longview.v1.RerankResponse;
import org.longview.v1.TextServiceGrpc;

/** grpc-java with the stubs that protoc makes of proto/. */
final class Grpc implements Main.Client {
  private final ManagedChannel channel;
  private final TextServiceGrpc.TextServiceBlockingStub texts;
  private final Main.Inputs inputs;

  Grpc(String address, Main.Inputs inputs) {
    this.channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
    this.texts = TextServiceGrpc.newBlockingStub(channel);
    this.inputs = inputs;
  }

  private Object embed(String model) {
    List<Object> vectors = new ArrayList<>();
    for (String text : inputs.list("texts")) {
      EmbedRequest request = EmbedRequest.newBuilder().setModel(model).setText(text).build();
      vectors.add(texts.embed(request).getEmbeddingList());
    }
    return vectors;
  }

  private Object rerank() {
    RerankRequest request =
        RerankRequest.newBuilder()
            .setModel("reranker")
            .setQuery(inputs.text("query"))
            .addAllDocuments(inputs.list("documents"))
            .build();
    RerankResponse answer = texts.rerank(request);
    return answer.getResultsList().stream()
        .map(entry -> List.of(entry.getIndex(), entry.getRelevanceScore()))
        .collect(Collectors.toList());
  }

  private Object classify() {
    ClassifyRequest request =
        ClassifyRequest.newBuilder()
            .setModel("code-language")
            .setText(inputs.list("sources").get(0))
            .build();
    return texts.classify(request).getLabelsList().stream()
        .map(label -> Map.of("label", label.getName(), "score", label.getScore()))
        .collect(Collectors.toList());
  }

  private Object stream() {
    GenerateRequest request =
        GenerateRequest.newBuilder()
            .setModel("code-lm")
            .setText(inputs.text("prompt"))
            .setMaxTokens(inputs.number("max_tokens"))
            .setTemperature(0)
            .build();
    StringBuilder text = new StringBuilder();
    texts.generate(request).forEachRemaining(piece -> text.append(piece.getText()));
    return text.toString();
  }

  private Object models() {
    return ModelServiceGrpc.newBlockingStub(channel)
        .listModels(ListModelsRequest.getDefaultInstance())
        .getModelsList()
        .stream()
        .map(model -> model.getName())
        .collect(Collectors.toList());
  }

  @Override
  public Map<String, Callable<Object>> cases() {
    Map<String, Callable<Object>> cases = new LinkedHashMap<>();
    cases.put("embed", () -> embed("embedder"));
    cases.put("rerank", this::rerank);
    cases.put("classify", this::classify);
    cases.put("stream", this::stream);
    cases.put("models", this::models);
    cases.put("unknown_model", () -> embed("nobody"));
    cases.put("lacking_task", () -> embed("code-lm"));
    return cases;
  }

  @Override
  public Integer status(Throwable error) {
    return Status.fromThrowable(error).getCode().value();
  }
}
