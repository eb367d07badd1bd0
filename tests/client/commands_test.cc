// The subcommands against a fake server: what they print and return.
#include "client/cli/commands.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/server_program.h"
#include "tests/client/command_run.h"
#include "tests/client/fake_server.h"

namespace longview::client {
namespace {

using Json = nlohmann::json;

class CommandsTest : public CommandRun {
 protected:
  CommandsTest() {
    server_.AddModel("code", "text-classification", "READY");
    server_.AddModel("vectors", "embedding", "READY");
    server_.AddModel("broken", "text-classification", "UNAVAILABLE");
  }
};

TEST_F(CommandsTest, ClassifyAnswersInInputOrder) {
  std::vector<std::string> arguments = {"classify", "--json", "--jobs=8"};
  std::vector<std::string> labels;
  for (int i = 0; i < 40; ++i) {
    labels.push_back(absl::StrCat("label", i));
    arguments.push_back(Write(absl::StrCat("f", i), labels[i] + " text"));
  }
  EXPECT_EQ(Run(arguments), kAllWell);
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(lines[i]["input"], arguments[3 + i]);
    EXPECT_EQ(lines[i]["labels"][0]["name"], labels[i]);
    EXPECT_EQ(lines[i]["usage"]["truncated_tokens"], 0) << "zero values are written";
  }
  EXPECT_EQ(err_.str(), "") << "no progress without a terminal";
}

TEST_F(CommandsTest, ATerminalGetsASummaryOfManyInputs) {
  const std::string good = Write("good", "fine text"), latin = Write("latin", "caf\xE9");
  server_.FailNext({grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                 "text: 9 tokens are more than the model's limit of 8; "
                                 "\"truncate\" cuts what does not fit")});
  EXPECT_EQ(Run({"classify", "--jobs=1", good, good, latin}, Output::kProgress), kSomeInputFailed);
  EXPECT_NE(err_.str().find("3 inputs"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("; 2 failed: 1 is too long (--truncate cuts them), 1 is not UTF-8 "
                            "(--lossy replaces what is invalid)\n"),
            std::string::npos)
      << err_.str();
  EXPECT_EQ(Run({"classify", good}, Output::kProgress), kAllWell);
  EXPECT_EQ(err_.str(), "") << "one input needs no summary";
}

TEST_F(CommandsTest, TheOnlyLoadedModelWithTheTaskIsTaken) {
  EXPECT_EQ(Run({"classify", Write("a", "x")}), kAllWell);
  EXPECT_EQ(server_.ClassifyRequests().back().model(), "code");
  server_.AddModel("other", "text-classification", "READY");
  EXPECT_EQ(Run({"classify", Write("a", "x")}), kUsage);
  EXPECT_NE(err_.str().find("code, other"), std::string::npos) << err_.str();
  EXPECT_EQ(Run({"classify", "--model=other", Write("a", "x")}), kAllWell);
  EXPECT_EQ(server_.ClassifyRequests().back().model(), "other");
}

TEST_F(CommandsTest, AModelThatIsLoadingIsWaitedFor) {
  FakeServer loading;
  loading.AddModel("late", "", "LOADING");
  loading.FailNext({Refusal(grpc::StatusCode::UNAVAILABLE, "model late is loading", 0.01)});
  Console console{in_, out_, err_, false};
  const auto none = [](const std::string&) { return std::nullopt; };
  EXPECT_EQ(RunLongview({"classify", "--server=" + loading.Address(), Write("a", "Go code")}, none,
                        console),
            kAllWell)
      << err_.str();
  EXPECT_EQ(loading.TextCalls(), 2);
  EXPECT_EQ(loading.ClassifyRequests().back().model(), "late");
}

TEST_F(CommandsTest, TextOutputIsOneTabSeparatedLine) {
  const std::string path = Write("a", "Rust code");
  EXPECT_EQ(Run({"classify", path}), kAllWell);
  EXPECT_EQ(out_.str(), path + "\tRust 0.7500\n");
  EXPECT_EQ(server_.ClassifyRequests().back().top_k(), 1);
  EXPECT_EQ(Run({"embed", path}), kAllWell);
  EXPECT_EQ(out_.str(), path + "\t9 -0.5\n");
}

TEST_F(CommandsTest, AFailedInputIsReportedAndTheOthersGoOn) {
  const std::string good = Write("good", "fine text");
  const std::string latin = Write("latin", "caf\xE9");
  const std::string missing = (root_ / "missing").string();
  EXPECT_EQ(Run({"classify", "--json", "--jobs=1", latin, missing, good}), kSomeInputFailed);
  const std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["error"]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(lines[0]["input"], latin);
  EXPECT_EQ(lines[1]["error"]["code"], "NOT_FOUND");
  EXPECT_EQ(lines[2]["labels"][0]["name"], "fine");

  server_.FailNext({grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "text: 9 tokens, limit 8")});
  EXPECT_EQ(Run({"classify", "--jobs=1", good, good}), kSomeInputFailed);
  EXPECT_EQ(out_.str(), good + "\tfine 0.7500\n");
  EXPECT_NE(err_.str().find("INVALID_ARGUMENT: text: 9 tokens, limit 8"), std::string::npos);
}

