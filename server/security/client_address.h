// Client addresses: parsed, grouped into units of fairness, and found behind trusted proxies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::server {

// An IPv4 or IPv6 address; IPv4 within IPv6 (::ffff:10.0.0.1) is IPv4. A value.
class IpAddress {
 public:
  // "10.0.0.1", "2001:db8::1", with or without "[...]" and ":port"; a zone (%eth0) is dropped.
  // Unset for anything else.
  static std::optional<IpAddress> Parse(std::string_view text);
  static IpAddress V4(const uint8_t* bytes);  // 4 bytes, in network order.
  static IpAddress V6(const uint8_t* bytes);  // 16 bytes.

  bool v4() const { return v4_; }
  std::string ToString() const;

  // The address with all bits behind the first `bits` of 32 or 128 cleared.
  IpAddress Network(int bits) const;
  bool operator==(const IpAddress&) const = default;

 private:
  int Skipped() const { return v4_ ? 96 : 0; }  // Bits that every such address has alike.

  std::array<uint8_t, 16> bytes_ = {};  // IPv4 as ::ffff:a.b.c.d.
  bool v4_ = false;
};

// The unit that counts as one client: an IPv4 address, the /64 of an IPv6 ("2001:db8:0:1::/64"),
// since its holder has all addresses of it. Text that is no address stays as it is.
std::string FairnessUnit(std::string_view address);

// The proxies whose word about their clients is taken. Immutable, so thread-safe.
class TrustedProxies {
 public:
  // A list such as "10.0.0.0/8,192.168.1.7,2001:db8::/32"; "" = none. INVALID_ARGUMENT names the
  // entry.
  static absl::StatusOr<TrustedProxies> Parse(std::string_view list);

  bool empty() const { return networks_.empty(); }
  bool Trusts(std::string_view address) const;

  // The address of the client that `peer` speaks for. `forwarded_for`: the values of the fields
  // X-Forwarded-For, in order, each a list of addresses, every proxy's view of its peer behind
  // those before it. Read from the end, as far as each is trusted to have written the one before;
  // what is no address ends it. So what a client wrote itself counts for nothing.
  std::string ClientOf(std::string_view peer,
                       std::span<const std::string_view> forwarded_for) const;

 private:
  struct Network {
    IpAddress address;
    int bits = 0;
  };
  bool Trusts(const IpAddress& address) const;

  std::vector<Network> networks_;
};

}  // namespace longview::server
