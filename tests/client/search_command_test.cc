// `longview search` against a fake server whose vectors count letters.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
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

  int SearchByVectors(std::vector<std::string> arguments, Output output = Output::kPiped) {
    arguments.insert(arguments.begin(), "--by=vectors");
    return Search(std::move(arguments), output);
  }

  // The documents' requests; the first ones are about the question and the model.
  std::vector<v1::EmbedRequest> Reading(const std::string& question) {
    const std::string sample = "A window slides over";
    std::vector<v1::EmbedRequest> requests;
    for (const v1::EmbedRequest& request : server_.EmbedRequests()) {
      if (request.text() != question && !request.text().starts_with(sample)) {
        requests.push_back(request);
      }
    }
    return requests;
  }
};

TEST_F(SearchCommandTest, TheBestPlaceComesFirst) {
  ASSERT_EQ(SearchByVectors({"--json", "--top=2", root_.string(), "bb"}), kAllWell) << err_.str();
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["input"], (root_ / "a.txt").string());
  const int first = lines[0]["start_line"], last = lines[0]["end_line"];
  EXPECT_EQ(last - first + 1, 84);
  EXPECT_NEAR(lines[0]["score"], 1.0, 1e-5);
  EXPECT_EQ(lines[0]["text"].get<std::string>().substr(0, 4), "bbb\n");
  EXPECT_EQ(err_.str(), "");
  ASSERT_EQ(SearchByVectors({"--top=1", root_.string(), "bb"}), kAllWell);
  EXPECT_EQ(out_.str(), (root_ / "a.txt").string() + ":" + std::to_string(first) + "-" +
                            std::to_string(last) + "\t1.0000\tbbb\n");
}

TEST_F(SearchCommandTest, OnePassOverEachFileWithPlacesInCodePoints) {
  ASSERT_EQ(SearchByVectors({"--json", root_.string(), "zz"}), kAllWell) << err_.str();
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
  ASSERT_EQ(SearchByVectors({"--json", "--top=1", root_.string(), "cc"}), kAllWell) << err_.str();
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  for (const v1::EmbedRequest& request : Reading("cc")) {
    EXPECT_EQ(request.chunks_size(), 0);
    EXPECT_TRUE(request.truncate());
  }
}

TEST_F(SearchCommandTest, AFileLongerThanTheModelIsReadInParts) {
  server_.SetEmbedding({.prompts = {}, .max_bytes = 1100});
  ASSERT_EQ(SearchByVectors({"--json", "--top=1", (root_ / "a.txt").string(), "cc"}), kAllWell);
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  EXPECT_EQ(Reading("cc").size(), 3u) << "the whole, and its two parts";
  // Not even one chunk fits: it is cut.
  server_.SetEmbedding({.prompts = {}, .max_bytes = 100});
  ASSERT_EQ(
      SearchByVectors({"--json", "--top=1", (root_ / "a.txt").string(), "cc"}, Output::kProgress),
      kAllWell);
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 3), "ccc");
  EXPECT_NE(err_.str().find("cut to the model's limit"), std::string::npos) << err_.str();
}

TEST_F(SearchCommandTest, PromptsByTheirUsualNames) {
  server_.SetEmbedding({.prompts = {"passage", "query"}});
  ASSERT_EQ(SearchByVectors({root_.string(), "cc"}), kAllWell) << err_.str();
  EXPECT_EQ(server_.EmbedRequests().front().prompt_name(), "query");
  for (const v1::EmbedRequest& request : Reading("cc")) {
    EXPECT_EQ(request.prompt_name(), "passage");
  }
  EXPECT_EQ(SearchByVectors({"--prompt_name=passage", root_.string(), "dd"}), kAllWell);
  EXPECT_EQ(SearchByVectors({"--prompt_name=web", root_.string(), "ee"}), kSomeInputFailed);
  EXPECT_NE(err_.str().find("prompt_name"), std::string::npos) << err_.str();
  server_.SetEmbedding({});
  ASSERT_EQ(SearchByVectors({root_.string(), "ff"}), kAllWell) << err_.str();
  EXPECT_FALSE(Reading("ff").back().has_prompt_name());
}

TEST_F(SearchCommandTest, BinaryLargeAndBrokenFiles) {
  Write("picture.bin", std::string("GIF\0\1\2", 6));
  Write("latin.txt", "caf\xE9 qqqq\n");
  Write("large.txt", std::string(3000, 'q'));
  ASSERT_EQ(SearchByVectors({"--max_file_bytes=2900", root_.string(), "qq"}, Output::kProgress),
            kAllWell)
      << err_.str();
  EXPECT_EQ(out_.str().rfind((root_ / "latin.txt").string() + ":1-1\t", 0), 0u) << out_.str();
  EXPECT_NE(err_.str().find("larger than --max_file_bytes=2900: " + (root_ / "large.txt").string()),
            std::string::npos)
      << err_.str();
  EXPECT_NE(err_.str().find("left out: 1 binary"), std::string::npos) << err_.str();
}

