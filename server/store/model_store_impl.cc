#include "server/store/model_store_impl.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/status_macros.h"
#include "server/errors.h"
#include "server/exception_guard.h"
#include "server/scheduler/steady_clock.h"
#include "server/scheduler/thread_loop.h"
#include "server/store/model_errors.h"

namespace longview::server {
namespace {

constexpr absl::Duration kScanInterval = absl::Seconds(1);
constexpr absl::Duration kLoadingRetry = absl::Seconds(1);

// Measurements of a warm-up; predictions go by the best of them.
constexpr int kMoments = 3;
// Pause between two measurements, in which waiting requests have the device.
constexpr std::chrono::milliseconds kBetweenMoments(20);

constexpr std::string_view kCpu = "cpu";

ModelLabels LabelsOf(const ServedModel& model) { return {model.name, model.version}; }

absl::Status NotFound(std::string message) {
  return MakeError(absl::StatusCode::kNotFound, std::move(message),
                   {"MODEL_NOT_FOUND", std::nullopt, "model"});
}

bool HasTask(const models::ModelInfo& info, models::Task task) {
  return std::find(info.tasks.begin(), info.tasks.end(), task) != info.tasks.end();
}

std::string TaskNames(const models::ModelInfo& info) {
  return absl::StrJoin(info.tasks, ", ", [](std::string* out, models::Task task) {
    out->append(models::TaskName(task));
  });
}

std::string NamesOr(const std::vector<std::string>& names, std::string none) {
  return names.empty() ? none : absl::StrJoin(names, ", ");
}

}  // namespace

ModelStoreImpl::ModelStoreImpl(std::vector<std::string> models, LoadFunction load, Engine& engine,
                               Metrics& metrics, Log& log, const ModelStoreOptions& options)
    : paths_(std::move(models)),
      load_(std::move(load)),
      options_(options),
      engine_(engine),
      metrics_(metrics),
      log_(log),
      reaper_(std::make_unique<TaskThread>()),
      loader_(std::make_unique<TaskThread>()) {
  metrics_.SetCacheGauges([this](const ModelLabels& labels) { return CacheOf(labels); });
  metrics_.SetPlanBytes([this](const ModelLabels& labels) { return PlanBytesOf(labels); });
}

ModelStoreImpl::~ModelStoreImpl() {
  metrics_.SetCacheGauges({});
  metrics_.SetPlanBytes({});
  stopping_ = true;
  // The loader ends before the entries go, and the reaper last: freeing a model is a task of it.
  loader_.reset();
  Entries entries;
  {
    absl::MutexLock lock(&mutex_);
    entries.swap(entries_);
  }
  entries.clear();
  {
    const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return live_ == 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&none));
  }
  reaper_.reset();
}

ModelHandle ModelStoreImpl::HandleOf(const ModelLabels& labels) const {
  absl::MutexLock lock(&mutex_);
  const auto it = holders_.find({labels.model, labels.version});
  return it == holders_.end() ? nullptr : it->second.lock();
}

double ModelStoreImpl::PlanBytesOf(const ModelLabels& labels) const {
  const ModelHandle handle = HandleOf(labels);
  if (handle == nullptr) return 0;
  double bytes = handle->model->image_plan_bytes();
  for (const auto& model : handle->further) bytes += model->image_plan_bytes();
  return bytes;
}

std::optional<CacheGauges> ModelStoreImpl::CacheOf(const ModelLabels& labels) const {
  const ModelHandle handle = HandleOf(labels);
  if (handle == nullptr) return CacheGauges();
  if (handle->model->info().prefill_alignment == 0) return std::nullopt;
  const models::CacheUse first = handle->model->cache();
  CacheGauges sum{.used = first.used,
                  .kept = first.evictable,
                  .used_by_all = first.used_by_all,
                  .capacity = first.capacity};
  for (const auto& model : handle->further) {
    const models::CacheUse use = model->cache();
    sum.used += use.used;
    sum.kept += use.evictable;
    sum.used_by_all += use.used_by_all;
    sum.capacity += use.capacity;
  }
  return sum;
}

absl::Status ModelStoreImpl::Discover() {
  ASSIGN_OR_RETURN(const std::vector<FoundModel> found, FindModels(paths_, options_.strict, log_));
  absl::MutexLock lock(&mutex_);
  for (const FoundModel& model : found) {
    Entry& entry = entries_[model.name];
    entry.found = model;
    entry.state = ModelState::kLoading;
    entry.reason = "loading";
  }
  return absl::OkStatus();
}

void ModelStoreImpl::LoadAll(absl::AnyInvocable<void(absl::Status)> started) {
  std::vector<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, entry] : entries_) names.push_back(name);
  }
  loader_->Add([this, names = std::move(names), started = std::move(started)]() mutable {
    absl::Status status = LoadAllNow(names);
    if (status.ok()) {
      startup_complete_ = true;
      changes().Notify();
    }
    started(std::move(status));
  });
}

