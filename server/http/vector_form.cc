#include "server/http/vector_form.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/json/values.h"
#include "server/http/json/writer.h"

namespace longview::server {
namespace {

void AppendBase64(std::span<const float> values, std::string* out) {
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float));
  absl::StrAppend(out, "\"", absl::Base64Escape(bytes), "\"");
}

// Halves go to the even neighbour.
std::vector<int> Rounded(std::span<const float> values, int offset) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  std::vector<int> out;
  for (const double value : values) {
    const double scaled = largest > 0 ? 127 * value / largest : 0;
    out.push_back(static_cast<int>(std::nearbyint(scaled)) + offset);
  }
  return out;
}

std::vector<int> SignBits(std::span<const float> values, int offset) {
  constexpr size_t kBits = 8;
  std::vector<int> out((values.size() + kBits - 1) / kBits, offset);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0) out[i / kBits] += 1 << (kBits - 1 - i % kBits);
  }
  return out;
}

void AppendIntegers(const std::vector<int>& values, std::string* out) {
  absl::StrAppend(out, "[", absl::StrJoin(values, ","), "]");
}

}  // namespace

std::string_view NameOf(VectorForm form) {
  switch (form) {
    case VectorForm::kFloat:
      return "float";
    case VectorForm::kBase64:
      return "base64";
    case VectorForm::kInt8:
      return "int8";
    case VectorForm::kUint8:
      return "uint8";
    case VectorForm::kBinary:
      return "binary";
    case VectorForm::kUbinary:
      return "ubinary";
  }
  return "";
}

absl::StatusOr<VectorForm> ReadVectorForm(const nlohmann::json& value, std::string_view field,
                                          std::span<const VectorForm> known) {
  ASSIGN_OR_RETURN(const std::string name, ReadString(value, field));
  std::string names;
  for (const VectorForm form : known) {
    if (NameOf(form) == name) return form;
    absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(NameOf(form)));
  }
  return FieldError(field, absl::StrCat("is ", Quoted(name), ", expected one of ", names));
}

void AppendVector(std::span<const float> values, VectorForm form, std::string* out) {
  constexpr int kHalf = 128;
  switch (form) {
    case VectorForm::kFloat:
      return AppendJsonArray(values, out);
    case VectorForm::kBase64:
      return AppendBase64(values, out);
    case VectorForm::kInt8:
      return AppendIntegers(Rounded(values, 0), out);
    case VectorForm::kUint8:
      return AppendIntegers(Rounded(values, kHalf), out);
    case VectorForm::kBinary:
      return AppendIntegers(SignBits(values, -kHalf), out);
    case VectorForm::kUbinary:
      return AppendIntegers(SignBits(values, 0), out);
  }
}

}  // namespace longview::server
