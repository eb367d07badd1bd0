#include "server/api/infer/answer_json.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace longview::server {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

std::string EntitiesJson(const std::vector<models::EntitySpan>& entities) {
  Json list = Json::array();
  for (const models::EntitySpan& entity : entities) {
    list.push_back({{"label", entity.label},
                    {"score", entity.score},
                    {"text", entity.text},
                    {"start", entity.start},
                    {"end", entity.end}});
  }
  return Dump(list);
}

std::string AnswerJson(const std::vector<models::AnswerSpan>& answers) {
  if (answers.empty()) return "{}";
  const models::AnswerSpan& best = answers.front();
  return Dump({{"text", best.text},
               {"start", best.start},
               {"end", best.end},
               {"score", best.score},
               {"probability", best.probability}});
}

std::string MasksJson(const std::vector<models::MaskFill>& masks) {
  Json lists = Json::array();
  for (const models::MaskFill& mask : masks) {
    Json candidates = Json::array();
    for (const models::MaskFill::Candidate& candidate : mask.candidates) {
      candidates.push_back({{"token_id", candidate.token_id},
                            {"token", candidate.token},
                            {"logprob", candidate.logprob}});
    }
    lists.push_back(std::move(candidates));
  }
  return Dump(lists);
}

}  // namespace longview::server
