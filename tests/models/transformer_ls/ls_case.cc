#include "tests/models/transformer_ls/ls_case.h"

#include <utility>

namespace longview::models {
namespace {

std::unique_ptr<LsDecoder> MakeDecoder(const std::string& directory, const std::string& dtype,
                                       double cache_bytes, int max_tokens) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const LsLmConfig config = OrDie(ParseLsLmConfig(files.config, files.common, files.config_path));
  return OrDie(LsDecoder::Create(config, std::move(files.checkpoint), directory,
                                 dtype == "fp32" ? Compute::kFp32 : Compute::kBf16, max_tokens,
                                 cache_bytes));
}

}  // namespace

LsCase::LsCase(const std::string& directory, const std::string& dtype, double cache_bytes,
               int max_tokens)
    : LsCase(MakeDecoder(directory, dtype, cache_bytes, max_tokens)) {}

}  // namespace longview::models
