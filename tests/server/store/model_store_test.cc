// Loading, swapping and unloading fake models under an engine that serves.
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/errors.h"
#include "server/store/model_store_impl.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using models::Task;
using testing::FakeLogits;
using testing::FakeModel;
using testing::FakeOptions;

class ModelStoreTest : public EngineFixture {
 protected:
  ModelStoreTest() { StartEngine(); }
  ~ModelStoreTest() override {
    control_->advance.Open();
    control_->warm_up.Open();
    if (engine_) engine_->Shutdown();
    store_.reset();
    EXPECT_EQ(control_->live_models, 0);
  }

  // A model directory whose fake has the options of `name` in fakes_.
  void AddDirectory(const std::string& name) { temp_.Write("repo/" + name + "/config.json", "{}"); }

  void StartStore(const ModelStoreOptions& options = {}, std::vector<std::string> models = {}) {
    if (models.empty()) models = {temp_.Path("repo")};
    store_ = std::make_unique<ModelStoreImpl>(
        std::move(models),
        [this](const std::string& directory, const std::string& device) {
          return LoadFake(directory, device);
        },
        *engine_, metrics_, log_, options);
    ASSERT_TRUE(store_->Discover().ok());
    store_->LoadAll([this](absl::Status status) {
      std::lock_guard lock(mutex_);
      started_ = std::move(status);
    });
  }

  absl::Status AwaitStarted() {
    Await(
        [this] {
          std::lock_guard lock(mutex_);
          return started_.has_value();
        },
        "the start");
    std::lock_guard lock(mutex_);
    return started_.value_or(absl::AbortedError("not started"));
  }

  absl::StatusOr<std::unique_ptr<models::Model>> LoadFake(const std::string& directory,
                                                          const std::string& device) {
    std::lock_guard lock(mutex_);
    ++loads_;
    loading_threads_.insert(gettid());
    const std::string name = directory.substr(directory.rfind('/') + 1);
    for (const std::string& what : {name, name + " on " + device}) {
      if (failing_.contains(what)) return absl::InvalidArgumentError(failing_.at(what));
    }
    FakeOptions options = fakes_[name];
    options.control = control_;
    options.device = only_on_cpu_.contains(name) ? "cpu" : device;
    options.lost = options.device == "cuda:0" ? lost_ : nullptr;
    return std::make_unique<FakeModel>(options);
  }

  // Runs a call that takes a Done and waits for it.
  template <typename Call>
  absl::Status Wait(Call call) {
    ReplyBox<int> box;
    call([reply = box.reply()](absl::Status status) mutable {
      if (status.ok()) return reply(0);
      reply(std::move(status));
    });
    return box.Wait().status();
  }
  absl::Status LoadModel(const std::string& name) {
    return Wait([&](ModelStore::Done done) { store_->Load(name, std::move(done)); });
  }
  absl::Status UnloadModel(const std::string& name) {
    return Wait([&](ModelStore::Done done) { store_->Unload(name, std::move(done)); });
  }

  ModelStatus StatusOf(const std::string& name) {
    for (ModelStatus& status : store_->List()) {
      if (status.name == name) return status;
    }
    return {};
  }

  testing::TempDirectory temp_;
  Log log_{LogFormat::kText, LogLevel::kError};
  std::shared_ptr<testing::FakeControl> control_ = std::make_shared<testing::FakeControl>();
  std::mutex mutex_;
  std::optional<absl::Status> started_;
  std::map<std::string, FakeOptions> fakes_;
  std::map<std::string, std::string> failing_;  // By name, or "name on device".
  std::set<std::string> only_on_cpu_;
  testing::FakeDevicePtr lost_ = std::make_shared<std::atomic<bool>>(false);  // The first device.
  int loads_ = 0;
  std::set<pid_t> loading_threads_;
  std::unique_ptr<ModelStoreImpl> store_;
};

TEST_F(ModelStoreTest, AModelOfTheHubHasItsNameThere) {
  const std::string folder = "hub/models--org--part.v2/";
  temp_.Write(folder + "refs/main", "c0ffee");
  temp_.Write(folder + "snapshots/c0ffee/config.json", "{}");
  setenv("HF_HUB_CACHE", temp_.Path("hub").c_str(), 1);
  fakes_["c0ffee"].tasks = {Task::kTextClassification};
  StartStore({}, {"org/part.v2"});
  const absl::Status started = AwaitStarted();
  unsetenv("HF_HUB_CACHE");
  ASSERT_TRUE(started.ok()) << started;
  for (const char* name : {"part.v2", "org/part.v2"}) {
    const auto model = store_->Find(name, "");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->name, "org/part.v2");
    EXPECT_EQ(store_->NameOf(name), "org/part.v2");
  }
  EXPECT_EQ(store_->Find("other/part.v2", "").status().code(), StatusCode::kNotFound);
}

