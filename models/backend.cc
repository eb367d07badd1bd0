#include <string>

#include "ATen/Parallel.h"
#include "ATen/Version.h"
#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "models/model.h"

namespace longview::models {

std::string DescribeBackend() {
  const auto isa = [](kernels::Isa value) { return std::string(kernels::IsaName(value)); };
  return absl::StrCat(at::get_mkldnn_version(), ", ", at::get_num_threads(),
                      " compute threads, attention fp32 ", isa(kernels::BestFloatIsa()), ", bf16 ",
                      isa(kernels::BestBf16Isa()), kernels::Bf16IsNative() ? " (native)" : "");
}

}  // namespace longview::models
