// Several devices behind one queue: fakes on two of them, beside a CPU that has its own.
#include <array>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/errors.h"
#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeControl;
using testing::FakeGenerator;
using testing::FakeLogits;
using testing::FakeModel;
using testing::FakeOptions;
using testing::GeneratorControl;
using testing::GeneratorOptions;

class DevicesTest : public GenerationFixture {
 protected:
  DevicesTest() {
    options_.devices = {kNames[0], kNames[1], "cpu"};
    for (auto& device : lost_) device = std::make_shared<std::atomic<bool>>(false);
  }
  ~DevicesTest() override {
    for (auto& control : batched_) control->advance.Open();
    for (auto& control : generated_) control->advance.Open();
    if (engine_) engine_->Shutdown();
  }

  // An instance on each device, each with a control of its own.
  ModelHandle MakeClassifier(FakeOptions options = {}) {
    const auto on = [&](size_t i) {
      options.device = kNames[i];
      options.lost = lost_[i];
      options.control = batched_[i];
      return std::make_unique<FakeModel>(options);
    };
    return Serve("fake", on(0), on(1));
  }
  ModelHandle MakeGenerators(GeneratorOptions options = {}) {
    const auto on = [&](size_t i) {
      options.device = kNames[i];
      options.lost = lost_[i];
      options.control = generated_[i];
      return std::make_unique<FakeGenerator>(options);
    };
    control_ = generated_[0];
    return Serve("gen", on(0), on(1));
  }

  std::shared_ptr<models::Document> OpenDocument(const ModelHandle& model) {
    ReplyBox<std::shared_ptr<models::Document>> box;
    engine_->NewDocument(model, box.reply());
    const auto& opened = box.Wait();
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : nullptr;
  }
  absl::StatusOr<Completed> Read(const ModelHandle& model, std::string text,
                                 std::shared_ptr<models::Document> document) {
    models::Request request = Prompt(std::move(text));
    request.document = std::move(document);
    request.extend_document = true;
    EventBox box;
    Generate(model, std::move(request), box);
    return box.Wait();
  }

  void AwaitBegun(int64_t first, int64_t second) {
    Await([&] { return batched_[0]->begun == first && batched_[1]->begun == second; }, "batches");
  }
  double Up(size_t device) const {
    return Metric("longview_device_up{device=\"" + std::string(kNames[device]) + "\"}");
  }
  void ExpectLost(const absl::Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
    EXPECT_EQ(GetErrorDetail(status).reason, "DEVICE_LOST") << status;
  }

  static constexpr std::array<const char*, 2> kNames = {"cuda:0", "cuda:1"};
  std::array<testing::FakeDevicePtr, 2> lost_;
  std::array<std::shared_ptr<FakeControl>, 2> batched_ = {std::make_shared<FakeControl>(),
                                                          std::make_shared<FakeControl>()};
  std::array<std::shared_ptr<GeneratorControl>, 2> generated_ = {
      std::make_shared<GeneratorControl>(), std::make_shared<GeneratorControl>()};

 private:
  template <typename Model>
  ModelHandle Serve(std::string name, std::unique_ptr<Model> first, std::unique_ptr<Model> second) {
    auto served = std::make_shared<ServedModel>();
    served->name = std::move(name);
    served->version = "1";
    served->id = ++last_model_id_;
    served->model = std::move(first);
    served->further.push_back(std::move(second));
    metrics_.ModelLoaded({served->name, served->version}, 1, 1);
    return served;
  }
};

