#include "server/security/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/errors.h"

namespace longview::server {
namespace {

constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr int kUnitBits = 64;
constexpr size_t kMaxAddressText = 64;
// Longer chains of proxies do not exist; a longer list was written by a client.
constexpr int kMostHops = 16;

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Without brackets, port and zone.
std::string_view HostOf(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    text = text.substr(1, end - 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  return text.substr(0, text.find('%'));
}

}  // namespace

IpAddress IpAddress::V4(const uint8_t* bytes) {
  IpAddress address;
  address.v4_ = true;
  std::copy_n(kMapped, sizeof(kMapped), address.bytes_.begin());
  std::copy_n(bytes, 4, address.bytes_.begin() + sizeof(kMapped));
  return address;
}

IpAddress IpAddress::V6(const uint8_t* bytes) {
  if (std::equal(std::begin(kMapped), std::end(kMapped), bytes)) return V4(bytes + sizeof(kMapped));
  IpAddress address;
  std::copy_n(bytes, 16, address.bytes_.begin());
  return address;
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  if (text.size() > kMaxAddressText) return std::nullopt;
  const std::string host(HostOf(text));
  uint8_t bytes[16];
  if (inet_pton(AF_INET, host.c_str(), bytes) == 1) return V4(bytes);
  if (inet_pton(AF_INET6, host.c_str(), bytes) == 1) return V6(bytes);
  return std::nullopt;
}

std::string IpAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(v4_ ? AF_INET : AF_INET6, bytes_.data() + (v4_ ? sizeof(kMapped) : 0), text,
            sizeof(text));
  return text;
}

IpAddress IpAddress::Network(int bits) const {
  IpAddress network = *this;
  const int kept = Skipped() + bits;
  for (int i = 0; i < 16; ++i) {
    const int of_byte = std::clamp(kept - 8 * i, 0, 8);
    network.bytes_[static_cast<size_t>(i)] &= static_cast<uint8_t>(0xFF00 >> of_byte);
  }
  return network;
}

std::string FairnessUnit(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::Parse(text);
  if (!address) return std::string(text);
  if (address->v4()) return address->ToString();
  return absl::StrCat(address->Network(kUnitBits).ToString(), "/", kUnitBits);
}

absl::StatusOr<TrustedProxies> TrustedProxies::Parse(std::string_view list) {
  TrustedProxies proxies;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(list.data(), list.size()), ',', absl::SkipWhitespace())) {
    const std::string_view entry = Trim({part.data(), part.size()});
    const size_t slash = entry.find('/');
    const std::string_view host = entry.substr(0, slash);
    const std::optional<IpAddress> address = IpAddress::Parse(host);
    const int most = address && address->v4() ? 32 : 128;
    int bits = most;
    const bool has_bits =
        slash == std::string_view::npos ||
        absl::SimpleAtoi(absl::string_view(entry.data() + slash + 1, entry.size() - slash - 1),
                         &bits);
    // A port, brackets or bits behind the network are slips of who wrote it.
    if (!address || HostOf(host) != host || !has_bits || bits < 0 || bits > most ||
        address->Network(bits) != *address) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(entry), " is not an address or network such as 10.0.0.0/8"));
    }
    proxies.networks_.push_back({*address, bits});
  }
  return proxies;
}

bool TrustedProxies::Trusts(const IpAddress& address) const {
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    return network.address.v4() == address.v4() && address.Network(network.bits) == network.address;
  });
}

bool TrustedProxies::Trusts(std::string_view text) const {
  if (empty()) return false;
  const std::optional<IpAddress> address = IpAddress::Parse(text);
  return address && Trusts(*address);
}

std::string TrustedProxies::ClientOf(std::string_view peer,
                                     std::span<const std::string_view> forwarded_for) const {
  std::optional<IpAddress> client = empty() ? std::nullopt : IpAddress::Parse(peer);
  if (!client || !Trusts(*client)) return std::string(peer);
  int hops = 0;
  for (auto field = forwarded_for.rbegin(); field != forwarded_for.rend(); ++field) {
    std::string_view rest = *field;
    while (!rest.empty()) {
      const size_t comma = rest.rfind(',');
      const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
      const std::optional<IpAddress> before = IpAddress::Parse(Trim(rest.substr(begin)));
      if (!before || ++hops > kMostHops) return client->ToString();
      client = before;
      if (!Trusts(*client)) return client->ToString();
      rest = rest.substr(0, comma == std::string_view::npos ? 0 : comma);
    }
  }
  return client->ToString();
}

}  // namespace longview::server
