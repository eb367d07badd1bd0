// Tells ThreadSanitizer about the locks of Abseil.
//
// Debian's Abseil and gRPC are not instrumented: absl::Mutex is a word and a futex, in which
// ThreadSanitizer sees no lock, and whatever it guards looks like a race. The functions here stand
// before the library's own (the dynamic linker finds the program's first, also for gRPC), call
// them, and announce what each lock orders. Readers count as writers, which can hide a race
// between two readers' writes and invents none.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace {

#define LONGVIEW_TEXT(name) #name
#define LONGVIEW_TEXT_OF(macro) LONGVIEW_TEXT(macro)

// The library's definition of a member by the rest of its mangled name after the namespaces.
template <typename Function>
Function Next(const char* member, const char* qualifier = "") {
  const std::string space = LONGVIEW_TEXT_OF(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  const std::string name =
      std::string("_ZN") + qualifier + "4absl" + std::to_string(space.size()) + space + member;
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name.c_str()));
}

using Plain = void (*)(void*);

// The search for cycles among locks is ordered by spin locks that cannot be announced.
const bool searches_no_cycles = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const auto next = Next<Plain>("5Mutex4LockEv");
  next(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static const auto next = Next<bool (*)(void*)>("5Mutex7TryLockEv");
  if (!next(this)) return false;
  __tsan_acquire(this);
  return true;
}

void Mutex::Unlock() {
  static const auto next = Next<Plain>("5Mutex6UnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::ReaderLock() {
  static const auto next = Next<Plain>("5Mutex10ReaderLockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto next = Next<Plain>("5Mutex12ReaderUnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::Await(const Condition& condition) {
  static const auto next =
      Next<void (*)(void*, const Condition&)>("5Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  next(this, condition);
  __tsan_acquire(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static const auto next =
      Next<void (*)(void*, const Condition&)>("5Mutex8LockWhenERKNS0_9ConditionE");
  next(this, condition);
  __tsan_acquire(this);
}

void CondVar::Wait(Mutex* mutex) {
  static const auto next = Next<void (*)(void*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  next(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const auto next = Next<bool (*)(void*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto next =
      Next<bool (*)(void*, Mutex*, Time)>("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  static const auto next = Next<Plain>("12Notification6NotifyEv");
  __tsan_release(this);
  next(this);
}

void Notification::WaitForNotification() const {
  static const auto next =
      Next<void (*)(const void*)>("12Notification19WaitForNotificationEv", "K");
  next(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto next = Next<bool (*)(const void*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", "K");
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