TEST_F(DevicesTest, BothComputeAtOnceAndTheCpuBesideThem) {
  StartEngine();
  const ModelHandle model = MakeClassifier();
  const ModelHandle on_cpu = MakeModel({}, "on-cpu");
  for (auto& control : batched_) control->advance.Close();
  std::array<Box, 3> boxes;
  Submit(model, "one", boxes[0]);
  Submit(model, "two", boxes[1]);
  AwaitBegun(1, 1);
  Submit(model, "three", boxes[2]);
  Box beside;
  Submit(on_cpu, "four", beside);
  ASSERT_TRUE(beside.Wait().ok());
  EXPECT_EQ(Metric("longview_running_requests{model=\"fake\",version=\"1\"}"), 2);
  EXPECT_EQ(Metric("longview_queued_requests{model=\"fake\",version=\"1\"}"), 1);
  // Whichever is done first takes the third.
  batched_[1]->advance.Open();
  ASSERT_TRUE(boxes[2].Wait().ok());
  EXPECT_EQ(batched_[0]->begun, 1);
  EXPECT_EQ(batched_[1]->begun, 2);
  batched_[0]->advance.Open();
  EXPECT_EQ(Logits(*boxes[0].Wait()), FakeLogits("one", 3));
  EXPECT_EQ(Logits(*boxes[1].Wait()), FakeLogits("two", 3));
  EXPECT_EQ(Logits(*boxes[2].Wait()), FakeLogits("three", 3));
  EXPECT_EQ(Up(0) + Up(1) + Metric("longview_device_up{device=\"cpu\"}"), 3);
}

TEST_F(DevicesTest, WarmUpsRunOnTheDeviceTheyName) {
  StartEngine();
  std::array<std::thread::id, 3> threads;
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = options_.devices[i];
    ASSERT_TRUE(engine_
                    ->RunOnDevice(name, "fake",
                                  [&threads, i] {
                                    threads[i] = std::this_thread::get_id();
                                    return absl::OkStatus();
                                  })
                    .ok());
  }
  EXPECT_NE(threads[0], threads[1]);
  EXPECT_NE(threads[1], threads[2]);
  EXPECT_NE(threads[0], threads[2]);
  EXPECT_EQ(engine_->DevicesLike("cuda:1"), (std::vector<std::string>{"cuda:0", "cuda:1"}));
  EXPECT_EQ(engine_->DevicesLike("cpu"), std::vector<std::string>{"cpu"});
}

TEST_F(DevicesTest, DocumentsStayWhereTheyAreAndAnswersAreRight) {
  StartEngine();
  const ModelHandle model = MakeGenerators();
  std::vector<std::shared_ptr<models::Document>> documents;
  for (int i = 0; i < 6; ++i) {
    documents.push_back(OpenDocument(model));
    const auto read = Read(model, "document " + std::to_string(i), documents.back());
    ASSERT_TRUE(read.ok()) << read.status();
  }
  EXPECT_EQ(generated_[0]->live_documents, 3);
  EXPECT_EQ(generated_[1]->live_documents, 3);
  for (int round = 0; round < 5; ++round) {
    std::vector<EventBox> boxes(documents.size());
    for (size_t i = 0; i < documents.size(); ++i) {
      models::Request request = Prompt("?", 10);
      request.document = documents[i];
      Generate(model, std::move(request), boxes[i]);
    }
    for (size_t i = 0; i < documents.size(); ++i) {
      ASSERT_TRUE(boxes[i].Wait().ok()) << boxes[i].Wait().status();
      EXPECT_EQ(boxes[i].text(),
                testing::FakeContinuation("document " + std::to_string(i) + "?", 0, 10));
    }
  }
  documents.clear();
  Await([&] { return generated_[0]->live_documents + generated_[1]->live_documents == 0; },
        "the documents' end");
  for (const auto& control : generated_) EXPECT_EQ(control->thread_changes, 0);
  ExpectNothingLeft();
}

