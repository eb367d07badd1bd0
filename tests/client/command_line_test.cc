#include "client/cli/command_line.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace longview::client {
namespace {

absl::StatusOr<CommandLine> Parse(const std::vector<std::string>& arguments,
                                  const std::map<std::string, std::string>& environment = {}) {
  return ParseCommandLine(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  return std::string(Parse(arguments).status().message());
}

TEST(CommandLine, FlagsMayStandAnywhereInBothForms) {
  const auto line = Parse(
      {"classify", "a.c", "--model=m", "--top-k", "3", "b", "--json", "--", "--odd-name", "-"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command, "classify");
  EXPECT_EQ(line->model, "m");
  EXPECT_EQ(line->top_k, 3);
  EXPECT_TRUE(line->json);
  EXPECT_EQ(line->inputs, (std::vector<std::string>{"a.c", "b", "--odd-name", "-"}));
}

TEST(CommandLine, TheFlagBeatsTheEnvironmentBeatsTheDefault) {
  EXPECT_EQ(Parse({"models"})->server, "localhost:9000");
  EXPECT_EQ(Parse({"models"}, {{"LONGVIEW_SERVER", "far:1"}})->server, "far:1");
  EXPECT_EQ(Parse({"models"}, {{"LONGVIEW_SERVER", ""}})->server, "localhost:9000");
  EXPECT_EQ(Parse({"models", "--server", "near:2"}, {{"LONGVIEW_SERVER", "far:1"}})->server,
            "near:2");
}

TEST(CommandLine, PicturesAreNotTexts) {
  const auto line = Parse({"detect", "--draw=o.png", "--tile=512", "--masks", "x.png"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(ReadsPictures(*line));
  EXPECT_EQ(line->draw, "o.png");
  EXPECT_EQ(line->tile, 512);
  EXPECT_TRUE(line->masks);
  EXPECT_TRUE(ReadsPictures(*Parse({"classify", "--image", "x.png"})));
  EXPECT_FALSE(ReadsPictures(*Parse({"classify", "x.txt"})));
  EXPECT_EQ(ErrorOf({"detect", "--max_detections=0", "x"}).find("--max_detections"), 0u);
}

TEST(CommandLine, ErrorsNameTheFlagTheValueAndTheLimit) {
  EXPECT_EQ(ErrorOf({"classify", "--jobs", "0", "x"}),
            "--jobs must be an integer from 1 to 1024, not \"0\"");
  EXPECT_EQ(ErrorOf({"bench", "--rate=-1", "x"}), "--rate must be a number above 0, not \"-1\"");
  EXPECT_EQ(ErrorOf({"bench", "--rate=nan", "x"}), "--rate must be a number above 0, not \"nan\"");
  EXPECT_EQ(ErrorOf({"embed", "--normalize=yes", "x"}),
            "--normalize must be true or false, not \"yes\"");
  EXPECT_EQ(ErrorOf({"classify", "x", "--model"}), "--model needs a value");
  EXPECT_EQ(ErrorOf({"classify", "x", "--json=1"}), "--json takes no value");
}

TEST(CommandLine, UnknownThingsAreRefused) {
  EXPECT_EQ(ErrorOf({"segment", "x"}), "unknown command segment");
  EXPECT_EQ(ErrorOf({"classify", "--colour", "x"}), "unknown flag --colour");
  EXPECT_EQ(ErrorOf({"classify", "-j", "x"}), "unknown flag -j");
  EXPECT_EQ(ErrorOf({"models", "--top_k", "1"}), "models has no flag --top_k");
  EXPECT_EQ(ErrorOf({}), "a command is needed");
}

TEST(CommandLine, TheNearestNameIsOffered) {
  EXPECT_EQ(ErrorOf({"clasify", "x"}), "unknown command clasify; did you mean classify?");
  EXPECT_EQ(ErrorOf({"classify", "--modle=a", "x"}), "unknown flag --modle; did you mean --model?");
  EXPECT_EQ(ErrorOf({"models", "--cat=1"}), "unknown flag --cat; did you mean --ca?");
  EXPECT_EQ(ErrorOf({"classify", "--top-kk=1", "x"}),
            "unknown flag --top-kk; did you mean --top_k?");
  // A flag of another command is not offered.
  EXPECT_EQ(ErrorOf({"models", "--top_kk", "1"}), "unknown flag --top_kk");
  EXPECT_EQ(ErrorOf({std::string(1000, 'x')}), "unknown command " + std::string(64, 'x'));
}

TEST(CommandLine, HelpAndVersionAreCommandsToo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"help"}, {"-h"}, {"--help"}}) {
    const auto line = Parse(arguments);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_TRUE(line->help && line->command.empty());
  }
  const auto line = Parse({"help", "embed"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->help);
  EXPECT_EQ(line->command, "embed");
  EXPECT_TRUE(Parse({"version"})->version);
}

TEST(CommandLine, TheKeyMayComeFromTheEnvironment) {
  EXPECT_EQ(Parse({"models"}, {{"LONGVIEW_API_KEY", "k1"}})->api_key, "k1");
  EXPECT_EQ(Parse({"models", "--api_key=k2"}, {{"LONGVIEW_API_KEY", "k1"}})->api_key, "k2");
  EXPECT_EQ(Parse({"models"})->api_key, "");
}

TEST(CommandLine, InputsWhereTheyBelong) {
  EXPECT_NE(ErrorOf({"classify"}), "");
  EXPECT_NE(ErrorOf({"status", "x"}), "");
  EXPECT_NE(ErrorOf({"estimate", "--tokens", "5", "x"}), "");
  EXPECT_NE(ErrorOf({"estimate", "--width=5", "--height=5", "x"}), "");
  EXPECT_EQ(ErrorOf({"estimate", "--width=5"}), "--width and --height go together");
  EXPECT_NE(ErrorOf({"estimate", "--width=5", "--height=5", "--tokens=5"}), "");
  EXPECT_TRUE(Parse({"estimate", "--width=5", "--height=5"}).ok());
  EXPECT_NE(ErrorOf({"classify", "-", "-"}), "");
  EXPECT_TRUE(Parse({"estimate", "--tokens", "5"}).ok());
  EXPECT_TRUE(Parse({"bench", "--lengths", "700,1500"}).ok());
  EXPECT_EQ(Parse({"bench", "--lengths", "700,1500"})->lengths, (std::vector<int>{700, 1500}));
  EXPECT_NE(ErrorOf({"bench", "--lengths", "700,,1500"}), "");
}

TEST(CommandLine, QuantizeTakesOneDirectoryAndTextsOrPictures) {
  const auto line = Parse({"quantize", "model", "--texts", "a.txt", "--dry-run"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->inputs, std::vector<std::string>{"model"});
  EXPECT_EQ(line->texts, "a.txt");
  EXPECT_TRUE(line->dry_run);
  EXPECT_TRUE(Parse({"quantize", "model", "--pictures=folder"}).ok());
  EXPECT_EQ(ErrorOf({"quantize", "--texts=a"}), "quantize needs one model directory");
  EXPECT_EQ(ErrorOf({"quantize", "a", "b", "--texts=a"}), "quantize needs one model directory");
  EXPECT_EQ(ErrorOf({"quantize", "a"}), "quantize needs --texts, or --pictures");
  EXPECT_EQ(ErrorOf({"classify", "a", "--texts=a"}), "classify has no flag --texts");
}

TEST(CommandLine, HelpNamesEveryCommandAndItsFlags) {
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_TRUE(Parse({"classify", "-h"})->help);
  for (const char* command : {"classify", "embed", "models", "estimate", "status", "bench"}) {
    EXPECT_NE(HelpText("").find(command), std::string::npos);
    EXPECT_NE(HelpText(command).find("--server"), std::string::npos);
  }
  EXPECT_NE(HelpText("bench").find("--rate"), std::string::npos);
  EXPECT_EQ(HelpText("classify").find("--rate"), std::string::npos);
}

}  // namespace
}  // namespace longview::client
