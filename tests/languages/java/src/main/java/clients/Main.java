package clients;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/**
 * Calls a server with Java's stock clients at their defaults: {@code Main CLIENT ADDRESS [CASE]
 * <inputs.json}. ADDRESS is a URL for clients of HTTP and host:port for gRPC. Prints an object: the
 * answer of each case, or {@code {"error": {"status", "message"}}}.
 */
public final class Main {
  private Main() {}

  /** Cases of a client in the order in which they run, and how its errors are read. */
  interface Client {
    Map<String, Callable<Object>> cases();

    /** HTTP's status or gRPC's code, null where the client does not say it. */
    Integer status(Throwable error);
  }

  /** Texts and settings of the calls, the same in every language. */
  record Inputs(JsonNode json) {
    String text(String name) {
      return json.get(name).asText();
    }

    int number(String name) {
      return json.get(name).asInt();
    }

    List<String> list(String name) {
      List<String> texts = new ArrayList<>();
      json.get(name).forEach(entry -> texts.add(entry.asText()));
      return texts;
    }
  }

  private static Client client(String name, String address, Inputs inputs) {
    return switch (name) {
      case "openai" -> new OpenAi(address, inputs);
      case "cohere" -> new Cohere(address, inputs);
      case "jina" -> new Jina(address, inputs);
      case "grpc" -> new Grpc(address, inputs);
      default -> throw new IllegalArgumentException(name);
    };
  }

  private static Object error(Client client, Throwable error) {
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("status", client.status(error));
    said.put("message", String.valueOf(error.getMessage()));
    return Map.of("error", said);
  }

  /** Runs the cases and prints their answers. */
  public static void main(String[] arguments) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    Inputs inputs = new Inputs(mapper.readTree(System.in));
    Client client = client(arguments[0], arguments[1], inputs);
    Map<String, Object> answers = new LinkedHashMap<>();
    for (Map.Entry<String, Callable<Object>> one : client.cases().entrySet()) {
      if (arguments.length > 2 && !arguments[2].equals(one.getKey())) {
        continue;
      }
      try {
        answers.put(one.getKey(), one.getValue().call());
      } catch (Exception error) {
        answers.put(one.getKey(), error(client, error));
      }
    }
    System.out.println(mapper.writeValueAsString(answers));
    System.exit(0); // Clients keep threads of their pools.
  }
}