TEST_F(CommandsTest, LossyReplacesAndStandardInputIsAnInput) {
  EXPECT_EQ(Run({"classify", "--lossy", Write("latin", "caf\xE9 au lait")}), kAllWell);
  EXPECT_EQ(server_.ClassifyRequests().back().text(), "caf\xEF\xBF\xBD au lait");
  in_.str("piped text");
  EXPECT_EQ(Run({"classify", "-"}), kAllWell);
  EXPECT_EQ(out_.str(), "-\tpiped 0.7500\n");
}

// The first bytes of pictures, which are no UTF-8, and a few more.
const char kPng[] = "\x89PNG\r\n\x1a\n\xff";
const char kJpeg[] = "\xff\xd8\xff\xe0JFIF";

TEST_F(CommandsTest, PicturesGoToTheModelForPictures) {
  server_.AddModel("sees", "image-classification", "READY");
  const std::string png = Write("in/a.png", kPng), text = Write("in/b.txt", "Rust code");
  const std::string jpeg = Write("in/c", kJpeg);
  EXPECT_EQ(Run({"classify", png}), kAllWell) << err_.str();
  EXPECT_EQ(out_.str(), png + "\tpicture of 9 0.5000\n");
  EXPECT_EQ(server_.ImageRequests().back().model(), "sees");
  EXPECT_EQ(server_.ImageRequests().back().top_k(), 1);
  EXPECT_EQ(Run({"classify", (root_ / "in").string()}), kAllWell) << err_.str();
  EXPECT_EQ(out_.str(), png + "\tpicture of 9 0.5000\n" + text + "\tRust 0.7500\n" + jpeg +
                            "\tpicture of 8 0.5000\n");
  in_.str(kPng);
  EXPECT_EQ(Run({"classify", "-"}), kAllWell) << err_.str();
  EXPECT_EQ(out_.str(), "-\tpicture of 9 0.5000\n");
}

TEST_F(CommandsTest, AModelThatIsNamedIsForTheInputsItCanDo) {
  server_.AddModel("sees", "image-classification", "READY");
  server_.AddModel("other", "text-classification", "READY");
  const std::string png = Write("in/a.png", kPng);
  Write("in/b.txt", "Rust code");
  const std::string folder = (root_ / "in").string();
  EXPECT_EQ(Run({"classify", folder}), kUsage) << "two do texts";
  EXPECT_EQ(Run({"classify", "--model=other", folder}), kAllWell) << err_.str();
  EXPECT_EQ(server_.ClassifyRequests().back().model(), "other");
  EXPECT_EQ(server_.ImageRequests().back().model(), "sees");
  EXPECT_EQ(Run({"classify", "--model=other", png}), kAllWell);
  EXPECT_EQ(server_.ImageRequests().back().model(), "other") << "it is for the server to refuse";
}

TEST_F(CommandsTest, PicturesWithoutAModelForThem) {
  EXPECT_EQ(Run({"classify", Write("a.png", kPng)}), kUsage);
  EXPECT_NE(err_.str().find("no model for image-classification"), std::string::npos) << err_.str();
}