TEST_F(ModelStoreTest, ANameWithoutItsOrganisationIsThatOfTheOnlyModel) {
  for (const char* name : {"one", "two", "three"}) AddDirectory(name);
  StartStore({}, {"a/x=" + temp_.Path("repo/one"), "b/x=" + temp_.Path("repo/two"),
                  "b/y=" + temp_.Path("repo/three")});
  ASSERT_TRUE(AwaitStarted().ok());
  EXPECT_EQ(store_->NameOf("y"), "b/y");
  EXPECT_TRUE(store_->Find("y", "").ok());
  EXPECT_EQ(store_->Find("x", "").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->Find("a/x", "").ok());
}

TEST_F(ModelStoreTest, ThreadsOfLoadsEndWithThem) {
  AddDirectory("a");
  AddDirectory("b");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  std::lock_guard lock(mutex_);
  EXPECT_FALSE(loading_threads_.empty());
  // Else its compute threads would keep those of the device from spinning.
  for (const pid_t thread : loading_threads_) {
    const std::string path = "/proc/self/task/" + std::to_string(thread);
    Await([&] { return !std::filesystem::exists(path); }, "the end of a thread");
  }
}

TEST_F(ModelStoreTest, StartLoadsEverythingInTheBackground) {
  AddDirectory("a");
  AddDirectory("b");
  control_->warm_up.Close();
  StartStore();
  const auto early = store_->Find("a", "");
  EXPECT_EQ(early.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorDetail(early.status()).reason, "MODEL_LOADING");
  EXPECT_TRUE(GetErrorDetail(early.status()).retry_after.has_value());
  EXPECT_EQ(StatusOf("b").state, ModelState::kLoading);
  EXPECT_FALSE(store_->StartupComplete());
  control_->warm_up.Open();
  EXPECT_TRUE(AwaitStarted().ok());
  EXPECT_TRUE(store_->StartupComplete());
  ASSERT_TRUE(store_->Find("a", "").ok());
  EXPECT_EQ((*store_->Find("a", "1"))->name, "a");
  EXPECT_NE((*store_->Find("a", ""))->id, (*store_->Find("b", ""))->id);
  EXPECT_EQ(Metric("longview_model_ready{model=\"a\",version=\"1\"}"), 1);
}

TEST_F(ModelStoreTest, OthersAreServedBetweenTheMomentsOfAWarmUp) {
  AddDirectory("a");
  AddDirectory("b");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  control_->warm_up.Close();
  std::atomic<bool> loaded = false;
  std::thread reload([&] {
    EXPECT_TRUE(LoadModel("b").ok());
    loaded = true;
  });
  const auto waits = [&] { return control_->warm_up.AwaitWaiting(1, absl::ZeroDuration()); };
  int moments = 0;
  for (;; ++moments) {
    Await([&] { return waits() || loaded; }, "a moment, or the end");
    if (!waits()) break;
    Box box;
    Submit(*store_->Find("a", ""), "text", box);
    control_->warm_up.Admit(1);
    // The next moment waits at the gate, with the device, until this one is let through.
    EXPECT_TRUE(box.Wait().ok());
  }
  EXPECT_EQ(moments, 3);
  reload.join();
}

TEST_F(ModelStoreTest, AFailingModelOfAFolderIsLeftOut) {
  AddDirectory("a");
  AddDirectory("b");
  AddDirectory("c");
  failing_["b"] = "config.json: hidden_size is missing";
  StartStore();
  EXPECT_TRUE(AwaitStarted().ok());
  EXPECT_TRUE(store_->StartupComplete());
  EXPECT_EQ(loads_, 3);
  EXPECT_TRUE(store_->Find("a", "").ok());
  EXPECT_TRUE(store_->Find("c", "").ok());
  EXPECT_EQ(StatusOf("b").state, ModelState::kUnavailable);
  EXPECT_EQ(StatusOf("b").reason, "config.json: hidden_size is missing");
  EXPECT_EQ(store_->Find("b", "").status().message(),
            "model \"b\" is not loaded (config.json: hidden_size is missing); loaded are: a, c");
  {
    std::lock_guard lock(mutex_);
    failing_.clear();
  }
  EXPECT_TRUE(LoadModel("b").ok()) << "once its files are mended";
}