absl::Status ModelStoreImpl::LoadAllNow(const std::vector<std::string>& names) {
  absl::Status first_failure;
  std::vector<std::string> left_out;
  for (const std::string& name : names) {
    const absl::Status status = LoadNow(name);
    changes().Notify();
    if (status.ok()) continue;
    if (stopping_ || !MayBeLeftOut(name)) return status;
    first_failure.Update(status);
    left_out.push_back(name);
  }
  if (left_out.empty()) return absl::OkStatus();
  if (left_out.size() == names.size()) return first_failure;
  log_.Warning("served without the models that failed to load; --strict stops the start instead",
               {{"models", absl::StrJoin(left_out, ", ")}});
  return absl::OkStatus();
}

bool ModelStoreImpl::MayBeLeftOut(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(name);
  return !options_.strict && it != entries_.end() && it->second.found && !it->second.found->named;
}

absl::Status ModelStoreImpl::Rescan() const {
  std::vector<SkippedDirectory> skipped;
  ASSIGN_OR_RETURN(const std::vector<FoundModel> found, FindModels(paths_, skipped));
  absl::MutexLock lock(&mutex_);
  for (auto& [name, entry] : entries_) entry.found.reset();
  for (const FoundModel& model : found) {
    const auto [it, added] = entries_.try_emplace(model.name);
    it->second.found = model;
    if (added) it->second.reason = "not loaded";
  }
  std::erase_if(entries_, [](const auto& item) {
    const Entry& entry = item.second;
    return !entry.found && entry.state == ModelState::kUnavailable;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<models::Model>> ModelStoreImpl::LoadOn(const FoundModel& found,
                                                                      const std::string& device) {
  // On a thread that ends with the load, and its compute threads with it: as long as they lived,
  // GNU OpenMP would count more threads than cores and let those of the device sleep between any
  // two parallel regions, which halves the throughput of small models.
  absl::StatusOr<std::unique_ptr<models::Model>> model = absl::UnknownError("");
  StartThread([&] { model = Guarded([&] { return load_(found.directory, device); }); }).join();
  if (!model.ok()) return model.status();
  RETURN_IF_ERROR(WarmUp(found, **model));
  return model;
}

absl::Status ModelStoreImpl::WarmUp(const FoundModel& found, models::Model& model) {
  for (int moment = 0; moment < kMoments; ++moment) {
    // Others have their turns meanwhile; what disturbs one moment may be over at the next.
    if (moment > 0) std::this_thread::sleep_for(kBetweenMoments);
    if (stopping_) return ShuttingDownError();
    RETURN_IF_ERROR(
        engine_.RunOnDevice(model.info().device, found.name, [&model] { return model.WarmUp(); }));
  }
  return absl::OkStatus();
}

absl::Status ModelStoreImpl::LoadFurther(const FoundModel& found,
                                         const std::vector<std::string>& devices,
                                         ServedModel& served) {
  const std::string first = served.model->info().device;
  if (std::find(devices.begin(), devices.end(), first) == devices.end()) return absl::OkStatus();
  for (const std::string& device : devices) {
    if (device == first) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<models::Model> model, LoadOn(found, device));
    if (model->info().device != device) {
      return absl::FailedPreconditionError(
          absl::StrCat("runs on ", first, ", but not on ", device));
    }
    served.further.push_back(std::move(model));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ServedModel>> ModelStoreImpl::LoadAndWarm(const FoundModel& found) {
  std::vector<std::string> devices = engine_.DevicesLike(engine_.devices().front());
  if (devices.empty()) devices = {engine_.devices().front()};
  absl::StatusOr<std::unique_ptr<ServedModel>> served = LoadOnto(found, devices);
  if (served.ok() || !options_.cpu_instead || stopping_ || devices.front() == kCpu) return served;
  // A fault of the directory would show there, too.
  const absl::Status reason = served.status();
  served = LoadOnto(found, {std::string(kCpu)});
  if (served.ok()) {
    log_.Warning(absl::StrCat("runs on the CPU: ", reason.message()), {{"model", found.name}});
  }
  return served;
}

absl::StatusOr<std::unique_ptr<ServedModel>> ModelStoreImpl::LoadOnto(
    const FoundModel& found, const std::vector<std::string>& devices) {
  const absl::Time start = SteadyNow();
  ASSIGN_OR_RETURN(std::unique_ptr<models::Model> model, LoadOn(found, devices.front()));
  auto served = std::make_unique<ServedModel>();
  served->name = found.name;
  served->version = found.version;
  served->id = ++last_id_;
  served->model = std::move(model);
  RETURN_IF_ERROR(LoadFurther(found, devices, *served));
  served->load_seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  return served;
}

absl::Status ModelStoreImpl::LoadNow(std::string name) {
  if (stopping_) return ShuttingDownError();
  FoundModel found;
  const absl::Status scanned = Rescan();
  {
    absl::MutexLock lock(&mutex_);
    const auto it = Locate(name);
    if (it == entries_.end()) return scanned.ok() ? Unknown(name) : scanned;
    name = it->first;
    Entry& entry = it->second;
    if (!entry.found) {
      if (entry.handle == nullptr) entries_.erase(it);
      return NotFound(absl::StrCat("model ", Quoted(name), ": its directory is gone"));
    }
    found = *entry.found;
    if (entry.handle == nullptr) {
      entry.state = ModelState::kLoading;
      entry.reason = "loading";
    }
  }

  absl::StatusOr<std::unique_ptr<ServedModel>> served = LoadAndWarm(found);
  if (!served.ok()) {
    const absl::Status status(served.status().code(),
                              absl::StrCat("model ", name, ": ", served.status().message()));
    log_.Error("model failed to load", {{"model", name}, {"error", status.ToString()}});
    absl::MutexLock lock(&mutex_);
    Entry& entry = entries_[name];
    if (entry.handle == nullptr) {
      entry.state = ModelState::kUnavailable;
      entry.reason = std::string(served.status().message());
    }
    return status;
  }

  const models::ModelInfo& info = (*served)->model->info();
  double memory_bytes = info.memory_bytes;
  std::string devices = info.device;
  for (const auto& model : (*served)->further) {
    memory_bytes += model->info().memory_bytes;
    absl::StrAppend(&devices, ",", model->info().device);
  }
  metrics_.ModelLoaded(LabelsOf(**served), memory_bytes, (*served)->load_seconds);
  log_.Info("model loaded", {{"model", name},
                             {"version", found.version},
                             {"family", info.family},
                             {"seconds", (*served)->load_seconds},
                             {"bytes", memory_bytes},
                             {"dtype", info.dtype},
                             {"devices", devices}});
  for (const std::string& note : info.notes) log_.Warning(note, {{"model", name}});
  auto waiters = std::make_shared<Waiters>();
  ModelHandle handle = Own(*std::move(served), waiters);
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[name];
  // The model that was replaced is freed when its last request is answered; `handle` drops it after
  // the lock, as its deleter must not run under it.
  if (entry.handle != nullptr && entry.handle->version != handle->version) {
    metrics_.ModelUnloaded(LabelsOf(*entry.handle));
  }
  holders_[{name, found.version}] = handle;
  entry.handle.swap(handle);
  entry.waiters = std::move(waiters);
  entry.state = ModelState::kReady;
  entry.reason.clear();
  return absl::OkStatus();
}

ModelHandle ModelStoreImpl::Own(std::unique_ptr<ServedModel> served,
                                std::shared_ptr<Waiters> waiters) {
  {
    absl::MutexLock lock(&mutex_);
    ++live_;
  }
  return ModelHandle(
      served.release(), [this, waiters = std::move(waiters)](const ServedModel* model) {
        reaper_->Add([this, waiters, model] { Reap(const_cast<ServedModel*>(model), waiters); });
      });
}

void ModelStoreImpl::Reap(ServedModel* served, const std::shared_ptr<Waiters>& waiters) {
  const std::string name = served->name;
  delete served;
  std::vector<Done> done;
  {
    absl::MutexLock lock(&mutex_);
    done.swap(waiters->on_freed);
  }
  log_.Info("model freed", {{"model", name}});
  for (Done& waiter : done) waiter(absl::OkStatus());
  // Counted down last: the destructor waits for it and then takes this object away.
  absl::MutexLock lock(&mutex_);
  --live_;
}

void ModelStoreImpl::Load(std::string_view name, Done done) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = Locate(name);
    if (it != entries_.end() && it->second.handle == nullptr) {
      it->second.state = ModelState::kLoading;
      it->second.reason = "loading";
    }
  }
  changes().Notify();
  loader_->Add([this, name = std::string(name), done = std::move(done)]() mutable {
    absl::Status status = LoadNow(name);
    changes().Notify();
    done(std::move(status));
  });
}

void ModelStoreImpl::Unload(std::string_view name, Done done) {
  loader_->Add([this, name = std::string(name), done = std::move(done)]() mutable {
    UnloadNow(name, std::move(done));
  });
}

void ModelStoreImpl::UnloadNow(const std::string& name, Done done) {
  ModelHandle handle;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = Locate(name);
    if (it == entries_.end()) {
      status = Unknown(name);
    } else if (it->second.handle != nullptr) {
      Entry& entry = it->second;
      handle = std::move(entry.handle);
      entry.waiters->on_freed.push_back(std::move(done));
      entry.waiters.reset();
      entry.state = ModelState::kUnavailable;
      entry.reason = "unloaded";
      metrics_.ModelUnloaded(LabelsOf(*handle));
    }
  }
  if (handle == nullptr) return done(std::move(status));
  changes().Notify();
}

absl::Status ModelStoreImpl::Unknown(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [other, entry] : entries_) names.push_back(other);
  return ModelNotFound(name, names);
}