TEST_F(CommandsTest, APathIsNamedOnceInAnError) {
  for (const auto& [content, part] : std::vector<std::pair<std::string, std::string>>{
           {"caf\xE9", "INVALID_ARGUMENT: not UTF-8 at byte 3"},
           {kPng, "INVALID_ARGUMENT: a picture (PNG), not a text; classify and detect read"}}) {
    const std::string path = Write("input", content);
    EXPECT_EQ(Run({"embed", path}), kSomeInputFailed);
    EXPECT_TRUE(err_.str().starts_with("longview: " + path + ": " + part)) << err_.str();
    EXPECT_EQ(err_.str().find(path), err_.str().rfind(path)) << err_.str();
  }
}

TEST_F(CommandsTest, AShortTimeoutIsSaidToBeWhatEndedTheCall) {
  server_.AnswerTooLate();
  for (const char* command : {"models", "embed"}) {
    std::vector<std::string> arguments = {command, "--timeout=0.0001"};
    if (arguments[0] == "embed") arguments.push_back(Write("a", "x"));
    EXPECT_EQ(Run(arguments), kSomeInputFailed);
    EXPECT_EQ(err_.str().find("TLS"), std::string::npos) << err_.str();
    EXPECT_NE(err_.str().find("DEADLINE_EXCEEDED"), std::string::npos) << err_.str();
    EXPECT_NE(err_.str().find("(--timeout is 0.0001 s)"), std::string::npos) << err_.str();
  }
}

TEST_F(CommandsTest, AUrlIsToldWhichAddressItShouldBe) {
  Console console{in_, out_, err_, false};
  const auto none = [](const std::string&) { return std::nullopt; };
  const auto said = [&](const std::string& server) {
    err_.str("");
    EXPECT_EQ(RunLongview({"status", "--server=" + server}, none, console), kServerNotReached);
    return err_.str();
  };
  EXPECT_EQ(said("http://" + server_.Address()),
            "longview: --server takes the gRPC port's address without http://: " +
                server_.Address() + "\n");
  EXPECT_EQ(said("https://" + server_.Address() + "/v1"),
            "longview: --server takes the gRPC port's address without https://: " +
                server_.Address() + " --tls\n");
  EXPECT_EQ(
      said("http://localhost"),
      "longview: --server takes the gRPC port's address without http://, as localhost:9000\n");
}

TEST_F(CommandsTest, GeneratePrintsTextAsItComes) {
  server_.AddModel("lm", "text-generation", "READY");
  const std::string path = Write("a", "once upon a time");
  EXPECT_EQ(Run({"generate", path}), kAllWell) << err_.str();
  EXPECT_EQ(out_.str(), "once upon a time \n");
  EXPECT_EQ(Run({"generate", path, Write("b", "two")}), kAllWell);
  EXPECT_NE(out_.str().find("==> " + path + " <==\nonce upon"), std::string::npos) << out_.str();
  EXPECT_EQ(Run({"generate", "--n=2", Write("b", "two")}), kAllWell);
  EXPECT_EQ(out_.str(), "two \n--- sample 2 ---\ntwo \n");
}

TEST_F(CommandsTest, GenerateOptionsArriveByName) {
  server_.AddModel("lm", "text-generation", "READY");
  EXPECT_EQ(Run({"generate", "--max_tokens=7", "--temperature", "0.5", "--top-p=0.25", "--top_k=3",
                 "--stop=x", "--stop=y", "--seed=9", "--repetition_penalty=1.5", "--echo",
                 "--document=h", Write("a", "x")}),
            kAllWell)
      << err_.str();
  const v1::GenerateRequest request = server_.LastGenerateRequest();
  EXPECT_EQ(request.max_tokens(), 7);
  EXPECT_EQ(request.temperature(), 0.5f);
  EXPECT_EQ(request.top_p(), 0.25f);
  EXPECT_EQ(request.top_k(), 3);
  ASSERT_EQ(request.stop_size(), 2);
  EXPECT_EQ(request.stop(1), "y");
  EXPECT_EQ(request.seed(), 9u);
  EXPECT_EQ(request.repetition_penalty(), 1.5f);
  EXPECT_TRUE(request.echo());
  EXPECT_EQ(request.document(), "h");
  EXPECT_FALSE(request.has_n());
  EXPECT_EQ(Run({"generate", "--temperature=hot", Write("a", "x")}), kUsage);
  EXPECT_EQ(Run({"classify", "--temperature=1", Write("a", "x")}), kUsage);
}

