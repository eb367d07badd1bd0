// Values of a pickle while it is read, for pickle.cc alone. Containers name their parts by place in
// the reader's list of values, so a value that is shared a million times is one value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/pickle.h"

namespace longview::models {

using PickleId = uint32_t;  // A value's place.

struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kSequence,  // A tuple or a list.
    kDict,      // Parts are keys and values by turns.
    kMark,
    kStorageType,
    kOrderedDict,  // Name that is called, like the next two.
    kRebuildTensor,
    kRebuildParameter,
    kStorage,
    kTensor,
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;          // The value; for a storage or tensor, a place in its own list.
  std::string_view text = {};  // A part of the pickle's bytes.
  DType dtype = DType::kF32;   // A storage type's.
  std::vector<PickleId> parts = {};
};

// The value of a global name; none if a state dict does not need it.
std::optional<PickleValue> PickleGlobal(std::string_view module, std::string_view name);

// Checks a view against its storage: as many strides as sides, nothing negative, inside it.
absl::StatusOr<PickledTensor> CheckedTensor(PickledTensor tensor);

}  // namespace longview::models
