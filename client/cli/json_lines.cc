#include "client/cli/json_lines.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "client/cli/connection.h"

namespace longview::client {
namespace {

using Json = nlohmann::ordered_json;

// File names need not be UTF-8; JSON has to be.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

std::string AnswerLine(const std::string& path, const std::string& answer_json) {
  // Spliced as text: a parser would change how numbers are written.
  std::string line = "{\"input\":" + Dump(path);
  if (answer_json.size() > 2) line += ",";
  return line + answer_json.substr(1);
}

std::string ErrorLine(const std::string& path, const grpc::Status& status) {
  Json line;
  line["input"] = path;
  line["error"] = {{"code", CodeName(status.error_code())}, {"message", status.error_message()}};
  return Dump(line);
}

}  // namespace longview::client
