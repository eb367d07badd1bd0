#include "server/api/infer/infer_parameters.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace longview::server {
namespace {

using models::Task;

absl::StatusOr<InferParameters> Read(const std::string& value, const std::string& name,
                                     Task task = Task::kFillMask) {
  ParameterMap map;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(value, &map[name]));
  return ReadParameters(map, task);
}

TEST(InferParameters, BooleansComeInEveryForm) {
  for (const char* yes :
       {"bool_param: true", "int64_param: 1", "uint64_param: 1", R"(string_param: "true")",
        R"(string_param: "True")", R"(string_param: "1")"}) {
    const auto read = Read(yes, "truncate");
    ASSERT_TRUE(read.ok()) << yes << ": " << read.status();
    EXPECT_EQ(read->truncate, true) << yes;
  }
  const auto no = Read(R"(string_param: "false")", "normalize");
  ASSERT_TRUE(no.ok());
  EXPECT_EQ(no->normalize, false);
  EXPECT_FALSE(Read("int64_param: 2", "truncate").ok());
  EXPECT_FALSE(Read(R"(string_param: "yes")", "truncate").ok());
}

TEST(InferParameters, NumbersComeInEveryForm) {
  for (const char* seven :
       {"int64_param: 7", "uint64_param: 7", "double_param: 7", R"(string_param: "7")"}) {
    const auto read = Read(seven, "top_k");
    ASSERT_TRUE(read.ok()) << seven << ": " << read.status();
    EXPECT_EQ(read->top_k, 7) << seven;
  }
  for (const char* bad :
       {"int64_param: 0", "int64_param: -1", "double_param: 1.5", "double_param: nan",
        "double_param: 1e300", "bool_param: true", "uint64_param: 18446744073709551615",
        R"(string_param: "7x")", R"(string_param: "")", ""}) {
    EXPECT_EQ(Read(bad, "top_k").status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(InferParameters, ListsAreJsonOrOnePlainString) {
  const auto list = Read(R"(string_param: "[\"a\", \"b\"]")", "global_tokens");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->global_tokens, (std::vector<std::string>{"a", "b"}));
  const auto plain = Read(R"(string_param: "[SEP]")", "global_tokens");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->global_tokens, std::vector<std::string>{"[SEP]"});
  EXPECT_FALSE(Read(R"(string_param: "[1, 2]")", "global_tokens").ok());
  EXPECT_FALSE(Read("int64_param: 1", "global_tokens").ok());
}

TEST(InferParameters, TimeoutIsInMicroseconds) {
  const auto read = Read("int64_param: 2500", "timeout");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->timeout, absl::Microseconds(2500));
  EXPECT_EQ(Read("int64_param: 0", "timeout")->timeout, std::nullopt);
  EXPECT_FALSE(Read("int64_param: -5", "timeout").ok());
}

TEST(InferParameters, UnknownNamesAreRefusedWithTheKnownOnes) {
  const auto unknown = Read("int64_param: 1", "topk");
  ASSERT_FALSE(unknown.ok());
  const std::string message(unknown.status().message());
  EXPECT_NE(message.find("\"topk\""), std::string::npos) << message;
  EXPECT_NE(message.find("top_k"), std::string::npos) << message;
  EXPECT_FALSE(Read("int64_param: 1", "top_k", Task::kTextClassification).ok());
  EXPECT_TRUE(Read(R"(string_param: "none")", "aggregation", Task::kTokenClassification).ok());
  EXPECT_FALSE(Read(R"(string_param: "none")", "aggregation", Task::kQuestionAnswering).ok());
}

TEST(InferParameters, TritonsOwn) {
  EXPECT_TRUE(Read("uint64_param: 3", "priority").ok());
  EXPECT_TRUE(Read("bool_param: true", "triton_enable_empty_final_response").ok());
  for (const char* name : {"sequence_id", "sequence_start", "sequence_end"}) {
    EXPECT_FALSE(Read("int64_param: 1", name).ok()) << name;
  }
  // HuggingFace's option has the prefix of Triton's sequences.
  EXPECT_TRUE(Read(R"(string_param: "[[[5], 1.5]]")", "sequence_bias", Task::kTextGeneration).ok());
  EXPECT_FALSE(Read(R"(string_param: "[]")", "sequence_bias", Task::kTextClassification).ok());
}

}  // namespace
}  // namespace longview::server