absl::Status ModelStoreImpl::NotServed(const Entry& entry, std::string_view name) const {
  if (entry.state == ModelState::kLoading) {
    return MakeError(absl::StatusCode::kUnavailable,
                     absl::StrCat("model ", Quoted(name), " is loading"),
                     {"MODEL_LOADING", kLoadingRetry, "model"});
  }
  std::vector<std::string> ready;
  for (const auto& [other, candidate] : entries_) {
    if (candidate.handle != nullptr) ready.push_back(other);
  }
  return NotFound(absl::StrCat("model ", Quoted(name), " is not loaded (", entry.reason,
                               "); loaded are: ", NamesOr(ready, "none")));
}

ModelStoreImpl::Entries::iterator ModelStoreImpl::Locate(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it != entries_.end()) return it;
  const bool whole = name.find('/') != std::string_view::npos;
  const auto is_called = [name, whole](const auto& item) {
    const auto& [id, entry] = item;
    return whole ? entry.found && entry.found->hub_name == name
                 : std::string_view(id).substr(id.find('/') + 1) == name;
  };
  const auto first = std::find_if(entries_.begin(), entries_.end(), is_called);
  if (whole || first == entries_.end()) return first;
  const auto only = std::find_if(std::next(first), entries_.end(), is_called) == entries_.end();
  return only ? first : entries_.end();
}

