// The table of models: finds, loads, swaps and unloads them while others serve.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "models/model.h"
#include "server/change_signal.h"

namespace longview::server {

enum class ModelState { kReady, kLoading, kUnavailable };

// A loaded, warm model. A request holds one from admission to its answer, so a model cannot
// be freed under it.
struct ServedModel {
  std::string name;
  std::string version;
  uint32_t id = 0;  // Unique per load; the scheduler's name for it.
  std::unique_ptr<models::Model> model;
  // Instances of the model on further devices, one each.
  std::vector<std::unique_ptr<models::Model>> further;
  double load_seconds = 0;

  // The instance on a device, by ModelInfo::device; if there is none, the first.
  models::Model& On(std::string_view device) const {
    const auto it = std::find_if(further.begin(), further.end(),
                                 [device](const auto& m) { return m->info().device == device; });
    return it == further.end() ? *model : **it;
  }
};
using ModelHandle = std::shared_ptr<const ServedModel>;

struct ModelStatus {
  std::string name;
  std::string version;
  ModelState state = ModelState::kUnavailable;
  std::string reason;
  ModelHandle handle;  // Null unless ready.
};

// Thread-safe; no call blocks on a load.
class ModelStore {
 public:
  virtual ~ModelStore() = default;

  // The loaded model. version "" = the loaded one. NOT_FOUND lists what there is;
  // UNAVAILABLE with a retry delay while it loads.
  virtual absl::StatusOr<ModelHandle> Find(std::string_view name,
                                           std::string_view version) const = 0;

  // name "" allowed if exactly one ready model has the task; the error lists candidates.
  virtual absl::StatusOr<ModelHandle> FindForTask(std::string_view name, std::string_view version,
                                                  models::Task task) const = 0;

  // The served name that a request means by `name`: itself, the hub's name of a model, or a name
  // without its organisation. `name` where there is none.
  virtual std::string NameOf(std::string_view name) const = 0;

  // Every directory found under --models, loaded or not, sorted by name.
  virtual std::vector<ModelStatus> List() const = 0;

  using Done = absl::AnyInvocable<void(absl::Status)>;
  // Answers when warm; reloading a loaded model swaps it in after it is warm.
  virtual void Load(std::string_view name, Done done) = 0;
  // Answers when the model's work is finished and its memory is free.
  virtual void Unload(std::string_view name, Done done) = 0;

  // Every start-up model has become warm once; later loads and unloads do not change it.
  virtual bool StartupComplete() const = 0;

  // Told after a model's state has changed.
  ChangeSignal& changes() { return changes_; }

 private:
  ChangeSignal changes_;
};

}  // namespace longview::server
