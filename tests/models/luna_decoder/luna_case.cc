#include "tests/models/luna_decoder/luna_case.h"

#include "models/model_directory.h"

namespace longview::models {
namespace {

std::unique_ptr<LunaDecoder> MakeDecoder(const std::string& directory, const std::string& dtype,
                                         double cache_bytes) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const LunaDecoderConfig config =
      OrDie(ParseLunaDecoderConfig(files.config, files.common, files.config_path));
  const LunaDecoder::Limits limits = {config.max_tokens + (config.encoder ? 1 : 0),
                                      config.encoder ? config.encoder->max_tokens : 0, cache_bytes};
  return OrDie(LunaDecoder::Create(config, std::move(files.checkpoint), directory,
                                   dtype == "fp32" ? Compute::kFp32 : Compute::kBf16, limits));
}

}  // namespace

LunaCase::LunaCase(const std::string& directory, const std::string& dtype, double cache_bytes)
    : LunaCase(MakeDecoder(directory, dtype, cache_bytes)) {}

}  // namespace longview::models