TEST_F(CommandsTest, GenerateJsonHasOneObjectPerInput) {
  server_.AddModel("lm", "text-generation", "READY");
  EXPECT_EQ(Run({"generate", "--json", Write("a", "one"), Write("b", "two")}), kAllWell);
  std::vector<Json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["text"], "two");
  EXPECT_EQ(lines[1]["finish_reason"], "");
  EXPECT_TRUE(server_.LastGenerateRequest().collect());
  EXPECT_EQ(Run({"generate", "--json", "--n=3", Write("a", "one")}), kAllWell);
  lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["samples"].size(), 3u);
  EXPECT_EQ(lines[0]["samples"][2]["index"], 2);
}

TEST_F(CommandsTest, AFailedInputOfGenerateIsReported) {
  server_.AddModel("lm", "text-generation", "READY");
  server_.FailNext({grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "stop: too many")});
  EXPECT_EQ(Run({"generate", Write("a", "one"), Write("b", "two")}), kSomeInputFailed);
  EXPECT_NE(err_.str().find("INVALID_ARGUMENT: stop: too many"), std::string::npos);
  EXPECT_NE(out_.str().find("two"), std::string::npos);
}

TEST_F(CommandsTest, ProgressOnTerminalsOnly) {
  EXPECT_EQ(Run({"classify", Write("a", "x"), Write("b", "y")}, Output::kProgress), kAllWell);
  EXPECT_NE(err_.str().find("2 of 2"), std::string::npos);
}

TEST_F(CommandsTest, NoServerIsExitThree) {
  Console console{in_, out_, err_, false};
  const auto none = [](const std::string&) { return std::nullopt; };
  EXPECT_EQ(RunLongview({"status", "--server=localhost:1", "--timeout=1"}, none, console),
            kServerNotReached);
  EXPECT_NE(err_.str().find("localhost:1"), std::string::npos);
}

TEST_F(CommandsTest, StatusSaysWhetherTheServerIsReady) {
  EXPECT_EQ(Run({"status"}), kAllWell);
  EXPECT_NE(out_.str().find("longview 1.2.3"), std::string::npos);
  server_.SetReady(false);
  EXPECT_EQ(Run({"status", "--json"}), kSomeInputFailed);
  EXPECT_EQ(Lines()[0]["ready"], false);
  EXPECT_EQ(Lines()[0]["live"], true);
}

TEST_F(CommandsTest, ModelsListsAll) {
  EXPECT_EQ(Run({"models", "--json"}), kAllWell);
  ASSERT_EQ(Lines().size(), 3u);
  EXPECT_EQ(Lines()[2]["name"], "broken");
  EXPECT_EQ(Lines()[2]["state"], "UNAVAILABLE");
}

TEST_F(CommandsTest, ModelsStandInColumnsOnATerminal) {
  ASSERT_EQ(Run({"models"}), kAllWell);
  std::vector<std::string> lines = TextLines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("code\tversion ")) << lines[0];
  EXPECT_EQ(out_.str().find('\033'), std::string::npos);
  ASSERT_EQ(Run({"models"}, Output::kTerminal), kAllWell);
  lines = TextLines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("code     version ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("vectors  version ")) << lines[1];
  EXPECT_NE(lines[0].find("\033[32mREADY\033[0m"), std::string::npos) << lines[0];
  EXPECT_NE(lines[2].find("\033[31mUNAVAILABLE\033[0m"), std::string::npos) << lines[2];
  // The codes of colours take no room.
  EXPECT_EQ(lines[0].find("text-classification"), lines[2].find("text-classification"));
}

