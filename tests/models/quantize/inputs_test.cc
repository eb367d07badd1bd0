#include "models/quantize/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace longview::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InputsTest : public ::testing::Test {
 protected:
  InputsTest() : folder_(std::filesystem::path(::testing::TempDir()) / "quantize_inputs") {
    std::filesystem::create_directories(folder_);
  }
  ~InputsTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const GivenText& given : inputs_.texts) texts.push_back(given.text);
    return texts;
  }

  const std::filesystem::path folder_;
  GivenInputs inputs_;
};

TEST_F(InputsTest, ALineIsAText) {
  ASSERT_TRUE(ReadInputs({.lines = Write("a.txt", "one\r\n\n two \nthree")}, inputs_).ok());
  EXPECT_THAT(Texts(), ElementsAre("one", " two ", "three"));
  EXPECT_THAT(inputs_.notes, IsEmpty());
}

TEST_F(InputsTest, AnObjectIsATextPerhapsOfTwo) {
  const std::string path = Write("a.jsonl",
                                 "{\"text\": \"one\", \"id\": 7}\n"
                                 "{\"text\": \"two\", \"text_pair\": \"deux\"}\n");
  ASSERT_TRUE(ReadInputs({.lines = path}, inputs_).ok());
  EXPECT_THAT(Texts(), ElementsAre("one", "two"));
  EXPECT_EQ(inputs_.texts[1].pair, "deux");
}

TEST_F(InputsTest, ABadLineIsNamed) {
  for (const char* line : {"{\"text\": 5}", "[]", "{", "{\"text\": \"x\", \"text_pair\": 1}"}) {
    const std::string path = Write("a.jsonl", std::string("{\"text\": \"one\"}\n") + line);
    const absl::Status status = ReadInputs({.lines = path}, inputs_);
    EXPECT_THAT(std::string(status.message()), HasSubstr("a.jsonl:2")) << line;
  }
}

TEST_F(InputsTest, AFileIsATextAndWhatIsNoneIsLeftOut) {
  const std::vector<std::string> files = {Write("a", "fine"), Write("b", "caf\xe9"),
                                          Write("c", std::string("z\0z", 3)), Write("d", " \n")};
  ASSERT_TRUE(ReadInputs({.texts = files}, inputs_).ok());
  EXPECT_THAT(Texts(), ElementsAre("fine"));
  EXPECT_THAT(inputs_.notes, ElementsAre("3 texts left out: empty, or not UTF-8"));
}

TEST_F(InputsTest, AFileThatIsNotThereIsAnError) {
  for (const GivenFiles& files :
       {GivenFiles{.lines = "/no/such"}, GivenFiles{.texts = {"/no/such"}}}) {
    EXPECT_THAT(std::string(ReadInputs(files, inputs_).message()), HasSubstr("/no/such"));
  }
}

TEST_F(InputsTest, OfManySomeCount) {
  std::string lines;
  for (int i = 0; i < 2500; ++i) lines += std::to_string(i) + "\n";
  ASSERT_TRUE(ReadInputs({.lines = Write("a.txt", lines)}, inputs_).ok());
  ASSERT_EQ(inputs_.texts.size(), kMostInputs);
  EXPECT_EQ(inputs_.texts.front().text, "0");
  EXPECT_EQ(inputs_.texts.back().text, "2497");
  EXPECT_THAT(inputs_.notes, ElementsAre("1000 of 2500 texts count, evenly spaced"));
}

TEST(EvenlySpacedTest, CoversAllWhereTheyAreFew) {
  EXPECT_THAT(EvenlySpaced(3, 5), ElementsAre(0, 1, 2));
  EXPECT_THAT(EvenlySpaced(7, 3), ElementsAre(0, 2, 4));
  EXPECT_THAT(EvenlySpaced(0, 3), IsEmpty());
}

TEST(BeginningOfTest, EndsAtACharacter) {
  EXPECT_EQ(BeginningOf("caf\xc3\xa9", 4), "caf");
  EXPECT_EQ(BeginningOf("caf\xc3\xa9", 5), "caf\xc3\xa9");
}

TEST(FirstSentenceTest, EndsWithItsMarkOrLine) {
  EXPECT_EQ(FirstSentence("  What is 1.5 of it? Nobody knows."), "What is 1.5 of it?");
  EXPECT_EQ(FirstSentence("A title\nand a text"), "A title");
  EXPECT_EQ(FirstSentence("all of it"), "all of it");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "w ";
  EXPECT_EQ(FirstSentence(many), many.substr(0, 127));
  EXPECT_EQ(FirstSentence(std::string(5000, 'x')).size(), 1000u);
}

}  // namespace
}  // namespace longview::models