TEST_F(ModelStoreTest, AFailingModelThatIsNamedStopsTheStart) {
  AddDirectory("a");
  AddDirectory("b");
  failing_["b"] = "broken";
  StartStore({}, {temp_.Path("repo/a"), temp_.Path("repo/b")});
  EXPECT_EQ(AwaitStarted().message(), "model b: broken");
  EXPECT_FALSE(store_->StartupComplete());
}

TEST_F(ModelStoreTest, AFolderOfWhichNothingLoadsStopsTheStart) {
  AddDirectory("a");
  AddDirectory("b");
  failing_["a"] = "broken";
  failing_["b"] = "broken too";
  StartStore();
  EXPECT_EQ(AwaitStarted().message(), "model a: broken");
  EXPECT_FALSE(store_->StartupComplete());
}

TEST_F(ModelStoreTest, StrictlyAFailingModelOfAFolderStopsTheStart) {
  AddDirectory("a");
  AddDirectory("b");
  AddDirectory("c");
  failing_["b"] = "config.json: hidden_size is missing";
  StartStore({.strict = true});
  const absl::Status status = AwaitStarted();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "model b: config.json: hidden_size is missing");
  EXPECT_FALSE(store_->StartupComplete());
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(StatusOf("b").state, ModelState::kUnavailable);
  EXPECT_EQ(StatusOf("b").reason, "config.json: hidden_size is missing");
}

TEST_F(ModelStoreTest, FailingWarmUpIsAFailedLoad) {
  AddDirectory("a");
  fakes_["a"].warm_up_status = absl::InternalError("rows differ between batches");
  StartStore();
  EXPECT_EQ(AwaitStarted().message(), "model a: rows differ between batches");
  EXPECT_EQ(control_->live_models, 0);
}

TEST_F(ModelStoreTest, ErrorsListWhatThereIs) {
  AddDirectory("a");
  AddDirectory("b");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  const absl::Status unknown = store_->Find("nope\n", "").status();
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound);
  EXPECT_EQ(unknown.message(), "model \"nope\xEF\xBF\xBD\" not found; there are: a, b");
  EXPECT_EQ(store_->Find("bb", "").status().message(),
            "model \"bb\" not found; did you mean b? There are: a, b");
  const absl::Status version = store_->Find("a", "2").status();
  EXPECT_EQ(version.code(), StatusCode::kNotFound);
  EXPECT_EQ(version.message(), "model \"a\" has version \"1\", not \"2\"");
  ASSERT_TRUE(UnloadModel("a").ok());
  const absl::Status unloaded = store_->Find("a", "").status();
  EXPECT_EQ(unloaded.code(), StatusCode::kNotFound);
  EXPECT_EQ(unloaded.message(), "model \"a\" is not loaded (unloaded); loaded are: b");
  EXPECT_EQ(GetErrorDetail(unloaded).param, "model");
}

TEST_F(ModelStoreTest, NameMayBeLeftOutIfOneModelHasTheTask) {
  AddDirectory("a");
  AddDirectory("b");
  AddDirectory("c");
  fakes_["b"].tasks = {Task::kEmbedding};
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  ASSERT_TRUE(store_->FindForTask("", "", Task::kEmbedding).ok());
  EXPECT_EQ((*store_->FindForTask("", "", Task::kEmbedding))->name, "b");
  const absl::Status several = store_->FindForTask("", "", Task::kTextClassification).status();
  EXPECT_EQ(several.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(several.message().find("a, c"), absl::string_view::npos);
  EXPECT_EQ(store_->FindForTask("", "", Task::kFillMask).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->FindForTask("a", "", Task::kEmbedding).status().code(),
            StatusCode::kUnimplemented);
}

TEST_F(ModelStoreTest, UnloadWaitsForWorkAndFreesMemory) {
  AddDirectory("a");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  control_->advance.Close();
  Box running, queued;
  {
    const ModelHandle model = *store_->Find("a", "");
    Submit(model, "running", running);
    ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20)));
    Submit(model, "queued", queued);
  }
  std::atomic<bool> unloaded = false;
  std::thread unload([&] {
    EXPECT_TRUE(UnloadModel("a").ok());
    unloaded = true;
  });
  Await([&] { return !store_->Find("a", "").ok(); }, "the model's leaving");
  EXPECT_EQ(control_->live_models, 1);
  EXPECT_FALSE(unloaded);
  control_->advance.Open();
  unload.join();
  EXPECT_EQ(control_->live_models, 0);
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_TRUE(queued.Wait().ok());
  EXPECT_EQ(Metric("longview_model_ready{model=\"a\",version=\"1\"}"), 0);
  // Again is fine; unknown is not.
  EXPECT_TRUE(UnloadModel("a").ok());
  EXPECT_EQ(UnloadModel("nope").code(), StatusCode::kNotFound);
}