TEST_F(SearchCommandTest, AFailedFileIsReportedAndTheOthersAreSearched) {
  EXPECT_EQ(SearchByVectors({root_.string(), (root_ / "missing").string(), "bb"}),
            kSomeInputFailed);
  EXPECT_NE(err_.str().find("missing: NOT_FOUND"), std::string::npos) << err_.str();
  EXPECT_NE(out_.str().find("\tbbb\n"), std::string::npos);
  EXPECT_EQ(SearchByVectors({"--json", (root_ / "missing").string(), "bb"}), kSomeInputFailed);
  EXPECT_EQ(Lines()[0]["error"]["code"], "NOT_FOUND");
}

TEST_F(SearchCommandTest, ATerminalIsNotObeyedByFiles) {
  Write("evil.txt", "\x1b[2Jwwww\x7f\n");
  ASSERT_EQ(SearchByVectors({"--top=1", root_.string(), "ww"}), kAllWell);
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
  EXPECT_NE(out_.str().find("[2Jwwww"), std::string::npos) << out_.str();
}

TEST_F(SearchCommandTest, TheModelMadeForEmbeddingsIsTaken) {
  server_.AddModel("other", "embedding", "READY");
  EXPECT_EQ(Search({root_.string(), "bb"}), kUsage);
  EXPECT_NE(err_.str().find("vectors, other"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("--by=words needs no model"), std::string::npos) << err_.str();
  EXPECT_EQ(Search({"--model=other", root_.string(), "bb"}), kAllWell);
  EXPECT_EQ(Reading("bb").back().model(), "other");
}

TEST_F(SearchCommandTest, WordsAloneNeedNoServer) {
  Write("code.py", "def admittedRequests(self):\n    return self.admission_list\n");
  Write("other.py", "def refuse(self):\n    return None\n");
  ASSERT_EQ(Search({"--by=words", "--json", root_.string(), "where are requests admitted"}),
            kAllWell)
      << err_.str();
  EXPECT_TRUE(server_.EmbedRequests().empty());
  const std::vector<Json> lines = Lines();
  EXPECT_EQ(lines[0]["input"], (root_ / "code.py").string());
  EXPECT_GT(lines[0]["score"], 0);
  EXPECT_EQ(lines[0]["score"], lines[0]["bm25"]);
  EXPECT_FALSE(lines[0].contains("cosine"));
  EXPECT_EQ(Search({"--by=words", root_.string(), "?!"}), kUsage);
  EXPECT_NE(err_.str().find("no word"), std::string::npos) << err_.str();
}

// A word of the question brings to the front a place that vectors alone put last.
TEST_F(SearchCommandTest, BothAreSummedByDefault) {
  Write("word.txt", "bb yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n");
  ASSERT_EQ(Search({"--json", "--top=100", root_.string(), "bb"}), kAllWell) << err_.str();
  const std::vector<Json> both = Lines();
  double bm25 = 0, cosine = 0, score = 0;
  for (const Json& line : both) {
    bm25 += line["bm25"].get<double>();
    cosine += line["cosine"].get<double>();
    score += line["score"].get<double>();
  }
  EXPECT_GT(bm25, 0);
  EXPECT_GT(cosine, 0);
  EXPECT_NEAR(score, 0, 1e-6) << "z-scores of all";
  EXPECT_EQ(both[0]["input"], (root_ / "word.txt").string());
  ASSERT_EQ(SearchByVectors({"--json", "--top=100", root_.string(), "bb"}), kAllWell);
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 4), "bbb\n");
}

TEST_F(SearchCommandTest, WithoutAnyModelThatEmbedsTheWordsDo) {
  server_.RemoveModels();
  server_.AddModel("classes", "text-classification", "READY");
  ASSERT_EQ(Search({"--json", root_.string(), "bbb"}), kAllWell) << err_.str();
  EXPECT_NE(err_.str().find("by words alone"), std::string::npos) << err_.str();
  EXPECT_EQ(Lines()[0]["text"].get<std::string>().substr(0, 4), "bbb\n");
  EXPECT_EQ(SearchByVectors({root_.string(), "bbb"}), kUsage);
}

