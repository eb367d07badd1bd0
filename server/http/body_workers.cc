#include "server/http/body_workers.h"

#include <exception>
#include <utility>

#include "boost/asio/post.hpp"
#include "boost/asio/thread_pool.hpp"

namespace longview::server {

struct BodyWorkers::Pools {
  boost::asio::thread_pool of_long{2};
  boost::asio::thread_pool of_very_long{1};
};

BodyWorkers::BodyWorkers() : pools_(std::make_unique<Pools>()) {}
BodyWorkers::~BodyWorkers() { Stop(); }

void BodyWorkers::Run(size_t bytes, Task task) {
  if (bytes <= kShort) return task();
  auto& pool = bytes <= kVeryLong ? pools_->of_long : pools_->of_very_long;
  boost::asio::post(pool, [task = std::move(task)]() mutable {
    try {
      task();
    } catch (const std::exception&) {
      // No memory, most likely: whoever the task answers sees it dropped.
    }
    task = nullptr;
  });
}

void BodyWorkers::Stop() {
  for (auto* pool : {&pools_->of_long, &pools_->of_very_long}) {
    pool->stop();
    pool->join();
  }
}

}  // namespace longview::server
