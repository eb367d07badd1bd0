// Sockets that listen on one port of every address a host name has.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace longview::server {

// Closes its descriptors when it goes. Movable.
class ListeningSockets {
 public:
  // `port` 0: a free one, the same for all addresses. 0.0.0.0 takes IPv6 too where the machine has
  // it. UNAVAILABLE says why an address cannot be had.
  static absl::StatusOr<ListeningSockets> Open(const std::string& host, int port);

  ListeningSockets() = default;  // None.
  ListeningSockets(ListeningSockets&& other) noexcept { *this = std::move(other); }
  ListeningSockets& operator=(ListeningSockets&& other) noexcept {
    descriptors_.swap(other.descriptors_);
    std::swap(port_, other.port_);
    return *this;
  }
  ~ListeningSockets() { Close(); }

  int port() const { return port_; }
  const std::vector<int>& descriptors() const { return descriptors_; }
  void Close();

 private:
  std::vector<int> descriptors_;
  int port_ = 0;
};

}  // namespace longview::server
