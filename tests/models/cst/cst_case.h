// An autoregressive Composite Slice decoder made from a directory. Slices behind the last position
// get that one's.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/cst/lm_model.h"
#include "models/generation/passes/forward_decoder.h"
#include "tests/models/generation/decoder_case.h"

namespace longview::models {

class CstCase : public OwnedReader<ForwardDecoder> {
 public:
  // On `device`; null: on the host.
  CstCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
          int max_tokens = 1 << 14, std::unique_ptr<Device> device = nullptr)
      : CstCase(OrDie(OpenModelDirectory(directory)), dtype, {max_tokens, cache_bytes},
                std::move(device)) {}

  const CstConfig& config() const { return config_; }

 private:
  CstCase(ModelDirectory files, const std::string& dtype, const ForwardDecoder::Limits& limits,
          std::unique_ptr<Device> device)
      : CstCase(OrDie(ParseCstConfig(files.config, files.common, files.config_path)), files, dtype,
                limits, std::move(device)) {}
  CstCase(const CstConfig& config, ModelDirectory& files, const std::string& dtype,
          const ForwardDecoder::Limits& limits, std::unique_ptr<Device> device)
      : OwnedReader(OrDie(ForwardDecoder::Create(
            MakeCstLm(config, std::move(files.checkpoint), files.path), files.path,
            dtype == "fp32" ? Compute::kFp32 : Compute::kBf16, limits, std::move(device)))),
        config_(config) {}

  const CstConfig config_;
};

}  // namespace longview::models
