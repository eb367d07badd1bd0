// JSON bodies: what is read, what is refused and how the refusal names the place.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "longview/v1/models.pb.h"
#include "longview/v1/text.pb.h"
#include "longview/v1/vision.pb.h"
#include "server/errors.h"
#include "server/http/json/message.h"
#include "server/http/json/number_arrays.h"
#include "server/http/json/parse.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"
#include "server/status_map_http.h"

namespace longview::server {
namespace {

using nlohmann::json;

std::string Error(std::string_view text) {
  const auto parsed = ParseJson(text);
  return parsed.ok() ? "(parsed)" : std::string(parsed.status().message());
}

std::string Numbered(int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(i * 7 - 3);
  return text + "]";
}

constexpr size_t kPlenty = 1 << 20;

TEST(NumberArrays, LongArraysLeaveTheText) {
  const std::string text = R"({"a": )" + Numbered(9) + R"(, "b": [1, 2]})";
  const ReducedJson reduced = LiftNumberArrays(text, kPlenty);
  EXPECT_EQ(reduced.text(), R"({"a": [], "b": [1, 2]})");
  ASSERT_EQ(reduced.arrays.size(), 1u);
  EXPECT_EQ(std::get<std::vector<int64_t>>(reduced.arrays[0].numbers)[8], 53);
}

TEST(NumberArrays, WhatIsNotStrictlyNumbersStays) {
  for (const char* text :
       {R"([1,2,3,4,5,6,7,8,"9"])", "[1,2,3,4,5,6,7,08]", "[1,2,3,4,5,6,7,+8]",
        "[1,2,3,4,5,6,7,8.]", "[1,2,3,4,5,6,7,8,]", "[1,2,3,4,5,6,7,1e]", "[1,2,3,4,5,6,7,8",
        "[1,2,3,4,5,6,7,1e999]", "[1,2,3,4,5,6,7,9223372036854775808]", R"("[1,2,3,4,5,6,7,8]")",
        R"("\"[1,2,3,4,5,6,7,8]")"}) {
    const ReducedJson reduced = LiftNumberArrays(text, kPlenty);
    EXPECT_EQ(reduced.text(), text);
    EXPECT_TRUE(reduced.arrays.empty()) << text;
  }
}

// `piece` again and again, in brackets.
std::string Repeated(std::string_view piece, size_t bytes) {
  std::string text = "[";
  while (text.size() < bytes) text += piece;
  text.back() = ']';
  return text;
}

TEST(ParseJson, ValuesThatTakeMuchMoreThanTheirTextAreRefused) {
  constexpr size_t kText = 4 << 20;
  constexpr size_t kLimit = 8 << 20;
  for (const char* piece : {"1,", "[],", "{},", "\"\",", "[1],", "1.5,", "{\"a\":1},", "null,"}) {
    const auto value = ParseJson(Repeated(piece, kText), kLimit);
    ASSERT_FALSE(value.ok()) << piece;
    EXPECT_EQ(GetErrorDetail(value.status()).reason, kBodyTooLarge) << piece;
    EXPECT_NE(value.status().message().find("8388608"), absl::string_view::npos) << piece;
  }
  EXPECT_TRUE(ParseJson(Repeated("1234567,", kText), kLimit).ok());
  EXPECT_TRUE(ParseJson("\"" + std::string(kText, 'x') + "\"", kLimit).ok());
  std::string members = "{";
  for (int i = 0; members.size() < kText; ++i) members += "\"" + std::to_string(i) + "\":1,";
  members.back() = '}';
  EXPECT_FALSE(ParseJson(members, kLimit).ok());
}

TEST(ParseJson, LiftedAndPlainArraysReadAlike) {
  for (const int count : {0, 1, 7, 8, 100}) {
    const auto body =
        ParseJson(R"({"x": [[)" + std::string("]], \"ids\": ") + Numbered(count) + "}");
    ASSERT_TRUE(body.ok()) << body.status();
    std::vector<int32_t> ids;
    ASSERT_TRUE(AppendNumbers((*body)["ids"], "ids", &ids).ok());
    ASSERT_EQ(ids.size(), static_cast<size_t>(count));
    EXPECT_EQ(ArraySize((*body)["ids"]), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(ids[i], i * 7 - 3);
  }
}

TEST(ParseJson, NestedRowsKeepTheirOrder) {
  const auto body = ParseJson("[" + Numbered(8) + ", [1], " + Numbered(9) + ", [[]], []]");
  ASSERT_TRUE(body.ok()) << body.status();
  ASSERT_EQ(body->size(), 5u);
  EXPECT_EQ(ArraySize((*body)[0]), 8u);
  EXPECT_EQ((*body)[1], json::array({1}));
  EXPECT_EQ(ArraySize((*body)[2]), 9u);
  EXPECT_EQ((*body)[3], json::array({json::array()}));
}

TEST(ParseJson, MembersThatAreNullAreLeftOut) {
  const auto parsed =
      ParseJson(R"({"a": null, "b": {"c": null, "d": [null, {"e": null}]}, "f": 1, "g": null})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, json::parse(R"({"b": {"d": [null, {}]}, "f": 1})"));
  EXPECT_TRUE(ParseJson("null")->is_null());
  EXPECT_FALSE(ParseJson(R"({"a": null, "a": 1})").ok());
}

TEST(ParseJson, RefusalsNameTheByte) {
  EXPECT_NE(Error("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(Error(R"({"a": 1,})").find("at byte 8"), std::string::npos) << Error(R"({"a": 1,})");
  const std::string after_ids = R"({"ids": )" + Numbered(100) + R"(, "b": nope})";
  const size_t place = after_ids.find("nope");
  const std::string error = Error(after_ids);
  EXPECT_NE(error.find("at byte " + std::to_string(place + 1)), std::string::npos) << error;
}

TEST(ParseJson, RefusesWhatOtherParsersDisagreeAbout) {
  EXPECT_NE(Error(R"({"a": 1, "a": 2})").find(R"(member "a" appears twice)"), std::string::npos);
  EXPECT_NE(Error(R"({"a": 1e999})").find("overflow"), std::string::npos)
      << Error(R"({"a": 1e999})");
  EXPECT_NE(Error("{\"a\": \"\xff\"}").find("UTF-8"), std::string::npos)
      << Error("{\"a\": \"\xff\"}");
  EXPECT_NE(Error("{\"a\": \"\xed\xa0\x80\"}").find("UTF-8"), std::string::npos);
  EXPECT_NE(Error(R"({"a": NaN})"), "(parsed)");
  EXPECT_NE(Error("{} {}"), "(parsed)");
  EXPECT_NE(Error(R"({"a": 01})"), "(parsed)");
  EXPECT_NE(Error("// comment\n{}"), "(parsed)");
}

TEST(ParseJson, DepthIsBounded) {
  const std::string deepest(kMaxJsonDepth, '[');
  EXPECT_EQ(Error(deepest + std::string(kMaxJsonDepth, ']')), "(parsed)");
  EXPECT_NE(Error("[" + deepest).find("64 levels"), std::string::npos);
  EXPECT_NE(Error(std::string(1000000, '[')).find("64 levels"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"a":)";
  EXPECT_NE(Error(objects).find("64 levels"), std::string::npos);
}

TEST(Values, IntegersMustBeIntegersInRange) {
  std::vector<int32_t> out;
  const auto error = [&](const char* text) {
    const auto value = ParseJson(text);
    return std::string(AppendNumbers(*value, "ids", &out).message());
  };
  EXPECT_EQ(error("[1, 2.5]"), "ids: element 1 is 2.5, expected a 32-bit integer");
  EXPECT_EQ(error("[1, 2147483648]"), "ids: element 1 is 2147483648, expected a 32-bit integer");
  EXPECT_EQ(error(R"([1, "2"])"), R"(ids: element 1 is "2", expected a 32-bit integer)");
  EXPECT_EQ(error("[0,1,2,3,4,5,6,7,-2147483649]"),
            "ids: element 8 is -2147483649, expected a 32-bit integer");
  EXPECT_EQ(error("[0,1,2,3,4,5,6,7,8.0]").substr(0, 14), "ids: element 0");
  EXPECT_EQ(error("7"), "ids: expected an array, got 7");
  EXPECT_EQ(error("[null]"), "ids: element 0 is null, expected a 32-bit integer");
}

TEST(Values, LongValuesAreCutInMessages) {
  const auto value = ParseJson("\"" + std::string(500, 'x') + "\"");
  const auto read = ReadBool(*value, "truncate");
  EXPECT_LT(read.status().message().size(), 150u);
}

TEST(Writer, NumbersAreShortAndJsonHasNoNan) {
  std::string out;
  AppendJson(0.1f, &out);
  out += ' ';
  AppendJson(1e-7, &out);
  out += ' ';
  AppendJson(std::nanf(""), &out);
  out += ' ';
  AppendJson(std::numeric_limits<double>::infinity(), &out);
  out += ' ';
  AppendJson(int64_t{-9007199254740993}, &out);
  EXPECT_EQ(out, "0.1 1e-07 null null -9007199254740993");
}

TEST(Writer, StringsAreEscapedAndBrokenUtf8IsReplaced) {
  std::string out;
  AppendJsonString("a\"\\\n\x01\xff\xc3\xa9", &out);
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xc3\xa9\"");
}

TEST(Message, ZeroValuesAreWrittenAndUnsetMessagesAreNot) {
  longview::v1::EstimateResponse response;
  response.mutable_usage()->set_input_tokens(3);
  std::string out;
  AppendMessage(response, &out);
  EXPECT_EQ(out,
            R"({"seconds":0,"queue_seconds":0,"state_bytes":0,"workspace_bytes":0,"fits":false,)"
            R"("reason":"","usage":{"input_tokens":3,"output_tokens":0,"cached_tokens":0,)"
            R"("truncated_tokens":0,"width":0,"height":0},"multiply_adds":0})");
  out.clear();
  longview::v1::EmbedRequest request;
  AppendMessage(request, &out);
  EXPECT_EQ(out.find("normalize"), std::string::npos);
}

template <typename M>
std::string ReadError(const char* text) {
  M message;
  return std::string(ReadMessage(*ParseJson(text), &message).message());
}

TEST(Message, ReadsEveryKindOfField) {
  longview::v1::DetectObjectsRequest detect;
  const auto body = ParseJson(
      R"({"model":"m","image":"aGk=","score_threshold":0.5,"max_detections":7,"masks":true,)"
      R"("tile":{"size":512}})");
  ASSERT_TRUE(ReadMessage(*body, &detect).ok());
  EXPECT_EQ(detect.image(), "hi");
  EXPECT_EQ(detect.score_threshold(), 0.5f);
  EXPECT_EQ(detect.max_detections(), 7);
  EXPECT_TRUE(detect.masks());
  EXPECT_EQ(detect.tile().size(), 512);

  longview::v1::ClassifyRequest classify;
  ASSERT_TRUE(
      ReadMessage(*ParseJson(R"({"token_ids":[5,6],"text":null,"top_k":2})"), &classify).ok());
  EXPECT_EQ(classify.token_ids_size(), 2);
  EXPECT_EQ(classify.token_ids(1), 6);
}

TEST(Message, ErrorsNameTheMember) {
  using longview::v1::ClassifyRequest;
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"txt":"a"})"),
            "txt: unknown member; did you mean text?");
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"verbosity":1})"), "verbosity: unknown member");
  const std::string long_name = "{\"" + std::string(100, 't') + "\":1}";
  EXPECT_EQ(ReadError<ClassifyRequest>(long_name.c_str()).find("mean"), std::string::npos);
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"text":5})"), "text: expected a string, got 5");
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"truncate":"yes"})"),
            R"(truncate: expected true or false, got "yes")");
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"top_k":1.5})"),
            "top_k: expected a 32-bit integer, got 1.5");
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"top_k":99999999999})"),
            "top_k: expected a 32-bit integer, got 99999999999");
  EXPECT_EQ(ReadError<ClassifyRequest>(R"({"token_ids":{}})"),
            "token_ids: expected an array, got an object");
  EXPECT_EQ(ReadError<longview::v1::DetectObjectsRequest>(R"({"image":"%%"})"),
            R"(image: not base64: "%%")");
  EXPECT_EQ(ReadError<ClassifyRequest>("[1]"), "the body must be a JSON object, got an array of 1");
}