class KeptVectorsTest : public SearchCommandTest {
 protected:
  void SetUp() override {
    SearchCommandTest::SetUp();
    files_ = (root_ / "files").string();
    Write("files/a.txt", Block("aaa") + Block("bbb"));
    Write("files/b.txt", Block("ccc") + Block("ddd"));
    environment_["XDG_CACHE_HOME"] = (root_ / "cache").string();
  }

  // How many requests read the files when the question is asked.
  size_t ReadsFor(std::vector<std::string> flags) {
    const std::string question = "bb" + std::to_string(questions_++);
    flags.insert(flags.end(), {"--json", files_, question});
    const size_t before = Reading(question).size();
    EXPECT_EQ(SearchByVectors(flags), kAllWell) << err_.str();
    return Reading(question).size() - before;
  }

  std::vector<fs::path> Kept() {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "cache/longview/search")) {
      if (entry.is_regular_file() && entry.path().filename() != "CACHEDIR.TAG") {
        paths.push_back(entry.path());
      }
    }
    return paths;
  }

  std::string files_;
  int questions_ = 0;
};

TEST_F(KeptVectorsTest, TheSecondQuestionReadsNothing) {
  EXPECT_EQ(ReadsFor({}), 2u);
  const std::vector<Json> first = Lines();
  EXPECT_EQ(ReadsFor({}), 0u);
  EXPECT_EQ(Lines(), first) << "the digits of the questions count for nothing here";
  EXPECT_EQ(Kept().size(), 2u);
  const auto all = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(Kept()[0]).permissions() & all, fs::perms::none);
  EXPECT_EQ(fs::status(root_ / "cache/longview/search").permissions() & all, fs::perms::none);
  // A changed file alone is read again; content counts, not its name.
  Write("files/a.txt", Block("eee"));
  fs::rename(root_ / "files/b.txt", root_ / "files/moved.txt");
  EXPECT_EQ(ReadsFor({}), 1u);
  EXPECT_EQ(ReadsFor({"--no_cache"}), 2u);
  EXPECT_EQ(ReadsFor({"--cache_mib=0"}), 2u);
}

TEST_F(KeptVectorsTest, WhatVectorsDependOnIsPartOfTheirName) {
  server_.SetEmbedding({.prompts = {}});
  EXPECT_EQ(ReadsFor({}), 2u);
  EXPECT_EQ(ReadsFor({"--pooling=cls"}), 2u);
  server_.SetEmbedding({.prompts = {"passage"}});
  EXPECT_EQ(ReadsFor({}), 2u);
  server_.AddModel("other", "embedding", "READY");
  EXPECT_EQ(ReadsFor({"--model=other"}), 2u);
  EXPECT_EQ(ReadsFor({"--model=vectors"}), 0u);
}

TEST_F(KeptVectorsTest, DamagedFilesAreReadAnewAndReplaced) {
  EXPECT_EQ(ReadsFor({}), 2u);
  const std::vector<Json> first = Lines();
  const auto size = fs::file_size(Kept()[0]);
  for (const uintmax_t length : {uintmax_t{0}, uintmax_t{30}, size - 1, size - 40}) {
    fs::resize_file(Kept()[0], length);
    EXPECT_EQ(ReadsFor({}), 1u) << length;
    EXPECT_EQ(Lines(), first);
  }
  for (const size_t at : {size_t{3}, size_t{size / 2}, size_t{size - 2}}) {
    std::fstream file(Kept()[1], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x7e');
    file.close();
    EXPECT_EQ(ReadsFor({}), 1u) << at;
    EXPECT_EQ(Lines(), first);
  }
  // Another text's vectors under this one's name.
  fs::copy_file(Kept()[0], Kept()[1], fs::copy_options::overwrite_existing);
  EXPECT_EQ(ReadsFor({}), 1u);
  EXPECT_EQ(Lines(), first);
  EXPECT_EQ(ReadsFor({}), 0u);
}

TEST_F(KeptVectorsTest, WithoutAFolderTheAnswerIsTheSame) {
  environment_["XDG_CACHE_HOME"] = Write("a file", "not a folder") + "/below";
  EXPECT_EQ(ReadsFor({}), 2u);
  EXPECT_NE(err_.str().find("not kept for the next question: "), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("a file"), std::string::npos) << err_.str();
  EXPECT_EQ(Lines().size(), 4u);
  environment_["XDG_CACHE_HOME"] = "relative";  // By its specification it does not count.
  EXPECT_EQ(ReadsFor({}), 2u);
  EXPECT_EQ(err_.str(), "");
  environment_["HOME"] = root_.string();
  EXPECT_EQ(ReadsFor({}), 2u);
  EXPECT_EQ(ReadsFor({}), 0u);
  EXPECT_TRUE(fs::exists(root_ / ".cache/longview/search"));
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
