#include "server/http/tei/embed_request.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/member_readers.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;
using nlohmann::json;

const MemberTable<TeiEmbedBody>& TeiEmbedTable() {
  using enum MemberOf;
  using Body = TeiEmbedBody;
  static const auto* const table = new MemberTable<TeiEmbedBody>{
      {"model", kLongview, ReadBefore<Body>()},
      {kInputs, kTei, Keeps(&Body::inputs)},
      {"normalize", kTei, Reads(+[](Body& b, bool f) { b.like->set_normalize(f); })},
      {"truncate", kTei, Reads(+[](Body& b, bool f) { b.like->set_truncate(f); })},
      {"truncation_direction", kTei, ReadsDirection(+[](Body& b, std::string d) {
         b.like->set_truncation_direction(std::move(d));
       })},
      {"prompt_name", kTei,
       ReadsName(+[](Body& b, std::string p) { b.like->set_prompt_name(std::move(p)); })},
      {"dimensions", kTei, Reads(+[](Body& b, int32_t n) { b.like->set_dimensions(n); })},
      {"parameters", kHuggingFace, ReadBefore<Body>()},
      {"candidate_labels", kHuggingFace, kNoZeroShot},
      {"hypothesis_template", kHuggingFace, kNoZeroShot},
      {"multi_label", kHuggingFace, kNoZeroShot},
      {"function_to_apply", kHuggingFace, kElsewhere},
      {"top_k", kHuggingFace, kElsewhere},
      {"encoding_format", kOpenAi, kElsewhere},
      {"embedding_type", kJina, kElsewhere},
      {"embedding_types", kCohere, kElsewhere},
      {"input_type", kCohere, kElsewhere},
      {"output_dimension", kCohere, kElsewhere},
      {"late_chunking", kJina, kElsewhere},
      {"normalized", kJina, kElsewhere},
      {"task", kJina, kElsewhere},
      {"truncate_prompt_tokens", kVllm, kElsewhere},
      {"chunk_overlap", kLongview, kElsewhere},
      {"chunk_tokens", kLongview, kElsewhere},
      {"chunks", kLongview, kElsewhere},
      {"pooling", kLongview, kElsewhere},
      {"prompt", kLongview, kElsewhere},
  };
  return *table;
}

}  // namespace

absl::StatusOr<TeiEmbedBody> ReadTeiEmbed(json object) {
  TeiEmbedBody body;
  body.like->set_normalize(true);
  RETURN_IF_ERROR(ReadTei(TeiEmbedTable(), object, body));
  if (body.inputs.is_null()) return FieldError(kInputs, "is missing");
  return body;
}

EmbedListRequest TeiEmbedList(const std::string& model, std::vector<EmbedRequest> items) {
  EmbedListRequest list{model, "", {}, kInputs};
  for (EmbedRequest& item : items) list.items.push_back(std::move(item));
  return list;
}

std::vector<MemberInfo> TeiEmbedMembers() { return TeiEmbedTable().infos(); }

}  // namespace longview::server
