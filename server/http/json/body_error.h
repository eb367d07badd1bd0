// Errors about a body as a whole.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/errors.h"
#include "server/status_map_http.h"

namespace longview::server {

inline absl::Status BodyTooLarge(size_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the body is larger than ", limit,
                                " bytes, the limit (--max_message_bytes), after decompression"),
                   {std::string(kBodyTooLarge), {}, ""});
}

// `bytes` is what the answer has so far where its writing was ended.
inline absl::Status AnswerTooLarge(size_t bytes, size_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the answer has ", bytes, " bytes or more, the limit is ", limit,
                                " (--max_message_bytes)"),
                   {"ANSWER_TOO_LARGE", {}, ""});
}

inline absl::Status ValuesTooLarge(size_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the body's JSON values take more than ", limit,
                                " bytes of memory, the limit (--max_message_bytes)"),
                   {std::string(kBodyTooLarge), {}, ""});
}

// A body on a path that takes less than the server does, or none.
inline absl::Status BodyOverPathLimit(std::string_view method, std::string_view path,
                                      size_t limit) {
  const std::string what = absl::StrCat(Excerpt(method), " ", Excerpt(path));
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      limit == 0 ? absl::StrCat(what, " takes no body")
                 : absl::StrCat("the body is larger than ", limit, " bytes, the limit of ", what),
      {std::string(kBodyTooLarge), {}, ""});
}

inline absl::Status UnsupportedMedia(std::string message) {
  return MakeError(absl::StatusCode::kInvalidArgument, std::move(message),
                   {std::string(kUnsupportedMediaType), {}, ""});
}

// INVALID_ARGUMENT about one field of a body or query, by its name as users write it.
inline absl::Status FieldError(std::string_view field, std::string_view problem) {
  const std::string name = Excerpt(field);  // The caller may have made it up.
  return MakeError(absl::StatusCode::kInvalidArgument,
                   std::string(name).append(": ").append(problem), {"INVALID_ARGUMENT", {}, name});
}

}  // namespace longview::server
