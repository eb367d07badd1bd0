// How the server's own threads run: none of them ends the process for want of memory.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

namespace longview::server {

// Starts a thread that runs `body` until it returns normally. An exception of `body`, most likely
// std::bad_alloc, abandons its current work and runs it again; state it must keep lives outside.
template <typename Body>
std::thread StartThread(Body body) {
  return std::thread([body = std::move(body)]() mutable {
    // Other threads get time to free memory before the next try.
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