TEST_F(CommandsTest, ErrorsAreRedOnATerminal) {
  EXPECT_EQ(Run({"modles"}, Output::kTerminal), kUsage);
  EXPECT_TRUE(err_.str().starts_with("\033[31mlongview:\033[0m unknown command")) << err_.str();
}

TEST_F(CommandsTest, EstimateTakesALength) {
  EXPECT_EQ(Run({"estimate", "--model=code", "--tokens=2000", "--json"}), kAllWell);
  EXPECT_DOUBLE_EQ(Lines()[0]["seconds"], 2.0);
}

TEST_F(CommandsTest, EstimateTakesAPicturesSize) {
  EXPECT_EQ(Run({"estimate", "--model=code", "--width=1000", "--height=3000", "--json"}), kAllWell);
  EXPECT_DOUBLE_EQ(Lines()[0]["seconds"], 3.0);
  EXPECT_EQ(Lines()[0]["usage"]["height"], 3000);
  EXPECT_EQ(Run({"estimate", "--model=code", "--width=1000", "--height=3000"}), kAllWell);
  EXPECT_EQ(out_.str().rfind("1000 x 3000 pixels\t", 0), 0u) << out_.str();
}

TEST_F(CommandsTest, BenchReportsInGhzTerms) {
  const std::string path = Write("a", "short text");
  EXPECT_EQ(Run({"bench", "--json", "--model=code", "--rate=200", "--duration=0.5", path}),
            kAllWell);
  const Json report = Lines()[0];
  EXPECT_EQ(report["count"], 100) << "as many as planned";
  EXPECT_EQ(report["statusCodeDistribution"]["OK"], report["count"]);
  EXPECT_EQ(report["options"]["call"], "longview.v1.TextService.Classify");
  EXPECT_EQ(server_.TextCalls(), report["count"].get<int>() + 1) << "one warm-up call";
}

TEST_F(CommandsTest, BenchOfStreamsReportsFirstTokensAndGaps) {
  const std::string path = Write("a", "four words make pieces");
  EXPECT_EQ(Run({"bench", "--json", "--task=generate", "--model=lm", "--rate=100", "--duration=0.5",
                 "--max_tokens=4", path}),
            kAllWell);
  const Json report = Lines()[0];
  EXPECT_EQ(report["options"]["call"], "longview.v1.TextService.Generate");
  EXPECT_EQ(report["statusCodeDistribution"]["OK"], report["count"]);
  EXPECT_EQ(report["timeToFirstToken"]["count"], report["count"]);
  EXPECT_EQ(report["tokenGap"]["count"], report["count"].get<int>() * 3);
  EXPECT_LE(report["timeToFirstToken"]["slowest"], report["slowest"]);
  EXPECT_EQ(server_.LastGenerateRequest().max_tokens(), 4);
}

TEST_F(CommandsTest, BenchStopsAtARequestThatIsRefusedBeforeTheTest) {
  server_.FailNext({grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "too long")});
  EXPECT_EQ(Run({"bench", "--model=code", "--duration=60", Write("a", "x")}), kSomeInputFailed);
  EXPECT_EQ(server_.TextCalls(), 1);
}

TEST_F(CommandsTest, UsageErrors) {
  EXPECT_EQ(Run({"segment", "x"}), kUsage);
  EXPECT_NE(err_.str().find("unknown command segment"), std::string::npos);
  EXPECT_EQ(Run({"--version"}), kAllWell);
  EXPECT_TRUE(out_.str().starts_with("longview ")) << out_.str();
}

TEST_F(CommandsTest, TheServersProgramIsRunAndItsStatusPassedOn) {
  const std::string program = Write("server", "#!/bin/sh\n[ \"$1\" = --check=well ]\n");
  chmod(program.c_str(), 0755);
  EXPECT_EQ(*RunServerProgram(program, {"--check=well"}), 0);
  EXPECT_EQ(*RunServerProgram(program, {"--check=ill"}), 1);
  EXPECT_FALSE(RunServerProgram((root_ / "absent").string(), {"--check=well"}).ok());
}

}  // namespace
}  // namespace longview::client
