// Sources of a client's name: a PROXY protocol header (first byte 0), X-Forwarded-For (1), a line
// of a key file (2).
#include <string>

#include "server/security/client_address.h"
#include "server/security/key_line.h"
#include "server/security/proxy_header.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace longview;

void Header(std::string_view input) {
  const server::ProxyHeader header = server::ParseProxyHeader(input);
  switch (header.kind) {
    case server::ProxyHeader::Kind::kWhole:
      FUZZ_PROMISE(header.bytes > 0 && header.bytes <= input.size());
      FUZZ_PROMISE(header.bytes <= server::kMaxProxyHeader);
      FUZZ_PROMISE(header.client.empty() || server::IpAddress::Parse(header.client).has_value());
      break;
    case server::ProxyHeader::Kind::kPartial:
      FUZZ_PROMISE(header.bytes > input.size() && header.bytes <= server::kMaxProxyHeader);
      break;
    default:
      break;
  }
}

void Forwarded(std::string_view input) {
  const auto proxies = server::TrustedProxies::Parse("10.0.0.0/8");
  const std::string_view fields[] = {input};
  const std::string client = proxies->ClientOf("10.0.0.1", fields);
  FUZZ_PROMISE(server::IpAddress::Parse(client).has_value());
  FUZZ_PROMISE(server::FairnessUnit(client).size() < 64);
  FUZZ_PROMISE(proxies->ClientOf("11.0.0.1", fields) == "11.0.0.1");
}

void Line(std::string_view input) {
  const auto line = server::ParseKeyLine(input);
  if (!line.ok()) return;
  FUZZ_PROMISE(!line->key.empty() && !line->name.empty());
  FUZZ_PROMISE(!line->weight || *line->weight > 0);
  FUZZ_PROMISE(!line->max_inflight || *line->max_inflight > 0);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [kind, input] = fuzz::SplitKind(fuzz::AsText(data, size));
  if (kind % 3 == 0) Header(input);
  if (kind % 3 == 1) Forwarded(input);
  if (kind % 3 == 2) Line(input);
  return 0;
}
