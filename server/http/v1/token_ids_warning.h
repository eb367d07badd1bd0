// The warning about token ids on /v1/embeddings.
//
// OpenAI's interface takes ids of OpenAI's own tokenizer, and some of its clients send them at
// their defaults. Here ids are the model's own: those of another tokenizer are other words, and the
// vectors are wrong without an error.
#pragma once

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/http/message.h"
#include "server/log/log.h"

namespace longview::server {

// Thread-safe.
class TokenIdsWarning {
 public:
  // `log` null: nobody reads it. Outlives this.
  TokenIdsWarning(Log* log, bool refuse) : log_(log), refuse_(refuse) {}

  // INVALID_ARGUMENT if the server takes none (--refuse_token_ids).
  absl::Status Check() const;

  // Adds the warning to an answer of `model`; the first one of each model is told of in the log.
  void AddTo(const std::string& model, HttpResponse* response);

 private:
  Log* const log_;
  const bool refuse_;
  absl::Mutex mutex_;
  std::set<std::string> told_ ABSL_GUARDED_BY(mutex_);  // Models, by name.
};

}  // namespace longview::server
