// The subcommands: each prints its answer and returns the exit status.
//
// Not thread-safe where they share a console.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/console.h"

namespace longview::client {

ExitCode RunClassify(const CommandLine& line, Console& console);
ExitCode RunDetect(const CommandLine& line, Console& console);
ExitCode RunEmbed(const CommandLine& line, Console& console);
ExitCode RunGenerate(const CommandLine& line, Console& console);
ExitCode RunModels(const CommandLine& line, Console& console);
ExitCode RunEstimate(const CommandLine& line, Console& console);
ExitCode RunQuantize(const CommandLine& line, Console& console);
ExitCode RunRerank(const CommandLine& line, Console& console);
ExitCode RunSearch(const CommandLine& line, Console& console);
ExitCode RunStatus(const CommandLine& line, Console& console);
ExitCode RunBench(const CommandLine& line, Console& console);

// Parses the arguments (without the program's name) and runs the command.
int RunLongview(const std::vector<std::string>& arguments, const Environment& environment,
                Console& console);

}  // namespace longview::client
