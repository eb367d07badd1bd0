// A table of bad inference requests: each has a code, and a message that names field, value
// and limit. The server answers a good request afterwards.
#include <gtest/gtest.h>

#include "server/errors.h"
#include "tests/server/api/infer_helpers.h"

namespace longview::testing {
namespace {

struct BadRequest {
  const char* name;
  const char* request;
  absl::StatusCode code;
  std::vector<const char*> fragments;  // All of them are in the message.
};

void PrintTo(const BadRequest& bad, std::ostream* out) { *out << bad.name; }

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const BadRequest kBadRequests[] = {
    {"UnknownModel", R"(model_name: "other")", absl::StatusCode::kNotFound, {"\"other\""}},
    {"UnknownVersion", R"(model_name: "one" model_version: "7")", absl::StatusCode::kNotFound, {}},
    {"NoInputs", R"(model_name: "one")", kInvalid, {"inputs"}},
    {"UnknownInput",
     R"(model_name: "one" inputs { name: "pixels" datatype: "FP32" shape: [1] })",
     kInvalid,
     {"\"pixels\"", "input_ids"}},
    {"InputTwice",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "b" } })",
     kInvalid,
     {"\"text\"", "twice"}},
    {"WrongDatatype",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "FP32" shape: [1,1]
        contents { fp32_contents: 1 } })",
     kInvalid,
     {"\"input_ids\"", "\"FP32\"", "INT64 or INT32"}},
    {"ContentsOfAnotherType",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,1]
        contents { int_contents: 1 } })",
     kInvalid,
     {"\"input_ids\"", "another type"}},
    {"NoShape",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
        contents { bytes_contents: "a" } })",
     kInvalid,
     {"\"text\"", "shape"}},
    {"ZeroTokens",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,0] })",
     kInvalid,
     {"[1,0]", "0 tokens"}},
    {"NegativeExtent",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,-1] })",
     kInvalid,
     {"[1,-1]"}},
    {"ShapeWhoseProductOverflows",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64"
        shape: [4611686018427387904, 4] })",
     kInvalid,
     {"4611686018427387904", "too large"}},
    {"ManyExtents",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64"
        shape: [65536,65536,65536,65536] })",
     kInvalid,
     {"too large"}},
    {"TooFewElements",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [2,2]
        contents { int64_contents: [1,2,3] } })",
     kInvalid,
     {"3 elements", "needs 4"}},
    {"NoContentsAtAll",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,2] })",
     kInvalid,
     {"0 elements", "needs 2"}},
    {"RawOfWrongLength",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,2] }
        raw_input_contents: "123456789")",
     kInvalid,
     {"9 bytes", "needs 16"}},
    {"RawCountDiffers",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,1] }
        raw_input_contents: "12345678" raw_input_contents: "12345678")",
     kInvalid,
     {"raw_input_contents", "2 entries", "1 inputs"}},
    {"RawAndTyped",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,1]
        contents { int64_contents: 5 } } raw_input_contents: "12345678")",
     kInvalid,
     {"\"input_ids\"", "typed contents", "raw_input_contents"}},
    {"RawStringLongerThanTheRest",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1] }
        raw_input_contents: "\xff\xff\xff\xff" )",
     kInvalid,
     {"element 0", "4294967295", "0 are left"}},
    {"RawStringEndsInLength",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1] }
        raw_input_contents: "\001\000" )",
     kInvalid,
     {"inside the length"}},
    {"RawHasMoreStrings",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1] }
        raw_input_contents: "\001\000\000\000a\001\000\000\000b" )",
     kInvalid,
     {"more than 1 elements"}},
    {"RawHasFewerStrings",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [2] }
        raw_input_contents: "\001\000\000\000a" )",
     kInvalid,
     {"hold 1 elements", "needs 2"}},
    {"TextOfThreeDimensions",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1,1,1]
        contents { bytes_contents: "a" } })",
     kInvalid,
     {"[1,1,1]", "[n] or [n,1]"}},
    {"IdsWithoutItemDimension",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [2]
        contents { int64_contents: [1,2] } })",
     kInvalid,
     {"[2]", "[n,T]"}},
    {"TextAndIds",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        inputs { name: "input_ids" datatype: "INT64" shape: [1,1]
                 contents { int64_contents: 1 } })",
     kInvalid,
     {"\"text\"", "input_ids"}},
    {"MaskWithText",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        inputs { name: "attention_mask" datatype: "INT64" shape: [1,1]
                 contents { int64_contents: 1 } })",
     kInvalid,
     {"\"attention_mask\"", "input_ids"}},
    {"MaskAlone",
     R"(model_name: "one" inputs { name: "attention_mask" datatype: "INT64" shape: [1,1]
        contents { int64_contents: 1 } })",
     kInvalid,
     {"text or input_ids"}},
    {"MaskOfAnotherShape",
     R"(model_name: "one"
        inputs { name: "input_ids" datatype: "INT64" shape: [1,2]
                 contents { int64_contents: [1,2] } }
        inputs { name: "attention_mask" datatype: "INT64" shape: [1,1]
                 contents { int64_contents: 1 } })",
     kInvalid,
     {"\"attention_mask\"", "[1,1]", "[1,2]"}},
    {"MaskWithATwo",
     R"(model_name: "one"
        inputs { name: "input_ids" datatype: "INT64" shape: [1,2]
                 contents { int64_contents: [1,2] } }
        inputs { name: "attention_mask" datatype: "INT64" shape: [1,2]
                 contents { int64_contents: [1,2] } })",
     kInvalid,
     {"\"attention_mask\"", "has 2 at position 1"}},
    {"MaskOfZeros",
     R"(model_name: "one"
        inputs { name: "input_ids" datatype: "INT64" shape: [2,2]
                 contents { int64_contents: [1,2,3,4] } }
        inputs { name: "attention_mask" datatype: "INT64" shape: [2,2]
                 contents { int64_contents: [1,1,0,0] } })",
     kInvalid,
     {"item 1", "0 tokens"}},
    {"IdBeyondInt32",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,2]
        contents { int64_contents: [1, 99999999999] } })",
     kInvalid,
     {"\"input_ids\"", "element 1", "99999999999"}},
    {"IdBeyondVocabulary",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,1]
        contents { int64_contents: 256 } })",
     kInvalid,
     {"input_ids: ", "256", "[0, 256)"}},
    {"SecondItemIsBad",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [2]
        contents { bytes_contents: "fine" bytes_contents: "!prepare" } })",
     kInvalid,
     {"item 1: "}},
    {"PairOfAnotherCount",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        inputs { name: "text_pair" datatype: "BYTES" shape: [2]
                 contents { bytes_contents: ["b", "c"] } })",
     kInvalid,
     {"\"text_pair\"", "2 items", "has 1"}},
    {"TooManyItems",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [5]
        contents { bytes_contents: ["a", "b", "c", "d", "e"] } })",
     kInvalid,
     {"5 items", "limit is 4", "max_items"}},
    {"GlobalTokensWithIds",
     R"(model_name: "one" inputs { name: "input_ids" datatype: "INT64" shape: [1,1]
        contents { int64_contents: 1 } }
        parameters { key: "global_tokens" value { string_param: "a" } })",
     kInvalid,
     {"\"global_tokens\"", "global_attention_mask"}},
    {"UnknownOutput",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        outputs { name: "boxes" })",
     kInvalid,
     {"\"boxes\"", "logits, probabilities, label"}},
    {"OutputTwice",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        outputs { name: "logits" } outputs { name: "logits" })",
     kInvalid,
     {"\"logits\"", "twice"}},
    {"OutputWithParameter",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" } }
        outputs { name: "logits"
                  parameters { key: "colour" value { int64_param: 3 } } })",
     kInvalid,
     {"\"logits\"", "\"colour\""}},
    {"InputWithParameter",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1] contents { bytes_contents: "a" }
                 parameters { key: "shared_memory_region" value { string_param: "x" } } })",
     kInvalid,
     {"\"text\"", "\"shared_memory_region\""}},
    {"PerTokenOutputOfTwoItems",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [2]
                 contents { bytes_contents: ["a", "b"] } }
        outputs { name: "last_hidden_state" })",
     kInvalid,
     {"\"last_hidden_state\"", "n = 1", "n is 2"}},
    {"AnswerOverTheLimit",
     R"(model_name: "one"
        inputs { name: "text" datatype: "BYTES" shape: [1]
                 contents { bytes_contents: "0123456789012345678901234567890123456789" } }
        outputs { name: "last_hidden_state" })",
     kInvalid,
     {"max_message_bytes is 600"}},
    {"ModelFailure",
     R"(model_name: "one" inputs { name: "text" datatype: "BYTES" shape: [1]
        contents { bytes_contents: "!take" } })",
     absl::StatusCode::kInternal,
     {"internal error; request id test-request"}},
};

