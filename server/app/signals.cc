#include "server/app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace longview::server {
namespace {

// SIGUSR1 wakes the thread up to end.
sigset_t TakenSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

EventQueue::EventQueue() {
  const sigset_t set = TakenSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { TakeSignals(); });
}

EventQueue::~EventQueue() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void EventQueue::Post(Event event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  changed_.notify_one();
}

std::optional<Event> EventQueue::Wait(absl::Time deadline) {
  std::unique_lock lock(mutex_);
  const auto some = [this] { return !events_.empty(); };
  if (deadline == absl::InfiniteFuture()) {
    changed_.wait(lock, some);
  } else if (!changed_.wait_until(lock, absl::ToChronoTime(deadline), some)) {
    return std::nullopt;
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void EventQueue::ExitOnNextSignal() {
  std::lock_guard lock(mutex_);
  exit_on_signal_ = true;
}

void EventQueue::TakeSignals() {
  const sigset_t set = TakenSignals();
  for (int number = 0; sigwait(&set, &number) == 0;) {
    {
      std::lock_guard lock(mutex_);
      if (ending_) return;
      if (number == SIGUSR1) continue;
      if (exit_on_signal_) {
        static constexpr char kText[] = "longview-server: second signal, leaving at once\n";
        (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
        _exit(128 + number);
      }
    }
    Post({number == SIGTERM ? Event::Kind::kTerminate : Event::Kind::kInterrupt, ""});
  }
}

}  // namespace longview::server
