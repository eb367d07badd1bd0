#include "server/engine/request_bytes.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace longview::server {
namespace {

// Members that a client can make long, each filled with at least kBytes.
TEST(RequestBytesTest, EveryLongMemberCounts) {
  constexpr size_t kBytes = 4000;
  const std::string text(kBytes, 'x');
  const std::vector<int32_t> ids(kBytes / sizeof(int32_t));
  const models::TokenInput tokens{
      .ids = ids, .attention_mask = {}, .token_type_ids = {}, .global_mask = {}};
  const std::vector<std::function<void(models::Request&)>> fills = {
      [&](auto& r) { r.text = text; },
      [&](auto& r) { r.tokens = tokens; },
      [&](auto& r) { r.text_pair = text; },
      [&](auto& r) { r.tokens_pair = tokens; },
      [&](auto& r) { r.question = text; },
      [&](auto& r) { r.choices = {text}; },
      [&](auto& r) { r.choice_tokens = {tokens}; },
      [&](auto& r) { r.truncation_direction = text; },
      [&](auto& r) { r.global_positions = ids; },
      [&](auto& r) { r.global_tokens = {text}; },
      [&](auto& r) { r.image = text; },
      [&](auto& r) { r.pixel_values.emplace().values.resize(kBytes / sizeof(float)); },
      [&](auto& r) { r.aggregation = text; },
      [&](auto& r) { r.pooling = text; },
      [&](auto& r) { r.prompt = text; },
      [&](auto& r) { r.prompt_name = text; },
      [&](auto& r) { r.prompt_choices = {text}; },
      [&](auto& r) { r.shared_prompt = std::make_shared<const std::string>(text); },
      [&](auto& r) { r.chunks.resize(kBytes / sizeof(models::TextRange)); },
      [&](auto& r) { r.token_chunks.emplace().positions = ids; },
      [&](auto& r) { r.token_chunks.emplace().chunks.resize(kBytes / sizeof(models::TokenRange)); },
      [&](auto& r) { r.generation.emplace().stop = {text}; },
      [&](auto& r) { r.generation.emplace().others["logit_bias"] = text; },
      [&](auto& r) { r.decoder_tokens = tokens; },
      [&](auto& r) { r.tensors = {text}; },
  };
  const size_t empty = RequestBytes({});
  EXPECT_GE(empty, sizeof(models::Request));
  for (size_t i = 0; i < fills.size(); ++i) {
    models::Request request;
    fills[i](request);
    EXPECT_GE(RequestBytes(request), empty + kBytes) << i;
    EXPECT_LE(RequestBytes(request), empty + kBytes + 200) << i;
  }
}

}  // namespace
}  // namespace longview::server
