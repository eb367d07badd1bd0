#include "models/status_macros.h"
#include "server/http/ollama/embed.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "server/api/calls/copies.h"
#include "server/http/embed_inputs.h"
#include "server/http/json/body_error.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

// A body whose texts are not read yet: they go into copies of `like`.
struct OllamaBody {
  Like<EmbedRequest> like;
  json texts;
};

const MemberTable<OllamaBody>& OllamaEmbedTable() {
  using enum MemberOf;
  using Body = OllamaBody;
  static const auto* const table = new MemberTable<OllamaBody>{
      {"model", kOllama, ReadBefore<Body>()},
      {"input", kOllama, Keeps(&Body::texts)},
      {"truncate", kOllama, Reads(+[](Body& b, bool f) { b.like->set_truncate(f); })},
      {"dimensions", kOllama, Reads(+[](Body& b, int32_t n) { b.like->set_dimensions(n); })},
      {"keep_alive", kOllama, NoEffect{}},
      {"options", kOllama, NoEffect{}},
  };
  return *table;
}

const MemberTable<OllamaBody>& OllamaEmbeddingsTable() {
  using enum MemberOf;
  static const auto* const table = new MemberTable<OllamaBody>{
      {"model", kOllama, ReadBefore<OllamaBody>()},
      {"prompt", kOllama, Keeps(&OllamaBody::texts)},
      {"keep_alive", kOllama, NoEffect{}},
      {"options", kOllama, NoEffect{}},
  };
  return *table;
}

const MemberTable<OllamaBody>& TableOf(OllamaRoute route) {
  return route == OllamaRoute::kEmbed ? OllamaEmbedTable() : OllamaEmbeddingsTable();
}

}  // namespace

absl::StatusOr<ListRequest<EmbedRequest>> ParseOllamaEmbed(OllamaRoute route, std::string_view text,
                                                           size_t max_bytes) {
  ASSIGN_OR_RETURN(json object, ParseObject(text, max_bytes));
  const char* const field = route == OllamaRoute::kEmbed ? "input" : "prompt";
  ListRequest<EmbedRequest> list{"", "", {}, field};
  RETURN_IF_ERROR(ReadModelName(object, "", &list.model));
  // Ollama's clients name the tag that a model has without being given one.
  list.model = std::string(absl::StripSuffix(list.model, ":latest"));
  OllamaBody body;
  body.like->set_truncate(true);
  RETURN_IF_ERROR(TableOf(route).Read(object, body));
  if (body.texts.is_null()) return FieldError(field, "is missing");
  ASSIGN_OR_RETURN(std::vector<EmbedRequest> items,
                   route == OllamaRoute::kEmbed ? ReadEmbedInputs(body.texts, field, body.like)
                                                : ReadLoneEmbedText(body.texts, field, body.like));
  for (EmbedRequest& item : items) list.items.push_back(std::move(item));
  return list;
}

std::vector<MemberInfo> OllamaMembers(OllamaRoute route) { return TableOf(route).infos(); }

}  // namespace longview::server
