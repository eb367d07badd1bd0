// A Transformer-LS decoder on a device, made from a directory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/dense/compute_choice.h"
#include "tests/models/transformer_ls/ls_case.h"

namespace longview::models {

inline absl::StatusOr<std::unique_ptr<ForwardDecoder>> LoadOnDevice(const std::string& directory,
                                                                    const std::string& dtype,
                                                                    std::unique_ptr<Device> device,
                                                                    double cache_bytes = 16 << 20,
                                                                    int max_tokens = 1 << 12) {
  return LoadLs(directory, OrDie(ChooseDeviceCompute(dtype, "", "")).compute,
                {max_tokens, cache_bytes}, std::move(device));
}

class DeviceLsCase : public LsCase {
 public:
  DeviceLsCase(const std::string& directory, const std::string& dtype,
               std::unique_ptr<Device> device)
      : LsCase(OrDie(LoadOnDevice(directory, dtype, std::move(device)))) {}
};

}  // namespace longview::models
