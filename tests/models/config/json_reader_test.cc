#include <nlohmann/json.hpp>

#include "models/config/json_reader.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

using nlohmann::json;

TEST(ParseJson, BrokenTextIsRefusedWithAReason) {
  const struct {
    std::string text, part;
  } cases[] = {
      {"", "not valid JSON"},
      {"{", "line 1, column 2"},
      {"{\n\"a\": x}", "line 2"},
      {"{} {}", "not valid JSON"},
      {std::string("{}\0x", 4), "NUL byte"},
      {"{\"a\": \"\xff\"}", "UTF-8"},
      {"{\"a\": NaN}", "not valid JSON"},
      {"{\"a\": 1, \"a\": 2}", "key \"a\" appears twice"},
      {"{\"x\": {\"a\": 1, \"\\u0061\": 2}}", "key \"a\" appears twice"},
      {"[{\"a\": {}}, {\"b\": 1, \"b\": 1}]", "key \"b\" appears twice"},
      {std::string(100, '[') + std::string(100, ']'), "deeper than 64"},
  };
  for (const auto& c : cases) {
    const auto value = ParseJson(c.text, "file.json");
    ASSERT_FALSE(value.ok()) << c.text;
    EXPECT_EQ(value.status().message().rfind("file.json: ", 0), 0u) << value.status();
    EXPECT_NE(value.status().message().find(c.part), std::string::npos) << value.status();
  }
  // Two objects may have the same key.
  EXPECT_TRUE(ParseJson(R"([{"a": 1}, {"a": {"a": 2}}])", "f").ok());
  EXPECT_TRUE(ParseJson(std::string(60, '[') + std::string(60, ']'), "f").ok());
  // A million brackets must not overflow any stack.
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '['), "f").ok());
}

TEST(ReadJsonFile, SaysWhatTheFileIs) {
  const testing::TempDirectory directory;
  EXPECT_EQ(ReadJsonFile(directory.Path("absent")).status().code(), absl::StatusCode::kNotFound);
  const auto message = [&](const std::string& text, size_t limit) {
    return std::string(ReadJsonFile(directory.Write("f.json", text), limit).status().message());
  };
  EXPECT_NE(message("[1]", 100).find("expected a JSON object, found [1]"), std::string::npos);
  EXPECT_NE(message("{\"long\": 1}", 5).find("the limit is 5"), std::string::npos);
  EXPECT_NE(message("version https://git-lfs.github.com/spec/v1", 100).find("git lfs pull"),
            std::string::npos);
  EXPECT_NE(ReadJsonFile(directory.path()).status().message().find("not a regular file"),
            std::string::npos);
}

class JsonReaderTest : public ::testing::Test {
 protected:
  JsonReader Reader() const { return JsonReader(value_, "config.json"); }

  const json value_ = json::parse(R"({
    "int": 7, "negative": -3, "huge": 18446744073709551615, "float": 2.5, "whole": 2.0,
    "yes": true, "text": "gelu", "null": null, "ints": [1, 2, 3], "mixed": [1, "x"],
    "strings": ["a", "b"], "object": {"inner": 1}})");
};

TEST_F(JsonReaderTest, ReadsWhatIsThere) {
  JsonReader reader = Reader();
  EXPECT_EQ(reader.Int("int"), 7);
  EXPECT_EQ(reader.Int("negative", -5), -3);
  EXPECT_EQ(reader.Number("float"), 2.5);
  EXPECT_EQ(reader.Number("int"), 7);
  EXPECT_TRUE(reader.Bool("yes"));
  EXPECT_EQ(reader.String("text"), "gelu");
  EXPECT_EQ(reader.Choice("text", {"relu", "gelu"}), "gelu");
  EXPECT_EQ(reader.IntList("ints"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(reader.StringList("strings"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(reader.Object("object").Int("inner"), 1);
  EXPECT_EQ(reader.IntOr("absent", 9), 9);
  EXPECT_EQ(reader.StringOr("null", "x"), "x");
  EXPECT_FALSE(reader.Has("null"));
  EXPECT_TRUE(reader.status().ok()) << reader.status();
}

TEST_F(JsonReaderTest, MessagesNameKeyExpectationAndValue) {
  const auto message = [&](auto&& read) {
    JsonReader reader = Reader();
    read(reader);
    return std::string(reader.status().message());
  };
  EXPECT_EQ(message([](JsonReader& r) { r.Int("absent"); }),
            "config.json: \"absent\": expected an integer in [0, 2147483647], it is missing");
  EXPECT_EQ(message([](JsonReader& r) { r.Int("int", 8, 9); }),
            "config.json: \"int\": expected an integer in [8, 9], found 7");
  EXPECT_EQ(message([](JsonReader& r) { r.Int("huge"); }),
            "config.json: \"huge\": expected an integer in [0, 2147483647], "
            "found 18446744073709551615");
  EXPECT_EQ(message([](JsonReader& r) { r.IntOr("whole", 1, 0, 3); }),
            "config.json: \"whole\": expected an integer in [0, 3], found 2.0");
  EXPECT_EQ(message([](JsonReader& r) {
              r.Choice("text", {"relu", "silu"});
            }),
            "config.json: \"text\": expected one of \"relu\", \"silu\", found \"gelu\"");
  EXPECT_EQ(message([](JsonReader& r) { r.IntList("mixed", 0, 5); }),
            "config.json: \"mixed\": expected a list of integers in [0, 5], found [1,\"x\"]");
  EXPECT_EQ(message([](JsonReader& r) { r.Bool("text"); }),
            "config.json: \"text\": expected true or false, found \"gelu\"");
  EXPECT_EQ(message([](JsonReader& r) {
              r.RefuseUnknown({"int", "text"});
            }),
            "config.json: unknown key \"float\"; known are int, text");
  EXPECT_EQ(message([](JsonReader& r) { r.Merge(r.Object("object").status()); }), "");
  EXPECT_EQ(message([](JsonReader& r) {
              JsonReader inner = r.Object("object");
              inner.String("inner");
              r.Merge(inner.status());
            }),
            "config.json: \"object\": \"inner\": expected a string, found 1");
}

TEST_F(JsonReaderTest, TheFirstProblemStays) {
  JsonReader reader = Reader();
  EXPECT_EQ(reader.String("int"), "");
  EXPECT_EQ(reader.Int("text"), 0);
  EXPECT_EQ(reader.status().message(), "config.json: \"int\": expected a string, found 7");
}

TEST(ShortJson, IsCut) {
  const std::string text = ShortJson(json(std::string(1000, 'x')));
  EXPECT_EQ(text.size(), 64u);
  EXPECT_TRUE(text.ends_with("..."));
}

}  // namespace
}  // namespace longview::models
