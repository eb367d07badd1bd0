// Tests that every text encoder on a device passes: answers alone and together, on every device
// there is; memory that is asked for when it loads; batches that run in parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/encoder/family.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {

// The model of a directory on `device`.
absl::StatusOr<std::unique_ptr<Model>> LoadOnDevice(std::unique_ptr<Device> device,
                                                    const std::string& directory,
                                                    const std::string& dtype, MakeEncoder make);

struct DeviceGolden {
  std::string name;       // For what is printed.
  std::string directory;  // Directory of the model.
  MakeEncoder make;
  std::vector<Request> requests;
  std::function<double(const std::vector<Answer>&)>
      error;  // Largest error of the answers to all of them.
  TypeLimits limits;
};

// Each request alone within the limits, all together with the same bits, on every device.
void ExpectGoldenOnDevices(const DeviceGolden& golden);

// ExpectGoldenOnDevices for a model without a golden: the limits are on the distance from the CPU's
// answers in fp32.
void ExpectTheCpusAnswers(const std::string& name, const std::string& directory, MakeEncoder make,
                          const std::vector<Request>& requests, const TypeLimits& limits);

// Loads in fp32 where memory for weights and one longest document is free, and not with a byte
// less: then the message has need and limit. With that memory `requests`, which are several, run in
// parts with the bits that they have in ample memory.
void ExpectAdmittedExactly(const std::string& directory, MakeEncoder make,
                           const std::vector<Request>& requests);

// ExpectDropsChangeNothing of the directory's model in fp32.
void ExpectDropsChangeNothing(const std::string& directory, MakeEncoder make,
                              const std::vector<Request>& requests);

}  // namespace longview::models
