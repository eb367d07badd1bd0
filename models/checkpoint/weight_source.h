// Strict hand-over of a checkpoint's tensors to a model: every tensor a model wants must be
// there with the expected shape, and every tensor that is there must be wanted or ignored by
// name. A name that matches nothing is how a wrong architecture shows, so neither side is
// skipped silently.
//
//   WeightSource source(checkpoint, directory);
//   source.AcceptSpelling("LayerNorm.weight", "LayerNorm.gamma");
//   source.Ignore("*.position_ids");
//   auto table = source.Get(prefix + "embeddings.word_embeddings.weight", {vocab, width});
//   ...
//   return source.Finish();
//
// One per load, used by one thread.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"

namespace longview::models {

class WeightSource {
 public:
  // `origin` begins every message. REQUIRES: the checkpoint outlives the source.
  WeightSource(const Checkpoint& checkpoint, std::string origin);

  // The first of `prefixes` for which prefix + anchor is a tensor; NOT_FOUND lists the names
  // tried.
  absl::StatusOr<std::string> FindPrefix(std::span<const std::string_view> prefixes,
                                         std::string_view anchor) const;

  // A tensor asked for as "...<suffix>" may also be stored as "...<other>".
  void AcceptSpelling(std::string suffix, std::string other);

  // Tensors that Finish lets pass unused; `*` stands for any run of characters.
  void Ignore(std::string pattern);

  bool Has(std::string_view name) const;

  // A floating-point tensor of exactly this shape. NOT_FOUND if it is missing,
  // INVALID_ARGUMENT (tensor, expected, found) if its shape or type differ.
  absl::StatusOr<const TensorView*> Get(std::string_view name, const std::vector<int64_t>& shape);

  // Get for a tensor that may be missing: nullptr then.
  absl::StatusOr<const TensorView*> GetOptional(std::string_view name,
                                                const std::vector<int64_t>& shape);

  // One tensor that may be stored under any of several names. The first that is there is
  // returned; the others, if stored too, must hold the same bytes.
  absl::StatusOr<const TensorView*> GetTied(std::span<const std::string> names,
                                            const std::vector<int64_t>& shape);

  // INVALID_ARGUMENT listing tensors that nobody asked for and no pattern ignores.
  absl::Status Finish() const;

 private:
  const TensorView* Locate(std::string_view name) const;
  absl::StatusOr<const TensorView*> Take(const TensorView& tensor,
                                         const std::vector<int64_t>& shape);

  const Checkpoint& checkpoint_;
  std::string origin_;
  std::vector<std::pair<std::string, std::string>> spellings_;
  std::vector<std::string> ignored_;
  std::set<std::string, std::less<>> used_;
};

// The payload of WeightSource::Finish's error: the surplus tensors in words.
inline constexpr char kSurplusTensors[] = "longview/surplus-tensors";

// `finished`, but OK where surplus tensors are all that is wrong: they are named in `notes`. For
// models that may leave aside what they do not have, as HuggingFace's classes do with a warning.
absl::Status LeaveSurplusAside(const absl::Status& finished, std::vector<std::string>& notes);

}  // namespace longview::models
