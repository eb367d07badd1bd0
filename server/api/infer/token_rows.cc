#include "server/api/infer/token_rows.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "server/api/calls/context.h"
#include "server/errors.h"

namespace longview::server {
namespace {

using Integers = std::vector<int32_t>;
using Row = std::span<const int32_t>;

absl::Status BadRow(std::string_view name, size_t row, std::string_view problem) {
  return BadField(absl::StrCat("input ", Quoted(name)),
                  absl::StrCat("item ", row, " ", std::string(problem)));
}

// Empty if the request has no such input.
absl::StatusOr<Integers> ReadOptionalIntegers(const std::vector<InputTensor>& inputs,
                                              std::string_view name) {
  const InputTensor* input = Find(inputs, name);
  if (input == nullptr) return Integers{};
  return ReadIntegers(*input);
}

absl::Status CheckMask(std::string_view name, size_t index, Row mask) {
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0 || mask[i] == 1) continue;
    return BadRow(name, index,
                  absl::StrCat("has ", mask[i], " at position ", i, ", must be 0 or 1"));
  }
  return absl::OkStatus();
}

struct Columns {
  Integers ids, mask, types, global;
};

absl::StatusOr<models::TokenInput> ReadRow(const Columns& columns, size_t index, size_t width,
                                           bool keep_padding) {
  const auto row_of = [=](const Integers& all) {
    return all.empty() ? Row{} : Row(all).subspan(index * width, width);
  };
  const Row mask = row_of(columns.mask);
  const Row global = row_of(columns.global);
  if (auto status = CheckMask("attention_mask", index, mask); !status.ok()) return status;
  if (auto status = CheckMask("global_attention_mask", index, global); !status.ok()) return status;
  size_t length = width;
  while (!mask.empty() && length > 0 && mask[length - 1] == 0) --length;
  if (length == 0) return BadRow("attention_mask", index, "has 0 tokens: every value is 0");
  if (keep_padding) length = width;

  models::TokenInput out;
  const Row ids = row_of(columns.ids).first(length);
  out.ids.assign(ids.begin(), ids.end());
  const Row used = mask.empty() ? mask : mask.first(length);
  if (std::find(used.begin(), used.end(), 0) != used.end()) {
    out.attention_mask.assign(used.begin(), used.end());
  }
  const Row types = row_of(columns.types);
  if (!types.empty()) out.token_type_ids.assign(types.begin(), types.begin() + length);
  if (!global.empty()) out.global_mask.emplace(global.begin(), global.begin() + length);
  return out;
}

}  // namespace

const InputTensor* Find(const std::vector<InputTensor>& inputs, std::string_view name) {
  for (const InputTensor& input : inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

absl::StatusOr<std::vector<models::TokenInput>> ReadTokenRows(
    const std::vector<InputTensor>& inputs, bool keep_padding) {
  Columns columns;
  const std::pair<std::string_view, Integers*> wanted[] = {
      {"input_ids", &columns.ids},
      {"attention_mask", &columns.mask},
      {"token_type_ids", &columns.types},
      {"global_attention_mask", &columns.global}};
  for (const auto& [name, values] : wanted) {
    ASSIGN_OR_RETURN(Integers read, ReadOptionalIntegers(inputs, name));
    *values = std::move(read);
  }
  const auto width = static_cast<size_t>(Find(inputs, "input_ids")->shape.back());
  std::vector<models::TokenInput> rows;
  for (size_t i = 0; i * width < columns.ids.size(); ++i) {
    ASSIGN_OR_RETURN(models::TokenInput row, ReadRow(columns, i, width, keep_padding));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace longview::server