TEST(Message, TextFieldsOfFormsAndQueries) {
  longview::v1::ClassifyRequest request;
  EXPECT_TRUE(ReadTextField("text", "12", &request).ok());
  EXPECT_TRUE(ReadTextField("top_k", "3", &request).ok());
  EXPECT_TRUE(ReadTextField("truncate", "true", &request).ok());
  EXPECT_TRUE(ReadTextField("return_logits", "1", &request).ok());
  EXPECT_TRUE(ReadTextField("token_ids", "4,5", &request).ok());
  EXPECT_TRUE(ReadTextField("token_ids", "[6]", &request).ok());
  EXPECT_TRUE(ReadTextField("global_positions", "0", &request).ok());
  EXPECT_EQ(request.text(), "12");
  EXPECT_EQ(request.top_k(), 3);
  EXPECT_TRUE(request.truncate());
  EXPECT_TRUE(request.return_logits());
  EXPECT_EQ(request.token_ids_size(), 3);
  EXPECT_EQ(request.global_positions(0), 0);
  EXPECT_FALSE(ReadTextField("top_k", "three", &request).ok());
  EXPECT_FALSE(ReadTextField("truncate", "maybe", &request).ok());
  EXPECT_FALSE(ReadTextField("nonsense", "1", &request).ok());
  longview::v1::DetectObjectsRequest detect;
  EXPECT_TRUE(ReadTextField("image", "\xff\xd8", &detect).ok());
  EXPECT_EQ(detect.image(), "\xff\xd8");
}

}  // namespace
}  // namespace longview::server
