// Checked material of TLS: a certificate chain with its key, and the signers of clients.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace longview::server {

// PEM texts. Immutable once checked.
struct TlsMaterial {
  std::string certificate_chain;  // The server's own certificate first.
  std::string private_key;
  std::string client_ca;  // Empty = clients need no certificate.
};

// INVALID_ARGUMENT: which of the three does not parse or is protected by a passphrase, or that key
// and certificate do not belong together. Never repeats what they hold.
absl::Status CheckTlsMaterial(const TlsMaterial& material);

// When the server's certificate ends, as text such as "Jun  1 12:00:00 2027 GMT".
// REQUIRES: checked.
std::string ExpiryOf(const TlsMaterial& material);

// The material of new connections. Thread-safe: one writer, any number of readers; open
// connections keep the material they began with.
class TlsSource {
 public:
  // REQUIRES: checked.
  explicit TlsSource(TlsMaterial material)
      : current_(std::make_shared<const TlsMaterial>(std::move(material))) {}

  // A new object after every Replace, so that readers can compare pointers.
  std::shared_ptr<const TlsMaterial> Current() const {
    absl::ReaderMutexLock lock(&mutex_);
    return current_;
  }

  // REQUIRES: checked.
  void Replace(TlsMaterial material) {
    auto next = std::make_shared<const TlsMaterial>(std::move(material));
    absl::MutexLock lock(&mutex_);
    current_.swap(next);
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longview::server
