// How the server's own threads run: none of them ends the process for want of memory.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

namespace longview::server {

// A thread that runs `body` until it returns. What `body` throws, for want of memory most likely,
// ends what it was at, and it runs again: what it must not lose is outside of it.
template <typename Body>
std::thread StartThread(Body body) {
  return std::thread([body = std::move(body)]() mutable {
    constexpr std::chrono::milliseconds kPause(10);
    while (true) {
      try {
        body();
        return;
      } catch (...) {
        std::this_thread::sleep_for(kPause);
      }
    }
  });
}

}  // namespace longview::server
