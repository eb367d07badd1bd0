#include "client/cli/commands.h"

#include "absl/status/statusor.h"
#include "client/cli/terminal.h"

namespace longview::client {

int RunLongview(const std::vector<std::string>& arguments, const Environment& environment,
                Console& console) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments, environment);
  if (!line.ok()) {
    Error(console) << line.status().message() << "\nlongview --help lists commands and flags\n";
    return kUsage;
  }
  if (line->version) {
    console.out << "longview " << LONGVIEW_VERSION << "\n";
    return kAllWell;
  }
  if (line->help) {
    console.out << HelpText(line->command);
    return kAllWell;
  }
  if (line->command == "classify") return RunClassify(*line, console);
  if (line->command == "detect") return RunDetect(*line, console);
  if (line->command == "embed") return RunEmbed(*line, console);
  if (line->command == "generate") return RunGenerate(*line, console);
  if (line->command == "models") return RunModels(*line, console);
  if (line->command == "estimate") return RunEstimate(*line, console);
  if (line->command == "quantize") return RunQuantize(*line, console);
  if (line->command == "rerank") return RunRerank(*line, console);
  if (line->command == "search") return RunSearch(*line, console);
  if (line->command == "status") return RunStatus(*line, console);
  return RunBench(*line, console);
}

}  // namespace longview::client
