#include "models/checkpoint/pickle_values.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longview::models {
namespace {

struct StorageType {
  std::string_view name;
  DType dtype;
};

constexpr std::array<StorageType, 10> kStorageTypes = {{
    {"FloatStorage", DType::kF32},
    {"HalfStorage", DType::kF16},
    {"BFloat16Storage", DType::kBF16},
    {"DoubleStorage", DType::kF64},
    {"LongStorage", DType::kI64},
    {"IntStorage", DType::kI32},
    {"ShortStorage", DType::kI16},
    {"CharStorage", DType::kI8},
    {"ByteStorage", DType::kU8},
    {"BoolStorage", DType::kBool},
}};

constexpr size_t kMostSides = 64;

}  // namespace

std::optional<PickleValue> PickleGlobal(std::string_view module, std::string_view name) {
  using Kind = PickleValue::Kind;
  PickleValue value;
  if (module == "collections" && name == "OrderedDict") {
    value.kind = Kind::kOrderedDict;
  } else if (module == "torch._utils" && name == "_rebuild_tensor_v2") {
    value.kind = Kind::kRebuildTensor;
  } else if (module == "torch._utils" && name == "_rebuild_parameter") {
    value.kind = Kind::kRebuildParameter;
  } else {
    const auto type = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                   [&](const StorageType& each) { return each.name == name; });
    if (module != "torch" || type == kStorageTypes.end()) return std::nullopt;
    value.kind = Kind::kStorageType;
    value.dtype = type->dtype;
  }
  return value;
}

absl::StatusOr<PickledTensor> CheckedTensor(PickledTensor tensor) {
  const auto refuse = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape [", absl::StrJoin(tensor.shape, ", "), "] with strides [",
                     absl::StrJoin(tensor.strides, ", "), "] at ", tensor.offset, " ", what));
  };
  if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > kMostSides) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", tensor.shape.size(), " sides with ", tensor.strides.size(),
                     " strides; they must be as many, and at most ", kMostSides));
  }
  int64_t last = 0, elements = 1;
  bool overflow = __builtin_add_overflow(tensor.offset, 0, &last);
  bool empty = false;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0 || tensor.strides[i] < 0)
      return refuse("has a negative side or stride");
    empty = empty || tensor.shape[i] == 0;
  }
  for (size_t i = 0; i < tensor.shape.size() && !empty; ++i) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
    overflow |= __builtin_mul_overflow(elements, tensor.shape[i], &elements);
  }
  constexpr int64_t kMostElements = int64_t{1} << 59;  // Their bytes are counted in 64 bits.
  if (!empty && (overflow || elements > kMostElements ||
                 static_cast<uint64_t>(last) >= tensor.storage.elements)) {
    return refuse(
        absl::StrCat("reaches beyond its storage of ", tensor.storage.elements, " elements"));
  }
  return tensor;
}

}  // namespace longview::models