class BadInferRequests : public ::testing::TestWithParam<BadRequest> {};

TEST_P(BadInferRequests, AreRefusedByName) {
  server::ApiOptions options;
  options.max_items = 4;
  options.max_message_bytes = 600;
  Backend backend(options);
  const auto result = Infer(backend, GetParam().request);
  EXPECT_EQ(result.status().code(), GetParam().code) << result.status();
  for (const char* fragment : GetParam().fragments) {
    EXPECT_NE(std::string(result.status().message()).find(fragment), std::string::npos)
        << "no \"" << fragment << "\" in: " << result.status();
  }
  const auto good = Infer(backend, R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
      shape: [1] contents { bytes_contents: "fine" } })");
  EXPECT_TRUE(good.ok()) << good.status();
}

INSTANTIATE_TEST_SUITE_P(Table, BadInferRequests, ::testing::ValuesIn(kBadRequests),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(InferErrors, InternalErrorsKeepTheirStory) {
  Backend backend;
  const auto result = Infer(backend, R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
      shape: [1] contents { bytes_contents: "!take" } })");
  EXPECT_EQ(std::string(result.status().message()).find("fake"), std::string::npos);
}

TEST(InferErrors, LongShapesAreCut) {
  Backend backend;
  auto request = ParseInfer(R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
      contents { bytes_contents: "a" } })");
  for (int i = 0; i < 100000; ++i) request.mutable_inputs(0)->add_shape(1);
  const absl::Status status = Infer(backend, request).status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_LT(status.message().size(), 200u);
}

