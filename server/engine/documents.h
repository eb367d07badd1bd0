// Documents that clients keep open: read once, asked many times.
//
// A handle names one. It belongs to the client that opened it, and for anybody else does not
// exist. Its lease begins anew whenever it is used; one that is neither read into nor asked
// from until the lease ends is closed. The state of a document counts against --cache_bytes from
// the moment it is read until the document is closed and the last request that forked it is over.
// A model that is unloaded or replaced takes its documents with it, within a second.
//
// Thread-safe. Nothing blocks. Errors about handles are NOT_FOUND and quote the handle.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"
#include "server/scheduler/clock.h"
#include "server/scheduler/steady_cond_var.h"
#include "server/served/model_store.h"

namespace longview::server {

struct DocumentsOptions {
  absl::Duration default_lease = absl::Minutes(5);
  absl::Duration max_lease = absl::Hours(24);
  size_t max_per_client = 256;
};

struct OpenDocument {
  std::string handle;  // Unguessable; safe in a URL.
  ModelHandle model;
  absl::Duration lease;
  double state_bytes = 0;
  models::ItemUsage usage;  // Sum over everything read into it.
  double queue_seconds = 0;
  double compute_seconds = 0;
};

// The parts a request needs to continue a fork of a document: Request::document and its model.
struct DocumentUse {
  ModelHandle model;
  std::shared_ptr<models::Document> document;
};

class Documents {
 public:
  // Borrows its collaborators.
  Documents(Engine& engine, const ModelStore& store, const Clock& clock,
            const DocumentsOptions& options);
  // Closes all documents and waits for the replies that are outstanding.
  ~Documents();

  // Opens an empty document. lease 0 = the default. `done` gets its handle, or: INVALID_ARGUMENT
  // (lease over the limit), RESOURCE_EXHAUSTED (the client has too many open), UNIMPLEMENTED (the
  // model keeps no documents). May run inside the call.
  void Open(ModelHandle model, std::string_view client, absl::Duration lease,
            Reply<OpenDocument> done);

  // Reads text or tokens of `request` behind what was read before; its document, task and
  // extend_document are set here. Pieces of one document are read in the order of the calls, one
  // after the other; each is tokenised on its own. `done` gets the document as it is then, or the
  // error of Engine::Generate: after one the document is closed, since a gap would go unnoticed.
  // `done` may run inside the call.
  // REQUIRES: requests that use the document have been answered; one that waits was priced for
  // what it held before.
  void Append(std::string_view handle, models::Request request, const CallInfo& info,
              Reply<OpenDocument> done);

  // The document as it is, for a request that continues a fork of it. It stays alive while the
  // use is held, whatever becomes of the handle. NOT_FOUND also while pieces are being read.
  absl::StatusOr<DocumentUse> Use(std::string_view handle, std::string_view client);

  // Cancels what is being read into it. Returns the document as it was.
  absl::StatusOr<OpenDocument> Close(std::string_view handle, std::string_view client);

  // Closes the documents whose lease is over or whose model is gone; a thread does it every second.
  void CloseExpired();

  // Documents open; for tests of what is left behind.
  size_t size() const;

 private:
  struct Piece {
    models::Request request;
    CallInfo info;
    Reply<OpenDocument> done;
  };
  struct Entry {
    OpenDocument open;
    std::string client;
    std::shared_ptr<models::Document> document;
    absl::Time expires;
    std::deque<Piece> pieces;  // The first is being read if `busy`.
    bool busy = false;
    uint64_t reads = 0;
    CallId reading = 0;  // 0 if the engine does not have the piece yet, or any more.
  };
  using Entries = std::map<std::string, std::unique_ptr<Entry>, std::less<>>;

  // Enters a document that the engine made; returns it, or why there is none.
  absl::StatusOr<OpenDocument> Enter(OpenDocument open, std::string client,
                                     absl::StatusOr<std::shared_ptr<models::Document>> made);
  // Hands the first piece of the document to the engine.
  void ReadNext(const std::string& handle);
  void PieceRead(const std::string& handle, absl::StatusOr<Completed> read);
  absl::StatusOr<Entry*> Find(std::string_view handle, std::string_view client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Renew(Entry& entry) const;
  size_t CountOf(std::string_view client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Entry> Take(const std::string& handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends an entry that was taken; without the lock.
  void End(std::unique_ptr<Entry> entry, const absl::Status& why);
  void PendingDone();
  void LeaseLoop();

  Engine& engine_;
  const ModelStore& store_;
  const Clock& clock_;
  const DocumentsOptions options_;

  mutable absl::Mutex mutex_;  // Guards the table; no reply and no call of the engine under it.
  SteadyCondVar ended_;        // Signalled when `ending_` is set.
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  int pending_ ABSL_GUARDED_BY(mutex_) = 0;  // Replies of the engine outstanding.
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread leases_;
};

}  // namespace longview::server
