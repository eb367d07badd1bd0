// The lines that --json prints.
//
// Thread-safe: pure functions.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <string>

namespace longview::client {

// A message as a JSON object on one line: the proto's field names, zero values written.
std::string ToJson(const google::protobuf::Message& message);

// The answer with `input` (the path) as its first member.
std::string AnswerLine(const std::string& path, const std::string& answer_json);

// {"input": path, "error": {"code": "NOT_FOUND", "message": "..."}}
std::string ErrorLine(const std::string& path, const grpc::Status& status);

}  // namespace longview::client
