// `longview search` against a fake server whose vectors count letters.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/command_run.h"

namespace longview::client {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// 500 bytes of one word: a chunk by itself.
std::string Block(const std::string& word) {
  std::string text = word + "\n";
  while (text.size() < 500) text += "  " + word + "\n";
  return text + "\n";
}

class SearchCommandTest : public CommandRun {
 protected:
  SearchCommandTest() {
    server_.AddModel("classes", "text-classification", "READY", {"embedding"});
    server_.AddModel("vectors", "embedding", "READY");
  }
  void SetUp() override {
    CommandRun::SetUp();
    Write("a.txt", Block("aaa") + Block("bbb") + Block("ccc"));
    Write("b.txt", "\xC3\xA9t\xC3\xA9\n" + Block("xxx") + Block("zzz"));
  }

  int Search(std::vector<std::string> arguments, Output output = Output::kPiped) {
    arguments.insert(arguments.begin(), "search");
    return Run(std::move(arguments), output);
  }

  // The documents' requests; the first ones are about the question.
  std::vector<v1::EmbedRequest> Reading(const std::string& question) {
    std::vector<v1::EmbedRequest> requests;
    for (const v1::EmbedRequest& request : server_.EmbedRequests()) {
      if (request.text() != question) requests.push_back(request);
    }
    return requests;
  }
};

TEST_F(SearchCommandTest, TheBestPlaceComesFirst) {
  ASSERT_EQ(Search({"--json", "--top=2", root_.string(), "bb"}), kAllWell) << err_.str();
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["input"], (root_ / "a.txt").string());
  const int first = lines[0]["start_line"], last = lines[0]["end_line"];
  EXPECT_EQ(last - first + 1, 84);
  EXPECT_NEAR(lines[0]["score"], 1.0, 1e-5);
  EXPECT_EQ(lines[0]["text"].get<std::string>().substr(0, 4), "bbb\n");
  EXPECT_EQ(err_.str(), "");
  ASSERT_EQ(Search({"--top=1", root_.string(), "bb"}), kAllWell);
  EXPECT_EQ(out_.str(), (root_ / "a.txt").string() + ":" + std::to_string(first) + "-" +
                            std::to_string(last) + "\t1.0000\tbbb\n");
}

TEST_F(SearchCommandTest, OnePassOverEachFileWithPlacesInCodePoints) {
  ASSERT_EQ(Search({"--json", root_.string(), "zz"}), kAllWell) << err_.str();
  const std::vector<v1::EmbedRequest> requests = Reading("zz");
  ASSERT_EQ(requests.size(), 2u);
  for (const v1::EmbedRequest& request : requests) {
    EXPECT_GT(request.chunks_size(), 1);
    EXPECT_TRUE(request.normalize());
    EXPECT_FALSE(request.truncate());
  }
  EXPECT_NEAR(Lines()[0]["score"], 1.0, 1e-5) << "ranges behind letters of two bytes";
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 4), "zzz\n");
}

TEST_F(SearchCommandTest, AModelWithoutChunksGetsThemOneByOne) {
  server_.SetEmbedding({.prompts = {}, .late = false});
  ASSERT_EQ(Search({"--json", "--top=1", root_.string(), "cc"}), kAllWell) << err_.str();
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  for (const v1::EmbedRequest& request : Reading("cc")) {
    EXPECT_EQ(request.chunks_size(), 0);
    EXPECT_TRUE(request.truncate());
  }
}

TEST_F(SearchCommandTest, AFileLongerThanTheModelIsReadInParts) {
  server_.SetEmbedding({.prompts = {}, .max_bytes = 1100});
  ASSERT_EQ(Search({"--json", "--top=1", (root_ / "a.txt").string(), "cc"}), kAllWell);
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  EXPECT_EQ(Reading("cc").size(), 3u) << "the whole, and its two parts";
  // Not even one chunk fits: it is cut.
  server_.SetEmbedding({.prompts = {}, .max_bytes = 100});
  ASSERT_EQ(Search({"--json", "--top=1", (root_ / "a.txt").string(), "cc"}, Output::kProgress),
            kAllWell);
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  EXPECT_NE(err_.str().find("cut to the model's limit"), std::string::npos) << err_.str();
}

