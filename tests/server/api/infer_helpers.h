// Inference requests in tests: written as protobuf text, run to their reply.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/api/backend.h"

namespace longview::testing {

inline inference::ModelInferRequest ParseInfer(const std::string& text) {
  inference::ModelInferRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return request;
}

inline absl::StatusOr<inference::ModelInferResponse> Infer(
    Backend& backend, const inference::ModelInferRequest& request) {
  Waiter<inference::ModelInferResponse> waiter;
  backend.api.Infer(TestCall("ModelInfer"), request, waiter.reply());
  return waiter.Get();
}

inline absl::StatusOr<inference::ModelInferResponse> Infer(Backend& backend,
                                                           const std::string& text) {
  return Infer(backend, ParseInfer(text));
}

// Waits until `condition` holds; false after 20 s.
template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Time end = server::SteadyNow() + absl::Seconds(20);
  while (!condition()) {
    if (server::SteadyNow() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// BYTES elements in raw form.
inline std::string RawStrings(const std::vector<std::string>& elements) {
  std::string raw;
  for (const std::string& element : elements) {
    const auto length = static_cast<uint32_t>(element.size());
    raw.append(reinterpret_cast<const char*>(&length), sizeof(length));
    raw += element;
  }
  return raw;
}

inline std::vector<float> Floats(const google::protobuf::RepeatedField<float>& values) {
  return {values.begin(), values.end()};
}

inline std::vector<float> RawFloats(const std::string& raw) {
  std::vector<float> values(raw.size() / sizeof(float));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
  return values;
}

inline std::vector<std::string> OutputNames(const inference::ModelInferResponse& response) {
  std::vector<std::string> names;
  for (const auto& output : response.outputs()) names.push_back(output.name());
  return names;
}

}  // namespace longview::testing