TEST_F(ModelStoreTest, ReloadSwapsWhenWarm) {
  AddDirectory("a");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  const uint32_t first = (*store_->Find("a", ""))->id;
  control_->warm_up.Close();
  std::thread reload([&] { EXPECT_TRUE(LoadModel("a").ok()); });
  ASSERT_TRUE(control_->warm_up.AwaitWaiting(1, absl::Seconds(20)));
  EXPECT_EQ((*store_->Find("a", ""))->id, first);  // Serves on while the other warms.
  EXPECT_EQ(StatusOf("a").state, ModelState::kReady);
  control_->warm_up.Open();
  reload.join();
  EXPECT_NE((*store_->Find("a", ""))->id, first);
  Await([&] { return control_->live_models == 1; }, "the old one's end");
  EXPECT_EQ(Metric("longview_model_ready{model=\"a\",version=\"1\"}"), 1);
}

TEST_F(ModelStoreTest, FailedReloadKeepsTheOldModel) {
  AddDirectory("a");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  const uint32_t first = (*store_->Find("a", ""))->id;
  {
    std::lock_guard lock(mutex_);
    failing_["a"] = "broken";
  }
  EXPECT_EQ(LoadModel("a").message(), "model a: broken");
  ASSERT_TRUE(store_->Find("a", "").ok());
  EXPECT_EQ((*store_->Find("a", ""))->id, first);
}

TEST_F(ModelStoreTest, NewDirectoriesAreFound) {
  AddDirectory("a");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  EXPECT_EQ(LoadModel("later").code(), StatusCode::kNotFound);
  AddDirectory("later");
  Await([&] { return StatusOf("later").name == "later"; }, "the new directory");
  EXPECT_EQ(StatusOf("later").state, ModelState::kUnavailable);
  EXPECT_TRUE(LoadModel("later").ok());
  EXPECT_TRUE(store_->Find("later", "").ok());
  // A higher version replaces a lower one at the next load.
  temp_.Write("repo/versions/3/config.json", "{}");
  EXPECT_TRUE(LoadModel("versions").ok());
  temp_.Write("repo/versions/4/config.json", "{}");
  EXPECT_TRUE(store_->Find("versions", "3").ok());
  EXPECT_TRUE(LoadModel("versions").ok());
  EXPECT_TRUE(store_->Find("versions", "4").ok());
  EXPECT_EQ(store_->Find("versions", "3").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->StartupComplete());
}

class SeveralDevicesTest : public ModelStoreTest {
 protected:
  SeveralDevicesTest() {
    options_.devices = {"cuda:0", "cuda:1", "cuda:2", "cpu"};
    engine_.reset();
    StartEngine();
  }
  static std::vector<std::string> DevicesOf(const ModelHandle& model) {
    std::vector<std::string> devices = {model->model->info().device};
    for (const auto& instance : model->further) devices.push_back(instance->info().device);
    return devices;
  }
};

TEST_F(SeveralDevicesTest, EachGetsAnInstanceAndAllAreFreed) {
  AddDirectory("a");
  AddDirectory("small");
  only_on_cpu_ = {"small"};
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  EXPECT_EQ(DevicesOf(*store_->Find("a", "")),
            (std::vector<std::string>{"cuda:0", "cuda:1", "cuda:2"}));
  EXPECT_EQ(DevicesOf(*store_->Find("small", "")), std::vector<std::string>{"cpu"});
  EXPECT_EQ(&(*store_->Find("a", ""))->On("cuda:1"), (*store_->Find("a", ""))->further[0].get());
  EXPECT_EQ(control_->live_models, 4);
  EXPECT_EQ(Metric("longview_model_memory_bytes{model=\"a\",version=\"1\"}"),
            3 * Metric("longview_model_memory_bytes{model=\"small\",version=\"1\"}"));
  control_->advance.Close();
  std::array<Box, 4> boxes;
  for (Box& box : boxes) Submit(*store_->Find("a", ""), "text", box);
  ASSERT_TRUE(control_->advance.AwaitWaiting(3, absl::Seconds(20)));
  std::thread reload([&] { EXPECT_TRUE(LoadModel("a").ok()); });
  // Warm-ups wait for the batches.
  control_->advance.Open();
  reload.join();
  for (Box& box : boxes) EXPECT_TRUE(box.Wait().ok());
  Await([&] { return control_->live_models == 4; }, "the old ones' end");
  ASSERT_TRUE(UnloadModel("a").ok());
  EXPECT_EQ(control_->live_models, 1);
}

