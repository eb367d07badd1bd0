#include "tests/models/cst/cst_case.h"

#include "models/model_directory.h"

namespace longview::models {
namespace {

std::unique_ptr<CstDecoder> Load(const std::string& directory, const std::string& dtype,
                                 double cache_bytes, int max_tokens) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const CstConfig config = OrDie(ParseCstConfig(files.config, files.common, files.config_path));
  return OrDie(CstDecoder::Create(config, std::move(files.checkpoint), directory,
                                  dtype == "fp32" ? Compute::kFp32 : Compute::kBf16, max_tokens,
                                  cache_bytes));
}

}  // namespace

CstCase::CstCase(const std::string& directory, const std::string& dtype, double cache_bytes,
                 int max_tokens)
    : CstCase(Load(directory, dtype, cache_bytes, max_tokens)) {}

}  // namespace longview::models
