#include "models/registry/devices.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/plugin.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr std::string_view kPrefix = "cuda:";

std::string NameOf(int index) { return absl::StrCat("cuda:", index); }

// The devices of a list, in its order.
absl::StatusOr<std::vector<int>> ParseList(std::string_view wanted) {
  std::vector<int> indices;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(std::string(wanted), ','))) {
    const int index = CudaIndex(name);
    if (index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(wanted.substr(0, 64)),
                       "' must be auto, cpu, cuda, or a list such as cuda:0,cuda:1"));
    }
    if (std::find(indices.begin(), indices.end(), index) != indices.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(wanted), "' names ", name, " twice"));
    }
    indices.push_back(index);
  }
  return indices;
}

std::string Listing(std::span<const std::string> found) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < found.size(); ++i) {
    lines.push_back(absl::StrCat(NameOf(static_cast<int>(i)), " ", found[i]));
  }
  return absl::StrJoin(lines, ", ");
}

Devices Use(std::span<const int> indices, std::span<const std::string> found) {
  Devices devices;
  std::vector<std::string> lines;
  for (const int index : indices) {
    devices.names.push_back(NameOf(index));
    lines.push_back(absl::StrCat(NameOf(index), " ", found[index]));
  }
  devices.names.push_back("cpu");
  lines.push_back("cpu");
  devices.report = absl::StrJoin(lines, ", ");
  return devices;
}

}  // namespace

int CudaIndex(std::string_view device) {
  if (!device.starts_with(kPrefix)) return -1;
  device.remove_prefix(kPrefix.size());
  int index = -1;
  const auto [end, error] = std::from_chars(device.begin(), device.end(), index);
  return error == std::errc() && end == device.end() ? index : -1;
}

absl::StatusOr<Devices> ChooseDevices(std::string_view wanted, std::span<const std::string> found,
                                      std::string_view why_none) {
  if (wanted == "cpu") return Devices{{"cpu"}, "cpu"};
  if (wanted == "auto" && found.empty()) {
    return Devices{{"cpu"}, absl::StrCat("cpu (", std::string(why_none), ")")};
  }
  std::vector<int> indices;
  if (wanted == "auto" || wanted == "cuda") {
    for (size_t i = 0; i < found.size(); ++i) indices.push_back(static_cast<int>(i));
  } else {
    ASSIGN_OR_RETURN(std::vector<int> listed, ParseList(wanted));
    indices = std::move(listed);
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat("'", std::string(wanted), "': ", std::string(why_none),
                                            "; auto or cpu runs without"));
  }
  for (const int index : indices) {
    if (index >= static_cast<int>(found.size())) {
      return absl::NotFoundError(absl::StrCat("'", std::string(wanted), "': there is no ",
                                              NameOf(index), "; there are ", Listing(found)));
    }
  }
  return Use(indices, found);
}

absl::StatusOr<Devices> FindDevices(std::string_view wanted) {
  // Asking a driver takes time and memory; nobody pays for it who wants the CPU.
  if (wanted == "cpu") return ChooseDevices(wanted, {}, "");
  const kernels::cuda::LoadedPlugin plugin = kernels::cuda::FindPlugin();
  std::vector<std::string> found;
  if (plugin.api != nullptr) {
    for (const kernels::cuda::DeviceProperties& device : kernels::cuda::ListDevices(*plugin.api)) {
      found.push_back(device.name);
    }
  }
  return ChooseDevices(wanted, found,
                       plugin.reason.empty() ? "the CUDA devices do not answer" : plugin.reason);
}

}  // namespace longview::models