TEST_F(SeveralDevicesTest, UnderAutoWhatADeviceCannotRunIsServedOnTheCpu) {
  AddDirectory("a");
  AddDirectory("b");
  AddDirectory("c");
  failing_["a on cuda:0"] = "needs 9 GB, 8 GB are free";
  failing_["b on cuda:2"] = "needs 9 GB, 8 GB are free";
  StartStore({.cpu_instead = true});
  ASSERT_TRUE(AwaitStarted().ok());
  EXPECT_EQ(DevicesOf(*store_->Find("a", "")), std::vector<std::string>{"cpu"});
  EXPECT_EQ(DevicesOf(*store_->Find("b", "")), std::vector<std::string>{"cpu"});
  EXPECT_EQ(DevicesOf(*store_->Find("c", "")).size(), 3u);
  Box box;
  Submit(*store_->Find("a", ""), "text", box);
  EXPECT_TRUE(box.Wait().ok());
  // A model that no device can run is refused.
  failing_["c"] = "config.json: hidden_size is missing";
  EXPECT_EQ(LoadModel("c").message(), "model c: config.json: hidden_size is missing");
}

TEST_F(SeveralDevicesTest, OneThatDoesNotLoadOnAllIsRefused) {
  AddDirectory("a");
  failing_["a on cuda:2"] = "needs 9 GB, 8 GB are free";
  StartStore();
  EXPECT_EQ(AwaitStarted().message(), "model a: needs 9 GB, 8 GB are free");
  EXPECT_EQ(control_->live_models, 0);
}

TEST_F(SeveralDevicesTest, ALostDeviceIsLeftOutFromThenOn) {
  AddDirectory("a");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  *lost_ = true;
  Await(
      [&] {
        std::array<Box, 3> boxes;
        for (Box& box : boxes) Submit(*store_->Find("a", ""), "text", box);
        for (Box& box : boxes) box.Wait();
        return Metric("longview_device_up{device=\"cuda:0\"}") == 0;
      },
      "the loss");
  ASSERT_TRUE(LoadModel("a").ok());
  EXPECT_EQ(DevicesOf(*store_->Find("a", "")), (std::vector<std::string>{"cuda:1", "cuda:2"}));
  Box box;
  Submit(*store_->Find("a", ""), "text", box);
  EXPECT_TRUE(box.Wait().ok());
}

TEST_F(ModelStoreTest, LoadAndUnloadUnderTraffic) {
  AddDirectory("steady");
  AddDirectory("moving");
  StartStore();
  ASSERT_TRUE(AwaitStarted().ok());
  std::atomic<bool> stop = false;
  std::atomic<int> moves{0};
  std::thread mover([&] {
    while (!stop) {
      EXPECT_TRUE(UnloadModel("moving").ok());
      EXPECT_TRUE(LoadModel("moving").ok());
      EXPECT_TRUE(LoadModel("moving").ok());
      ++moves;
    }
  });
  for (int i = 0; i < 1000 || moves < 10; ++i) {
    const std::string text = "text " + std::to_string(i);
    Box steady, moving;
    Submit(*store_->Find("steady", ""), text, steady);
    const absl::StatusOr<ModelHandle> other = store_->Find("moving", "");
    if (other.ok()) Submit(*other, text, moving);
    ASSERT_TRUE(steady.Wait().ok());
    EXPECT_EQ(Logits(*steady.Wait()), FakeLogits(text, 3));
    if (other.ok()) {
      ASSERT_TRUE(moving.Wait().ok());
      EXPECT_EQ(Logits(*moving.Wait()), FakeLogits(text, 3));
    }
  }
  stop = true;
  mover.join();
  Await([&] { return control_->live_models == 2; }, "the replaced models' end");
  Await([&] { return control_->live_items == 0; }, "the items' end");
}

}  // namespace
}  // namespace longview::server
