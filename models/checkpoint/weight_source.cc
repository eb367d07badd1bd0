#include "models/checkpoint/weight_source.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/checkpoint/convert.h"
#include "models/status_macros.h"

namespace longview::models {

namespace {

constexpr size_t kListed = 8;                       // Names spelled out in one message.
constexpr size_t kComparedBytes = size_t{1} << 20;  // At a time, of tied tensors.

absl::string_view View(std::string_view s) { return {s.data(), s.size()}; }

// Greedy match with backtracking to the last `*` only, which is enough for this pattern form.
bool Matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

// REQUIRES: two tensors of one shape.
absl::StatusOr<bool> SameValues(const TensorView& a, const TensorView& b) {
  if (a.dtype != b.dtype) return false;
  const size_t piece = std::min(kComparedBytes, a.bytes);
  std::vector<std::byte> of_a(piece), of_b(piece);
  for (size_t done = 0; done < a.bytes; done += piece) {
    const size_t count = std::min(piece, a.bytes - done);
    absl::Status status = a.Read(done, std::span(of_a).first(count));
    if (status.ok()) status = b.Read(done, std::span(of_b).first(count));
    if (!status.ok()) return status;
    if (std::memcmp(of_a.data(), of_b.data(), count) != 0) return false;
  }
  return true;
}

}  // namespace

WeightSource::WeightSource(const Checkpoint& checkpoint, std::string origin)
    : checkpoint_(checkpoint), origin_(std::move(origin)) {}

absl::StatusOr<std::string> WeightSource::FindPrefix(std::span<const std::string_view> prefixes,
                                                     std::string_view anchor) const {
  std::vector<std::string> tried;
  for (std::string_view prefix : prefixes) {
    tried.push_back(absl::StrCat(View(prefix), View(anchor)));
    if (Has(tried.back())) return std::string(prefix);
  }
  return absl::NotFoundError(
      absl::StrCat(origin_, ": none of these tensors is there: ", absl::StrJoin(tried, ", ")));
}

void WeightSource::AcceptSpelling(std::string suffix, std::string other) {
  spellings_.emplace_back(std::move(suffix), std::move(other));
}

void WeightSource::Ignore(std::string pattern) { ignored_.push_back(std::move(pattern)); }

const TensorView* WeightSource::Locate(std::string_view name) const {
  if (const TensorView* tensor = checkpoint_.Find(name)) return tensor;
  for (const auto& [suffix, other] : spellings_) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view stem = name.substr(0, name.size() - suffix.size());
    if (const TensorView* tensor = checkpoint_.Find(absl::StrCat(View(stem), other))) return tensor;
  }
  return nullptr;
}

bool WeightSource::Has(std::string_view name) const { return Locate(name) != nullptr; }

absl::StatusOr<const TensorView*> WeightSource::Take(const TensorView& tensor,
                                                     const std::vector<int64_t>& shape) {
  used_.insert(tensor.name);
  if (tensor.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(origin_, ": tensor \"", tensor.name,
                                                   "\": expected shape ", ShapeText(shape),
                                                   ", found ", ShapeText(tensor.shape)));
  }
  if (!IsFloatWeight(tensor.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        origin_, ": tensor \"", tensor.name, "\": expected dtype F64, F32, F16 or BF16, found ",
        View(DTypeName(tensor.dtype))));
  }
  return &tensor;
}

absl::StatusOr<const TensorView*> WeightSource::Get(std::string_view name,
                                                    const std::vector<int64_t>& shape) {
  if (const TensorView* tensor = Locate(name)) return Take(*tensor, shape);
  return absl::NotFoundError(
      absl::StrCat(origin_, ": tensor \"", View(name), "\" ", ShapeText(shape), " is missing"));
}

absl::StatusOr<const TensorView*> WeightSource::GetOptional(std::string_view name,
                                                            const std::vector<int64_t>& shape) {
  if (const TensorView* tensor = Locate(name)) return Take(*tensor, shape);
  return nullptr;
}

absl::StatusOr<const TensorView*> WeightSource::GetTied(std::span<const std::string> names,
                                                        const std::vector<int64_t>& shape) {
  const TensorView* first = nullptr;
  for (const std::string& name : names) {
    const TensorView* tensor = Locate(name);
    if (tensor == nullptr) continue;
    if (auto taken = Take(*tensor, shape); !taken.ok()) return taken.status();
    if (first == nullptr) {
      first = tensor;
      continue;
    }
    ASSIGN_OR_RETURN(const bool same, SameValues(*first, *tensor));
    if (!same) {
      return absl::InvalidArgumentError(
          absl::StrCat(origin_, ": tensors \"", first->name, "\" and \"", tensor->name,
                       "\" are tied in this architecture, but their values differ"));
    }
  }
  if (first != nullptr) return first;
  return absl::NotFoundError(absl::StrCat(origin_, ": none of the tied tensors ",
                                          absl::StrJoin(names, ", "), " ", ShapeText(shape),
                                          " is there"));
}

absl::Status WeightSource::Finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : checkpoint_.tensors()) {
    const auto matches = [&name = name](const std::string& pattern) {
      return Matches(pattern, name);
    };
    if (used_.contains(name) || std::any_of(ignored_.begin(), ignored_.end(), matches)) continue;
    unknown.push_back(absl::StrCat(name, " ", ShapeText(tensor.shape)));
  }
  if (unknown.empty()) return absl::OkStatus();
  const size_t total = unknown.size();
  if (total > kListed) unknown.resize(kListed);
  const std::string surplus = absl::StrCat(
      total, " tensor(s) that this architecture does not have: ", absl::StrJoin(unknown, ", "),
      total > kListed ? ", ..." : "");
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(origin_, ": ", surplus));
  status.SetPayload(kSurplusTensors, absl::Cord(surplus));
  return status;
}

absl::Status LeaveSurplusAside(const absl::Status& finished, std::vector<std::string>& notes) {
  const auto surplus = finished.GetPayload(kSurplusTensors);
  if (!surplus) return finished;
  notes.push_back(absl::StrCat("left aside: ", std::string(*surplus)));
  return absl::OkStatus();
}

}  // namespace longview::models