TEST_F(DevicesTest, ALostDeviceFailsWhatIsOnItAndTheOtherGoesOn) {
  std::vector<std::string> told;
  std::mutex mutex;
  options_.on_lost = [&](const std::string& device, const std::string& why) {
    std::lock_guard lock(mutex);
    told.push_back(device + ": " + why);
  };
  StartEngine();
  const ModelHandle model = MakeClassifier();
  for (auto& control : batched_) control->advance.Close();
  std::array<Box, 2> running;
  Submit(model, "one", running[0]);
  // Either takes it: `first`; the second one takes the next.
  Await([&] { return batched_[0]->begun + batched_[1]->begun == 1; }, "a batch");
  const size_t first = batched_[0]->begun == 1 ? 0 : 1, second = 1 - first;
  const std::string names[] = {kNames[first], kNames[second]};
  Submit(model, "two", running[1]);
  AwaitBegun(1, 1);
  std::vector<Box> waiting(5);
  for (Box& box : waiting) Submit(model, "waits", box);
  *lost_[first] = true;
  for (auto& control : batched_) control->advance.Open();
  ExpectLost(running[0].Wait().status());
  EXPECT_TRUE(running[1].Wait().ok());
  // Work that had not started there never does.
  for (Box& box : waiting) EXPECT_TRUE(box.Wait().ok()) << box.Wait().status();
  Await([&] { return Up(first) == 0; }, "the metric");
  EXPECT_EQ(Up(second), 1);
  EXPECT_TRUE(engine_->Able());
  EXPECT_EQ(engine_->Stuck(), "");
  EXPECT_EQ(engine_->DevicesLike(names[0]), std::vector<std::string>{names[1]});
  EXPECT_EQ(batched_[first]->begun, 1);

  *lost_[second] = true;
  Box last, after;
  Submit(model, "last", last);
  ExpectLost(last.Wait().status());
  Await([&] { return Up(second) == 0; }, "the metric");
  EXPECT_FALSE(engine_->Able());
  EXPECT_NE(engine_->Stuck(), "");
  Submit(model, "after", after);
  ExpectLost(after.Wait().status());
  const auto losses = [&] {
    std::lock_guard lock(mutex);
    return told.size();
  };
  Await([&] { return losses() == 2; }, "the news of both");
  std::lock_guard lock(mutex);
  EXPECT_EQ(told, (std::vector<std::string>{names[0] + ": fake: an illegal address",
                                            names[1] + ": fake: an illegal address"}));
}

TEST_F(DevicesTest, GenerationsAndDocumentsOfALostDeviceEnd) {
  StartEngine();
  GeneratorOptions options;
  options.pace = 1;
  options.step_seconds = 1e-4;
  const ModelHandle model = MakeGenerators(options);
  std::array<std::shared_ptr<models::Document>, 2> documents = {OpenDocument(model),
                                                                OpenDocument(model)};
  std::array<EventBox, 2> streams;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Read(model, "document", documents[i]).ok());
    models::Request request = Prompt("?", i == 0 ? 50000 : 500);
    request.document = documents[i];
    Generate(model, std::move(request), streams[i]);
    ASSERT_TRUE(streams[i].AwaitPieces(1));
  }
  *lost_[0] = true;
  ExpectLost(streams[0].Wait().status());
  ASSERT_TRUE(streams[1].Wait().ok()) << streams[1].Wait().status();
  EXPECT_EQ(streams[1].text(), testing::FakeContinuation("document?", 0, 500));
  Await([&] { return Up(0) == 0; }, "the metric");
  // Its document is of no use any more; new ones and prompts go to the other device.
  ExpectLost(Read(model, "more", documents[0]).status());
  EXPECT_TRUE(Read(model, "more", documents[1]).ok());
  EXPECT_TRUE(Read(model, "new", OpenDocument(model)).ok());
  std::vector<EventBox> boxes(4);
  for (EventBox& box : boxes) Generate(model, Prompt("prompt", 5), box);
  for (EventBox& box : boxes) EXPECT_TRUE(box.Wait().ok()) << box.Wait().status();
  documents = {};
  ExpectNothingLeft();
  for (const auto& control : generated_) EXPECT_EQ(control->thread_changes, 0);
}

