#include "client/cli/server_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace longview::client {

absl::StatusOr<int> RunServerProgram(const std::string& program, std::vector<std::string> flags) {
  std::string name = program;
  std::vector<char*> arguments = {name.data()};
  for (std::string& flag : flags) arguments.push_back(flag.data());
  arguments.push_back(nullptr);
  pid_t child;
  const int error =
      posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot run ", program, ": ", std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return absl::InternalError(absl::StrCat("waiting for ", program, ": ", std::strerror(errno)));
    }
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return absl::InternalError(absl::StrCat(program, " ended by signal ", WTERMSIG(status)));
}

std::string ServerBesideThisProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "longview-server";
  return (self.parent_path() / "longview-server").string();
}

}  // namespace longview::client
