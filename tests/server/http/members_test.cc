// The tables of members beside /openapi.json and deploy/COMING_FROM.md.
#include "server/http/members.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "longview/v1/vision.pb.h"
#include "server/http/cohere/embed_request.h"
#include "server/http/ollama/embed.h"
#include "server/http/tei/embed_request.h"
#include "server/http/tei/predict_request.h"
#include "server/http/tei/tei.h"
#include "server/http/tokens/tokenize_request.h"
#include "server/http/v1/completions_members.h"
#include "server/http/v1/embeddings_request.h"
#include "server/http/v1/rerank.h"
#include "server/http/v1/score_request.h"
#include "tests/server/http/server_fixture.h"

namespace longview::testing {
namespace {

using nlohmann::json;
using server::MemberInfo;
using server::MemberUse;

struct TableCase {
  std::string schema;  // In /openapi.json.
  std::vector<MemberInfo> members;
};

std::vector<TableCase> Tables() {
  return {{"CompletionRequest", server::CompletionMembers()},
          {"EmbeddingsRequest", server::EmbeddingsMembers()},
          {"RerankRequest", server::RerankMembers()},
          {"ScoreRequest", server::ScoreMembers()},
          {"CohereEmbedRequest", server::CohereEmbedMembers()},
          {"OllamaEmbedRequest", server::OllamaMembers(server::OllamaRoute::kEmbed)},
          {"OllamaEmbeddingsRequest", server::OllamaMembers(server::OllamaRoute::kEmbeddings)},
          {"TeiEmbedRequest", server::TeiEmbedMembers()},
          {"TeiSimilarityRequest", server::TeiEmbedMembers()},
          {"TeiPredictRequest", server::PredictMembers()},
          {"TeiRerankRequest", server::TeiRerankMembers()},
          {"TokenizeRequest", server::TokenizeMembers(server::TokenizeDialect::kOwn)},
          {"TeiTokenizeRequest", server::TokenizeMembers(server::TokenizeDialect::kTei)},
          {"VllmTokenizeRequest", server::TokenizeMembers(server::TokenizeDialect::kVllm)},
          {"DetokenizeRequest", server::DetokenizeMembers()}};
}

class MembersTest : public HttpServerTest {};

TEST_F(MembersTest, TheDescriptionHasWhatTheTablesTake) {
  const json schemas = Body(Get("/openapi.json"))["components"]["schemas"];
  for (const TableCase& table : Tables()) {
    std::set<std::string> taken, without_effect;
    for (const MemberInfo& member : table.members) {
      if (member.use == MemberUse::kRefused) continue;
      EXPECT_TRUE(taken.insert(std::string(member.name)).second) << table.schema << member.name;
      if (member.use == MemberUse::kNoEffect) without_effect.insert(std::string(member.name));
    }
    std::set<std::string> described, described_without_effect;
    for (const auto& [name, property] : schemas[table.schema]["properties"].items()) {
      described.insert(name);
      const bool none = property.value("description", "") == "Without effect.";
      if (none) described_without_effect.insert(name);
    }
    EXPECT_EQ(described, taken) << table.schema;
    EXPECT_EQ(described_without_effect, without_effect) << table.schema;
  }
}

// The tables of the typed routes are their messages.
TEST_F(MembersTest, TheDescriptionHasTheFieldsOfMessages) {
  using google::protobuf::Descriptor;
  const json schemas = Body(Get("/openapi.json"))["components"]["schemas"];
  const Descriptor* const messages[] = {longview::v1::ClassifyRequest::descriptor(),
                                        longview::v1::ClassifyTokensRequest::descriptor(),
                                        longview::v1::AnswerQuestionRequest::descriptor(),
                                        longview::v1::FillMaskRequest::descriptor(),
                                        longview::v1::ClassifyImageRequest::descriptor(),
                                        longview::v1::DetectObjectsRequest::descriptor(),
                                        longview::v1::ExtractFeaturesRequest::descriptor(),
                                        longview::v1::EstimateRequest::descriptor()};
  for (const Descriptor* message : messages) {
    std::set<std::string> fields, described;
    for (int i = 0; i < message->field_count(); ++i) fields.insert(message->field(i)->name());
    for (const auto& [name, property] : schemas[message->name()]["properties"].items()) {
      if (name != "partial") described.insert(name);
    }
    EXPECT_EQ(described, fields) << message->name();
  }
}

TEST(Members, TablesNameAMemberOnce) {
  for (const TableCase& table : Tables()) {
    std::set<std::string_view> names;
    for (const MemberInfo& member : table.members) {
      EXPECT_TRUE(names.insert(member.name).second) << table.schema << ": " << member.name;
    }
  }
}

struct Settings {
  int number = 0;
};

server::MemberTable<Settings> SettingsTable() {
  return {{"number", server::MemberOf::kLongview,
           [](json& value, const std::string&, Settings& out) {
             out.number = value;
             return absl::OkStatus();
           }},
          {"user", server::MemberOf::kOpenAi, server::NoEffect{}},
          {"images", server::MemberOf::kCohere, server::Refused{"are not read"}}};
}

TEST(Members, AreUsedTakenOrRefused) {
  const server::MemberTable<Settings> table = SettingsTable();
  Settings settings;
  json good = {{"number", 5}, {"user", json::array({1})}};
  EXPECT_TRUE(table.Read(good, settings).ok());
  EXPECT_EQ(settings.number, 5);
  json refused = {{"images", 1}};
  EXPECT_EQ(table.Read(refused, settings).message(), "images: are not read");
  EXPECT_EQ(table.ReadKnown(refused, settings).message(), "images: are not read");
  json unknown = {{"numbr", 1}};
  EXPECT_EQ(table.Read(unknown, settings).message(), "numbr: unknown member; did you mean number?");
  EXPECT_TRUE(table.ReadKnown(unknown, settings).ok());
  EXPECT_EQ(table.ReadWithin("options", unknown, settings).message(),
            "options.numbr: unknown member; did you mean options.number?");
}

}  // namespace
}  // namespace longview::testing