TEST_F(DevicesTest, ADeviceLostBetweenTheLayersOfABatchEndsTheBatchToo) {
  StartEngine();
  GeneratorOptions options;
  options.pace = 1;
  options.decode_seconds = 1e-3;
  const ModelHandle generators = MakeGenerators(options);
  FakeOptions batch;
  batch.layers = 1000;
  batch.item_seconds = 10;
  batch.layer_item_time = absl::Milliseconds(5);
  const ModelHandle classifier = MakeClassifier(batch);
  std::array<EventBox, 2> streams;
  for (EventBox& stream : streams) {
    Generate(generators, Prompt("stream", 50000), stream);
    ASSERT_TRUE(stream.AwaitPieces(1));
  }
  std::array<Box, 2> boxes;
  for (Box& box : boxes) Submit(classifier, "long", box);
  Await([&] { return batched_[0]->layers_run > 2 && batched_[1]->layers_run > 2; }, "both");
  *lost_[0] = true;
  // One of each was there.
  Await([&] { return boxes[0].count() + boxes[1].count() == 1; }, "the batch's end");
  Await([&] { return Up(0) == 0; }, "the metric");
  for (Box& box : boxes) {
    if (box.count() == 1) ExpectLost(box.Wait().status());
  }
  engine_->Shutdown();
  int lost = 0;
  for (EventBox& stream : streams) {
    EXPECT_EQ(stream.WaitCode(), StatusCode::kUnavailable);
    lost += GetErrorDetail(stream.Wait().status()).reason == "DEVICE_LOST";
  }
  EXPECT_EQ(lost, 1);
}

TEST_F(DevicesTest, ShutdownEndsWhatIsOnEveryDevice) {
  StartEngine();
  GeneratorOptions options;
  options.pace = 1;
  const ModelHandle model = MakeGenerators(options);
  std::vector<EventBox> boxes(6);
  for (EventBox& box : boxes) Generate(model, Prompt("stream", 50000), box);
  for (EventBox& box : boxes) ASSERT_TRUE(box.AwaitPieces(1));
  EXPECT_GT(generated_[0]->live_generations, 0);
  EXPECT_GT(generated_[1]->live_generations, 0);
  engine_->Shutdown();
  for (EventBox& box : boxes) EXPECT_EQ(box.WaitCode(), StatusCode::kUnavailable);
  // The schedulers are not told: nothing asks them any more.
  EXPECT_EQ(engine_->calls(), 0u);
  for (const auto& control : generated_) EXPECT_EQ(control->live_generations, 0);
}

// Requests of every kind from several threads, many cancelled or late, while a device is lost:
// every call is answered once, and nothing is left.
TEST_F(DevicesTest, Storm) {
  options_.scheduler.memory_bytes = 5e5;
  StartEngine();
  FakeOptions batch;
  batch.layers = 3;
  batch.layer_item_time = absl::Microseconds(20);
  const ModelHandle classifier = MakeClassifier(batch);
  const ModelHandle generators = MakeGenerators();
  constexpr int kThreads = 4, kEach = 300;
  std::atomic<int> ok{0}, lost{0}, other{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < kThreads; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<Box> boxes(kEach);
      std::vector<EventBox> streams(kEach);
      std::vector<bool> generated(kEach);
      for (size_t i = 0; i < kEach; ++i) {
        const absl::Duration due =
            random() % 8 == 0 ? absl::Milliseconds(random() % 20) : absl::InfiniteDuration();
        const CallInfo info = Info(std::to_string(random() % 3), due);
        generated[i] = random() % 2 == 0;
        const CallId id = generated[i] ? Generate(generators, Prompt("prompt", 1 + random() % 30),
                                                  streams[i], info)
                                       : Submit(classifier, "text", boxes[i], info);
        if (random() % 6 == 0) engine_->Cancel(id);
        if (t == 0 && i == kEach / 2) *lost_[1] = true;
      }
      for (size_t i = 0; i < kEach; ++i) {
        const absl::Status status =
            generated[i] ? streams[i].Wait().status() : boxes[i].Wait().status();
        if (generated[i]) {
          EXPECT_TRUE(streams[i].in_order());
        } else {
          EXPECT_EQ(boxes[i].count(), 1);
        }
        ++(status.ok() ? ok : absl::IsUnavailable(status) ? lost : other);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(ok + lost + other, kThreads * kEach);
  EXPECT_GT(ok, kThreads * kEach / 2);
  ExpectNothingLeft();
  for (const auto& control : generated_) EXPECT_EQ(control->thread_changes, 0);
}

}  // namespace
}  // namespace longview::server
