// Roles of keys, and the permission that each call asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace longview::server {

enum class Role : uint8_t { kInfer, kControl, kMetrics };

std::string_view RoleName(Role role);  // "infer", "control", "metrics"
std::optional<Role> ParseRole(std::string_view name);

// A set of roles; a value.
class Roles {
 public:
  static constexpr Roles All() { return Roles(0b111); }
  constexpr Roles() = default;

  constexpr void Add(Role role) { bits_ |= Bit(role); }
  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  constexpr bool operator==(const Roles&) const = default;

 private:
  explicit constexpr Roles(uint8_t bits) : bits_(bits) {}
  static constexpr uint8_t Bit(Role role) {
    return static_cast<uint8_t>(1u << static_cast<unsigned>(role));
  }

  uint8_t bits_ = 0;
};

// The permission that a call needs once the server has keys.
enum class Permission : uint8_t {
  kOpen,    // No key: probes, and what tells a person or a scraper about the server.
  kAnyKey,  // Lists and descriptions of models.
  kInfer,   // The role of that name, as the two below.
  kControl,
  kMetrics,
};

// The permission of a call by CallInfo::method: an RPC's name ("ModelInfer") or a route's template
// ("/v1/classify"). Reflection is kAnyKey, as is "other", a path that no route has. A name that is
// not known here asks for kControl: a forgotten call is closed. Thread-safe.
Permission PermissionOf(std::string_view method);

// Whether such a call counts against its key's limits. Those of role infer do, but for
// CloseDocument, which gives back, and ModelStreamInfer, whose requests count one by one.
bool IsLimited(std::string_view method);

// OK, or PERMISSION_DENIED naming the key and the role it lacks.
absl::Status CheckPermission(Permission permission, Roles roles, std::string_view key_name);

}  // namespace longview::server