TEST_F(SearchCommandTest, PromptsByTheirUsualNames) {
  server_.SetEmbedding({.prompts = {"passage", "query"}});
  ASSERT_EQ(Search({root_.string(), "cc"}), kAllWell) << err_.str();
  EXPECT_EQ(server_.EmbedRequests().front().prompt_name(), "query");
  for (const v1::EmbedRequest& request : Reading("cc")) {
    EXPECT_EQ(request.prompt_name(), "passage");
  }
  EXPECT_EQ(Search({"--prompt_name=passage", root_.string(), "dd"}), kAllWell);
  EXPECT_EQ(Search({"--prompt_name=web", root_.string(), "ee"}), kSomeInputFailed);
  EXPECT_NE(err_.str().find("prompt_name"), std::string::npos) << err_.str();
  server_.SetEmbedding({});
  ASSERT_EQ(Search({root_.string(), "ff"}), kAllWell) << err_.str();
  EXPECT_FALSE(Reading("ff").back().has_prompt_name());
}

TEST_F(SearchCommandTest, BinaryLargeAndBrokenFiles) {
  Write("picture.bin", std::string("GIF\0\1\2", 6));
  Write("latin.txt", "caf\xE9 qqqq\n");
  Write("large.txt", std::string(3000, 'q'));
  ASSERT_EQ(Search({"--max_file_bytes=2900", root_.string(), "qq"}, Output::kProgress), kAllWell)
      << err_.str();
  EXPECT_EQ(out_.str().rfind((root_ / "latin.txt").string() + ":1-1\t", 0), 0u) << out_.str();
  EXPECT_NE(err_.str().find("larger than --max_file_bytes=2900: " + (root_ / "large.txt").string()),
            std::string::npos)
      << err_.str();
  EXPECT_NE(err_.str().find("left out: 1 binary"), std::string::npos) << err_.str();
}

TEST_F(SearchCommandTest, AFailedFileIsReportedAndTheOthersAreSearched) {
  EXPECT_EQ(Search({root_.string(), (root_ / "missing").string(), "bb"}), kSomeInputFailed);
  EXPECT_NE(err_.str().find("missing: NOT_FOUND"), std::string::npos) << err_.str();
  EXPECT_NE(out_.str().find("\tbbb\n"), std::string::npos);
  EXPECT_EQ(Search({"--json", (root_ / "missing").string(), "bb"}), kSomeInputFailed);
  EXPECT_EQ(Lines()[0]["error"]["code"], "NOT_FOUND");
}

TEST_F(SearchCommandTest, ATerminalIsNotObeyedByFiles) {
  Write("evil.txt", "\x1b[2Jwwww\x7f\n");
  ASSERT_EQ(Search({"--top=1", root_.string(), "ww"}), kAllWell);
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
  EXPECT_NE(out_.str().find("[2Jwwww"), std::string::npos) << out_.str();
}

TEST_F(SearchCommandTest, TheModelMadeForEmbeddingsIsTaken) {
  server_.AddModel("other", "embedding", "READY");
  EXPECT_EQ(Search({root_.string(), "bb"}), kUsage);
  EXPECT_NE(err_.str().find("vectors, other"), std::string::npos) << err_.str();
  EXPECT_EQ(Search({"--model=other", root_.string(), "bb"}), kAllWell);
  EXPECT_EQ(Reading("bb").back().model(), "other");
}

TEST_F(SearchCommandTest, UsageErrors) {
  EXPECT_EQ(Search({root_.string()}), kUsage);
  EXPECT_NE(err_.str().find("a question"), std::string::npos) << err_.str();
  EXPECT_EQ(Search({root_.string(), "  "}), kUsage);
  EXPECT_EQ(Search({"--topp=1", root_.string(), "x"}), kUsage);
  EXPECT_NE(err_.str().find("did you mean --top?"), std::string::npos) << err_.str();
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(Search({(root_ / "empty").string(), "x"}), kSomeInputFailed);
  EXPECT_NE(err_.str().find("no text files there"), std::string::npos) << err_.str();
}

}  // namespace
}  // namespace longview::client
