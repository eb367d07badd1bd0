#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/server_program.h"
#include "client/cli/terminal.h"

namespace longview::client {

ExitCode RunQuantize(const CommandLine& line, Console& console) {
  std::vector<std::string> flags = {absl::StrCat("--quantize=", line.inputs[0])};
  if (!line.texts.empty()) flags.push_back(absl::StrCat("--texts=", line.texts));
  if (!line.pictures.empty()) flags.push_back(absl::StrCat("--pictures=", line.pictures));
  if (line.dry_run) flags.emplace_back("--dry_run");
  const absl::StatusOr<int> status = RunServerProgram(ServerBesideThisProgram(), flags);
  if (!status.ok()) {
    Error(console) << status.status().message() << "\n";
    return kSomeInputFailed;
  }
  if (*status == 0) return kAllWell;
  return *status == kUsage ? kUsage : kSomeInputFailed;
}

}  // namespace longview::client
