// Documents: read once as they stream in, asked many times, closed.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "longview/v1/text.pb.h"
#include "server/api/calls/context.h"

namespace longview::server {

// One OpenDocument call. Parts are read one at a time, so that a client sends no faster than the
// model reads. The call is recorded when it ends: by a part that fails, by Finish or by Cancel.
//
// Append and Finish belong to one caller and do not overlap; Cancel is thread-safe.
class DocumentUpload : public std::enable_shared_from_this<DocumentUpload> {
 public:
  DocumentUpload(ApiContext& context, const CallInfo& info) : context_(context), info_(info) {}

  // Reads a part; the first names the model. `done` may run inside the call; after an error the
  // call is over and what was read is freed.
  void Append(longview::v1::OpenDocumentRequest part, absl::AnyInvocable<void(absl::Status)> done);

  // The client has sent everything.
  absl::StatusOr<longview::v1::Document> Finish();

  // The client has left: what is being read stops, what was read is freed. Also after Finish, if
  // the answer did not reach the client.
  void Cancel();

 private:
  using Done = absl::AnyInvocable<void(absl::Status)>;

  void Open(longview::v1::OpenDocumentRequest first, Done done);
  void Opened(absl::StatusOr<OpenDocument> open, longview::v1::OpenDocumentRequest first,
              Done done);
  void Read(longview::v1::OpenDocumentRequest part, Done done);
  // Records a failure.
  absl::Status Failed(const absl::Status& status);

  ApiContext& context_;
  const CallInfo info_;
  ModelLabels labels_;  // Set once the model is found.
  OpenDocument open_;   // The document after the last part.
  absl::Mutex mutex_;
  std::string handle_ ABSL_GUARDED_BY(mutex_);  // Empty: not open.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace longview::server
