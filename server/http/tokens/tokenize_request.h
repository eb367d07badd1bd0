// The bodies of POST /tokenize, in three dialects, and of POST /detokenize.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/members.h"

namespace longview::server {

// The API whose request and answer are meant, told by the member that holds the text.
enum class TokenizeDialect {
  kOwn,   // text
  kTei,   // inputs: text-embeddings-inference's
  kVllm,  // prompt
};

struct TokenizeRequest {
  TokenizeDialect dialect = TokenizeDialect::kOwn;
  std::string model;
  std::vector<std::string> texts;  // One, of kTei any number.
  bool add_special_tokens = true;
};

struct DetokenizeRequest {
  std::string model;
  std::vector<int32_t> ids;
  bool skip_special_tokens = false;
};

// Most bytes of text that one request may bring: every token of it is kept.
inline constexpr size_t kMaxTokenizedBytes = size_t{4} << 20;

// INVALID_ARGUMENT names the member. The model may also stand in `query`. JSON values take at most
// `max_bytes` (ParseJson). Thread-safe.
absl::StatusOr<TokenizeRequest> ParseTokenize(std::string_view body, std::string_view query,
                                              size_t max_texts, size_t max_bytes);
absl::StatusOr<DetokenizeRequest> ParseDetokenize(std::string_view body, std::string_view query,
                                                  size_t max_bytes);

// For tests.
std::vector<MemberInfo> TokenizeMembers(TokenizeDialect dialect);
std::vector<MemberInfo> DetokenizeMembers();

}  // namespace longview::server