TEST(InferErrors, OptionsAreNotCopiedWithoutBound) {
  Backend backend;
  auto request = ParseInfer(R"(model_name: "one" inputs { name: "text" datatype: "BYTES" })");
  request.mutable_inputs(0)->add_shape(1000);
  auto& contents = *request.mutable_inputs(0)->mutable_contents();
  for (int i = 0; i < 1000; ++i) contents.add_bytes_contents("a");
  (*request.mutable_parameters())["pooling"].set_string_param(std::string(1 << 20, 'x'));
  absl::Status status = Infer(backend, request).status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_NE(status.message().find("1048576 bytes, the limit is 64"), absl::string_view::npos);
  request.clear_parameters();
  (*request.mutable_parameters())["global_tokens"].set_string_param(std::string(1 << 20, 'x'));
  status = Infer(backend, request).status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_NE(status.message().find("for each of 1000 items"), absl::string_view::npos)
      << status.message();
}

TEST(InferErrors, RefusalsKeepReasonAndDelay) {
  Backend backend;
  backend.FillQueue("tester");
  const auto result = Infer(backend, R"(model_name: "one" inputs { name: "text" datatype: "BYTES"
      shape: [2] contents { bytes_contents: ["a", "b"] } })");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  const server::ErrorDetail detail = server::GetErrorDetail(result.status());
  EXPECT_EQ(detail.reason, "QUEUE_FULL");
  // A second until there is room, and half as long again.
  EXPECT_EQ(detail.retry_after, absl::Milliseconds(1500));
}

TEST(InferErrors, LoadingAndStopping) {
  Backend backend;
  backend.store.AddUnloaded("soon", server::ModelState::kLoading, "");
  EXPECT_EQ(Infer(backend, R"(model_name: "soon")").status().code(),
            absl::StatusCode::kUnavailable);
  backend.lifecycle.set_phase(server::Lifecycle::Phase::kDraining);
  EXPECT_EQ(Infer(backend, R"(model_name: "one")").status().code(), kInvalid);
  backend.lifecycle.set_phase(server::Lifecycle::Phase::kStopping);
  const absl::Status status = Infer(backend, R"(model_name: "one")").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(server::GetErrorDetail(status).retry_after.has_value());
}

}  // namespace
}  // namespace longview::testing
