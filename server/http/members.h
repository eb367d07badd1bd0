// Tables of the members of a route's body: each is used, taken without effect, or refused.
//
// A table both reads bodies and is what tests hold against /openapi.json and the pages. Members
// that are null are not there any more: json/parse.h leaves them out.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/status_macros.h"
#include "nlohmann/json.hpp"

namespace longview::server {

enum class MemberUse { kUsed, kNoEffect, kRefused };

// The servers whose clients send a member.
enum class MemberOf { kLongview, kOpenAi, kTei, kHuggingFace, kCohere, kJina, kVllm, kOllama };

struct MemberInfo {
  std::string_view name;
  MemberOf of;
  MemberUse use;
};

// Marks of rows that read nothing.
struct NoEffect {};
struct Refused {
  std::string_view why;  // Behind the name in the error.
};

// A row; `Out` is what bodies of the route become. Names are static storage.
template <typename Out>
struct MemberRow {
  // Reads the value, which is not null and may be taken.
  using Reader = std::function<absl::Status(nlohmann::json& value, const std::string& name, Out&)>;

  MemberRow(std::string_view name, MemberOf of, Reader reader)
      : info{name, of, MemberUse::kUsed}, read(std::move(reader)) {}
  MemberRow(std::string_view name, MemberOf of, NoEffect) : info{name, of, MemberUse::kNoEffect} {}
  MemberRow(std::string_view name, MemberOf of, Refused refused)
      : info{name, of, MemberUse::kRefused}, why(refused.why) {}

  MemberInfo info;
  Reader read;           // Null unless it is used.
  std::string_view why;  // Empty unless it is refused.
};

// INVALID_ARGUMENT about a member that a table does not have, with the one that may be meant.
// `before`: "" or the object's name and a dot.
absl::Status UnknownMember(std::string_view before, std::string_view name,
                           const std::vector<MemberInfo>& known);
// INVALID_ARGUMENT about a member that a table refuses.
absl::Status RefusedMember(std::string_view name, std::string_view why);

// Thread-safe: immutable.
template <typename Out>
class MemberTable {
 public:
  MemberTable(std::initializer_list<MemberRow<Out>> rows) : rows_(rows) {}

  // Reads the members of an object, by name in alphabetical order. INVALID_ARGUMENT names the first
  // that is wrong.
  absl::Status Read(nlohmann::json& body, Out& out) const { return ReadAll(body, "", true, out); }
  // Reads the members that the table has, and leaves others aside.
  absl::Status ReadKnown(nlohmann::json& body, Out& out) const {
    return ReadAll(body, "", false, out);
  }
  // Reads `body`, the object at the member `within`; errors name both members.
  absl::Status ReadWithin(std::string_view within, nlohmann::json& body, Out& out) const {
    return ReadAll(body, std::string(within).append("."), true, out);
  }

  // Null: the table does not have it.
  const MemberRow<Out>* Find(std::string_view name) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const MemberRow<Out>& known) {
      return known.info.name == name;
    });
    return row == rows_.end() ? nullptr : &*row;
  }

  std::vector<MemberInfo> infos() const {
    std::vector<MemberInfo> infos;
    for (const MemberRow<Out>& row : rows_) infos.push_back(row.info);
    return infos;
  }

 private:
  absl::Status ReadAll(nlohmann::json& body, const std::string& before, bool complete,
                       Out& out) const {
    for (auto&& [name, value] : body.items()) {
      const MemberRow<Out>* const row = Find(name);
      if (row == nullptr && !complete) continue;
      if (row == nullptr) return UnknownMember(before, name, infos());
      if (row->info.use == MemberUse::kRefused) return RefusedMember(before + name, row->why);
      if (row->info.use == MemberUse::kNoEffect) continue;
      RETURN_IF_ERROR(row->read(value, before + name, out));
    }
    return absl::OkStatus();
  }

  std::vector<MemberRow<Out>> rows_;
};

}  // namespace longview::server
