// The model store: loads on a thread of its own, warms on the device's thread, swaps in. Of several
// devices alike each gets an instance, one after the other; those that are lost are left out.
//
// A load never touches what serves: the new model replaces the old one once it is warm, and
// the old one is freed when its last request is answered. Loads and unloads happen one after
// the other. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/engine.h"
#include "server/engine/task_thread.h"
#include "server/log/log.h"
#include "server/metrics/metrics.h"
#include "server/served/model_store.h"
#include "server/store/model_paths.h"

namespace longview::server {

// Makes a model of a directory, on a device if it can run there, else on the CPU:
// models::LoadModel, or a fake. Called on the store's thread.
using LoadFunction = std::function<absl::StatusOr<std::unique_ptr<models::Model>>(
    const std::string& directory, const std::string& device)>;

struct ModelStoreOptions {
  bool cpu_instead = false;  // Models that cannot run on the engine's devices go onto the CPU.
  bool strict = false;  // A start-up model of a folder that fails to load is the start's failure.
};

class ModelStoreImpl : public ModelStore {
 public:
  // `models` as --models says; loaded onto the devices of the engine's. Borrows its collaborators.
  ModelStoreImpl(std::vector<std::string> models, LoadFunction load, Engine& engine,
                 Metrics& metrics, Log& log, const ModelStoreOptions& options = {});
  // Waits for a load under way, and until every model is freed: the engine must have answered
  // all calls or have been shut down.
  ~ModelStoreImpl() override;

  // Looks for the start-up models; errors as FindModels. They are listed as loading from here.
  absl::Status Discover();

  // Loads all of them in the background. `started` runs once, on another thread: OK when all
  // are warm, else the first failure, after which the others are not loaded any more. A model that
  // was found in a folder and not named stays UNAVAILABLE with its reason, and the others are
  // served: unless `strict`, or all of them fail.
  // REQUIRES: Discover was OK.
  void LoadAll(absl::AnyInvocable<void(absl::Status)> started);

  absl::StatusOr<ModelHandle> Find(std::string_view name, std::string_view version) const override;
  absl::StatusOr<ModelHandle> FindForTask(std::string_view name, std::string_view version,
                                          models::Task task) const override;
  std::string NameOf(std::string_view name) const override;
  // Directories that appeared since are noticed within a second.
  std::vector<ModelStatus> List() const override;
  void Load(std::string_view name, Done done) override;
  void Unload(std::string_view name, Done done) override;
  bool StartupComplete() const override { return startup_complete_; }

 private:
  // Callers that wait for a model's end.
  struct Waiters {
    std::vector<Done> on_freed;
  };
  struct Entry {
    std::optional<FoundModel> found;  // Unset: its directory is gone.
    ModelState state = ModelState::kUnavailable;
    std::string reason;
    ModelHandle handle;
    std::shared_ptr<Waiters> waiters;  // Waiters for the end of `handle`.
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  using NameAndVersion = std::pair<std::string, std::string>;

  // The model of these labels; null if it is gone.
  ModelHandle HandleOf(const ModelLabels& labels) const;
  std::optional<CacheGauges> CacheOf(const ModelLabels& labels) const;
  double PlanBytesOf(const ModelLabels& labels) const;

  // Brings the entries up to date with the disk; on an error they stay as they are.
  absl::Status Rescan() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Scans if it is time and no other scan runs.
  void RescanIfDue() const ABSL_LOCKS_EXCLUDED(mutex_, scan_mutex_);
  // On the loader's thread.
  absl::Status LoadAllNow(const std::vector<std::string>& names);
  absl::Status LoadNow(std::string name);
  // Whether the others are served without it if it cannot be loaded.
  bool MayBeLeftOut(const std::string& name) const;
  absl::StatusOr<std::unique_ptr<ServedModel>> LoadAndWarm(const FoundModel& found);
  // An instance on each of `devices`.
  absl::StatusOr<std::unique_ptr<ServedModel>> LoadOnto(const FoundModel& found,
                                                        const std::vector<std::string>& devices);
  // Runs one measurement after the other; between them others have the device.
  absl::Status WarmUp(const FoundModel& found, models::Model& model);
  absl::StatusOr<std::unique_ptr<models::Model>> LoadOn(const FoundModel& found,
                                                        const std::string& device);
  // Loads the instances of a model for the further ones of `devices`.
  absl::Status LoadFurther(const FoundModel& found, const std::vector<std::string>& devices,
                           ServedModel& served);
  void UnloadNow(const std::string& name, Done done);
  // The handle whose end is announced to `waiters`.
  ModelHandle Own(std::unique_ptr<ServedModel> served, std::shared_ptr<Waiters> waiters);
  void Reap(ServedModel* served, const std::shared_ptr<Waiters>& waiters);

  // Why the entry has no handle, or not that version.
  absl::Status NotServed(const Entry& entry, std::string_view name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Unknown(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry of a served name, of the hub's name of a model that was found there, or of the part
  // behind a served name's organisation where only one model has it.
  Entries::iterator Locate(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::string> paths_;
  const LoadFunction load_;
  const ModelStoreOptions options_;
  Engine& engine_;
  Metrics& metrics_;
  Log& log_;

  // Waiters are guarded by it, too. No load, scan, reply or model's end under it.
  mutable absl::Mutex mutex_;
  mutable Entries entries_ ABSL_GUARDED_BY(mutex_);
  int live_ ABSL_GUARDED_BY(mutex_) = 0;  // Models that exist.
  // Models whose memory is told until their last request has ended.
  std::map<NameAndVersion, std::weak_ptr<const ServedModel>> holders_ ABSL_GUARDED_BY(mutex_);

  mutable absl::Mutex scan_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // One scan at a time.
  mutable absl::Time last_scan_ ABSL_GUARDED_BY(scan_mutex_) = absl::InfinitePast();
  std::atomic<bool> startup_complete_{false};
  std::atomic<bool> stopping_{false};
  uint32_t last_id_ = 0;  // Used by the loader's thread alone.

  std::unique_ptr<TaskThread> reaper_;  // Frees models and says so.
  std::unique_ptr<TaskThread> loader_;
};

}  // namespace longview::server
