#include "server/app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "server/log/bounded_write.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"

namespace longview::server {
namespace {

// SIGUSR1 wakes the thread up to end.
sigset_t TakenSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  return set;
}

bool IsIgnored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Event::Kind KindOf(int number) {
  if (number == SIGTERM) return Event::Kind::kTerminate;
  return number == SIGHUP ? Event::Kind::kHangUp : Event::Kind::kInterrupt;
}

}  // namespace

EventQueue::EventQueue() : hang_up_ignored_(IsIgnored(SIGHUP)) {
  // Blocked before any other thread starts: threads inherit the mask, so that only sigwait below
  // ever gets these signals.
  const sigset_t set = TakenSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = StartThread([this] { TakeSignals(); });
}

EventQueue::~EventQueue() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void EventQueue::Post(Event event) {
  {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }
  changed_.Signal();
}

std::optional<Event> EventQueue::Wait(absl::Time deadline) {
  const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !events_.empty(); };
  absl::MutexLock lock(&mutex_);
  if (!changed_.AwaitUntil(&mutex_, absl::Condition(&some), deadline)) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void EventQueue::ExitOnNextSignal() {
  absl::MutexLock lock(&mutex_);
  exit_on_signal_ = true;
}

void EventQueue::TakeSignals() {
  const sigset_t set = TakenSignals();
  for (int number = 0; sigwait(&set, &number) == 0;) {
    {
      absl::MutexLock lock(&mutex_);
      if (ending_) return;
      if (number == SIGUSR1) continue;
      if (exit_on_signal_ && number != SIGHUP) {
        BoundedWrite(STDERR_FILENO, "longview-server: second signal, leaving at once\n",
                     absl::ZeroDuration());
        _exit(128 + number);
      }
    }
    Post({KindOf(number), ""});
  }
}

}  // namespace longview::server