std::string ModelStoreImpl::NameOf(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto it = Locate(name);
  return it == entries_.end() ? std::string(name) : it->first;
}

absl::StatusOr<ModelHandle> ModelStoreImpl::Find(std::string_view name,
                                                 std::string_view version) const {
  absl::MutexLock lock(&mutex_);
  const auto it = Locate(name);
  if (it == entries_.end()) return Unknown(name);
  const Entry& entry = it->second;
  if (entry.handle == nullptr) return NotServed(entry, name);
  if (version.empty() || version == entry.handle->version) return entry.handle;
  return VersionNotFound(name, entry.handle->version, version);
}

absl::StatusOr<ModelHandle> ModelStoreImpl::FindForTask(std::string_view name,
                                                        std::string_view version,
                                                        models::Task task) const {
  const std::string task_name(models::TaskName(task));
  if (!name.empty()) {
    absl::StatusOr<ModelHandle> model = Find(name, version);
    if (!model.ok() || HasTask((*model)->model->info(), task)) return model;
    return MakeError(absl::StatusCode::kUnimplemented,
                     absl::StrCat("model ", Quoted(name), " lacks the task ", task_name,
                                  "; it does ", TaskNames((*model)->model->info())),
                     {"TASK_NOT_SUPPORTED", std::nullopt, "model"});
  }
  ModelHandle only;
  std::vector<std::string> candidates;
  bool loading = false;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [other, entry] : entries_) {
      loading = loading || entry.state == ModelState::kLoading;
      if (entry.handle == nullptr || !HasTask(entry.handle->model->info(), task)) continue;
      candidates.push_back(other);
      only = entry.handle;
    }
  }
  if (candidates.size() == 1) return Find(candidates.front(), version);
  if (candidates.empty() && loading) {
    return MakeError(absl::StatusCode::kUnavailable, "models are loading",
                     {"MODEL_LOADING", kLoadingRetry, "model"});
  }
  if (candidates.empty()) return NotFound(absl::StrCat("no loaded model does ", task_name));
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("model: name one; these do ", task_name, ": ", absl::StrJoin(candidates, ", ")),
      {"MODEL_AMBIGUOUS", std::nullopt, "model"});
}

void ModelStoreImpl::RescanIfDue() const {
  if (!scan_mutex_.TryLock()) return;
  const absl::Time now = SteadyNow();
  if (now - last_scan_ > kScanInterval) {
    last_scan_ = now;
    // An unreadable folder is no reason to hide the loaded models.
    Guarded([this] { return Rescan(); }).IgnoreError();
  }
  scan_mutex_.Unlock();
}

std::vector<ModelStatus> ModelStoreImpl::List() const {
  RescanIfDue();
  std::vector<ModelStatus> list;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, entry] : entries_) {
    const std::string version = entry.handle  ? entry.handle->version
                                : entry.found ? entry.found->version
                                              : "";
    list.push_back({name, version, entry.state, entry.reason, entry.handle});
  }
  return list;
}

}  // namespace longview::server
