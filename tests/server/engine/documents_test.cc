// Documents that are read once and asked many times, over a fake generator.
#include "server/engine/documents.h"

#include <map>
#include <string>
#include <vector>

#include "server/errors.h"
#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using absl::StatusCode;
using testing::FakeContinuation;
using testing::GeneratorOptions;

// Serves one model, or none after it was unloaded.
class OneModelStore : public ModelStore {
 public:
  absl::StatusOr<ModelHandle> Find(std::string_view, std::string_view) const override {
    std::lock_guard lock(mutex_);
    if (model_ == nullptr) return absl::NotFoundError("unloaded");
    return model_;
  }
  absl::StatusOr<ModelHandle> FindForTask(std::string_view name, std::string_view version,
                                          models::Task) const override {
    return Find(name, version);
  }
  std::string NameOf(std::string_view name) const override { return std::string(name); }
  std::vector<ModelStatus> List() const override { return {}; }
  void Load(std::string_view, Done) override {}
  void Unload(std::string_view, Done done) override { done(absl::OkStatus()); }
  bool StartupComplete() const override { return true; }

  void Set(ModelHandle model) {
    std::lock_guard lock(mutex_);
    model_ = std::move(model);
  }

 private:
  mutable std::mutex mutex_;
  ModelHandle model_;
};

class HandClock : public Clock {
 public:
  absl::Time Now() const override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Advance(absl::Duration duration) {
    std::lock_guard lock(mutex_);
    now_ += duration;
  }

 private:
  mutable std::mutex mutex_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

class DocumentsTest : public GenerationFixture {
 protected:
  using Box = ReplyBox<OpenDocument>;

  void Start(GeneratorOptions options = {}, DocumentsOptions documents = {}) {
    StartEngine();
    model_ = MakeGenerator(std::move(options));
    store_.Set(model_);
    documents_ = std::make_unique<Documents>(*engine_, store_, clock_, documents);
  }

  std::string Open(std::string client = "a", absl::Duration lease = absl::ZeroDuration()) {
    Box box;
    documents_->Open(model_, client, lease, box.reply());
    return box.Wait().ok() ? box.Wait()->handle : "";
  }
  static models::Request Text(std::string text) {
    models::Request request;
    request.text = std::move(text);
    return request;
  }
  absl::StatusOr<OpenDocument> Append(const std::string& handle, std::string text) {
    Box box;
    documents_->Append(handle, Text(std::move(text)), Info(), box.reply());
    return box.Wait();
  }
  // The document's continuation of `prompt`.
  std::string Ask(const std::string& handle, const std::string& prompt, int tokens) {
    const absl::StatusOr<DocumentUse> use = documents_->Use(handle, "a");
    if (!use.ok()) return std::string(use.status().message());
    models::Request request = Prompt(prompt, tokens);
    request.document = use->document;
    EventBox box;
    Generate(use->model, std::move(request), box);
    return box.Wait().ok() ? box.text() : std::string(box.Wait().status().message());
  }

  OneModelStore store_;
  HandClock clock_;
  ModelHandle model_;
  std::unique_ptr<Documents> documents_;  // Before the engine's end.
};

TEST_F(DocumentsTest, ReadOnceAskedManyTimes) {
  Start();
  const std::string handle = Open();
  EXPECT_EQ(handle.size(), 32u);
  ASSERT_TRUE(Append(handle, "Once upon a time, ").ok());
  const auto read = Append(handle, "there was a document.");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->usage.input_tokens, 39);
  EXPECT_EQ(read->state_bytes, 39 * 1024);
  const std::string text = "Once upon a time, there was a document.";
  for (const std::string question : {"Who?", "Where?", "Who?"}) {
    EXPECT_EQ(Ask(handle, question, 20), FakeContinuation(text + question, 0, 20));
  }
  // Asking changed nothing; it can still be read into.
  ASSERT_TRUE(Append(handle, " The end.").ok());
  EXPECT_EQ(Ask(handle, "?", 9), FakeContinuation(text + " The end.?", 0, 9));
  const auto closed = documents_->Close(handle, "a");
  ASSERT_TRUE(closed.ok());
  EXPECT_EQ(closed->usage.input_tokens, 48);
  Await([&] { return control_->live_documents == 0; }, "the document's end");
  ExpectNothingLeft();
  EXPECT_EQ(control_->state_bytes, 0);
}

TEST_F(DocumentsTest, PiecesAreReadInTheOrderOfTheCalls) {
  Start();
  const std::string handle = Open();
  std::vector<Box> boxes(200);
  std::string text;
  control_->advance.Close();
  for (size_t i = 0; i < boxes.size(); ++i) {
    const std::string piece = "piece " + std::to_string(i) + ", ";
    text += piece;
    documents_->Append(handle, Text(piece), Info(), boxes[i].reply());
  }
  EXPECT_EQ(documents_->Use(handle, "a").status().code(), StatusCode::kNotFound);
  control_->advance.Open();
  int tokens = 0;
  for (Box& box : boxes) {
    ASSERT_TRUE(box.Wait().ok());
    EXPECT_GT(box.Wait()->usage.input_tokens, tokens);
    tokens = box.Wait()->usage.input_tokens;
  }
  EXPECT_EQ(tokens, static_cast<int>(text.size()));
  Await([&] { return documents_->Use(handle, "a").ok(); }, "the last piece");
  EXPECT_EQ(Ask(handle, "!", 5), FakeContinuation(text + "!", 0, 5));
}

TEST_F(DocumentsTest, HandlesBelongToTheirClient) {
  Start();
  const std::string handle = Open("a");
  ASSERT_TRUE(Append(handle, "mine").ok());
  for (const std::string& name : {handle, std::string("no such handle")}) {
    const absl::Status use = documents_->Use(name, "b").status();
    EXPECT_EQ(use.code(), StatusCode::kNotFound);
    EXPECT_NE(use.message().find(name), std::string::npos) << use;
    EXPECT_EQ(GetErrorDetail(use).param, "document");
    EXPECT_EQ(documents_->Close(name, "b").status().code(), StatusCode::kNotFound);
  }
  Box box;
  documents_->Append(handle, Text("yours"), Info("b"), box.reply());
  EXPECT_EQ(box.WaitCode(), StatusCode::kNotFound);
  EXPECT_TRUE(documents_->Use(handle, "a").ok());
}

TEST_F(DocumentsTest, LeaseEndsWhereNobodyUsesIt) {
  Start();
  const std::string short_lived = Open("a", absl::Seconds(10));
  const std::string long_lived = Open("a", absl::Hours(1));
  ASSERT_TRUE(Append(short_lived, "short").ok());
  for (int i = 0; i < 5; ++i) {  // Use renews it.
    clock_.Advance(absl::Seconds(9));
    documents_->CloseExpired();
    ASSERT_TRUE(documents_->Use(short_lived, "a").ok());
  }
  clock_.Advance(absl::Seconds(11));
  Await([&] { return documents_->size() == 1; }, "the end of the lease");
  EXPECT_EQ(documents_->Use(short_lived, "a").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(documents_->Use(long_lived, "a").ok());
  Await([&] { return control_->live_documents == 1; }, "the document's end");

  Box box;
  documents_->Open(model_, "a", absl::Hours(25), box.reply());
  EXPECT_EQ(box.WaitCode(), StatusCode::kInvalidArgument);
  EXPECT_NE(box.Wait().status().message().find("90000"), std::string::npos);
}

TEST_F(DocumentsTest, FailedPieceClosesTheDocument) {
  Start();
  const std::string handle = Open();
  ASSERT_TRUE(Append(handle, "good").ok());
  Box bad, after;
  control_->start.Close();  // So that the second is there before the first has failed.
  documents_->Append(handle, Text("!start"), Info(), bad.reply());
  documents_->Append(handle, Text("after"), Info(), after.reply());
  control_->start.Open();
  EXPECT_EQ(bad.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(after.WaitCode(), StatusCode::kNotFound);
  EXPECT_EQ(documents_->size(), 0u);
  Await([&] { return control_->live_documents == 0; }, "the document's end");
}

TEST_F(DocumentsTest, CloseCancelsWhatIsBeingRead) {
  Start();
  const std::string handle = Open();
  control_->advance.Close();
  Box box;
  documents_->Append(handle, Text(std::string(50000, 'x')), Info(), box.reply());
  ASSERT_TRUE(control_->advance.AwaitWaiting(1, absl::Seconds(20)));
  ASSERT_TRUE(documents_->Close(handle, "a").ok());
  EXPECT_EQ(box.WaitCode(), StatusCode::kCancelled);
  control_->advance.Open();
  Await([&] { return control_->live_documents == 0; }, "the document's end");
  ExpectNothingLeft();
  EXPECT_EQ(box.count(), 1);
}

TEST_F(DocumentsTest, ForkOutlivesTheHandle) {
  Start();
  const std::string handle = Open();
  ASSERT_TRUE(Append(handle, "read").ok());
  absl::StatusOr<DocumentUse> use = documents_->Use(handle, "a");
  ASSERT_TRUE(use.ok());
  models::Request request = Prompt("?", 50);
  request.document = std::move(use->document);
  ASSERT_TRUE(documents_->Close(handle, "a").ok());
  EventBox box;
  Generate(model_, std::move(request), box);
  ASSERT_TRUE(box.Wait().ok());
  EXPECT_EQ(box.text(), FakeContinuation("read?", 0, 50));
  Await([&] { return control_->live_documents == 0; }, "the document's end");
}

TEST_F(DocumentsTest, BytesCountUntilTheDocumentIsClosed) {
  options_.scheduler.memory_bytes = 100 * 1024;
  Start();
  const std::string handle = Open();
  ASSERT_TRUE(Append(handle, std::string(80, 'd')).ok());
  EventBox refused, fits, later;
  Generate(model_, Prompt("x", 40), refused);
  EXPECT_EQ(refused.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.Wait().status().message().find("leave 20480"), std::string::npos)
      << refused.Wait().status();
  EXPECT_TRUE(GetErrorDetail(refused.Wait().status()).retry_after.has_value());
  Generate(model_, Prompt("x", 15), fits);
  EXPECT_TRUE(fits.Wait().ok());
  ASSERT_TRUE(documents_->Close(handle, "a").ok());
  Await([&] { return control_->live_documents == 0; }, "the document's end");
  Generate(model_, Prompt("x", 40), later);
  EXPECT_TRUE(later.Wait().ok());
}

TEST_F(DocumentsTest, UnloadedModelTakesItsDocumentsAlong) {
  Start();
  Open();
  Open();
  EXPECT_EQ(documents_->size(), 2u);
  store_.Set(nullptr);
  documents_->CloseExpired();
  EXPECT_EQ(documents_->size(), 0u);
  Await([&] { return model_.use_count() == 1; }, "the model's last user");
}

TEST_F(DocumentsTest, ClientsHaveALimit) {
  DocumentsOptions options;
  options.max_per_client = 2;
  Start({}, options);
  EXPECT_NE(Open(), "");
  EXPECT_NE(Open(), "");
  Box box;
  documents_->Open(model_, "a", absl::ZeroDuration(), box.reply());
  EXPECT_EQ(box.WaitCode(), StatusCode::kResourceExhausted);
  EXPECT_NE(Open("b"), "");
}

TEST_F(DocumentsTest, ManyOpenedReadAskedAndDropped) {
  Start();
  std::vector<std::string> handles;
  for (int i = 0; i < 100; ++i) {
    handles.push_back(Open());
    Box box;
    documents_->Append(handles.back(), Text(std::string(1 + i, 'q')), Info(), box.reply());
    if (i % 3 == 0) {
      documents_->Close(handles.back(), "a").IgnoreError();
      box.Wait();
    } else {
      ASSERT_TRUE(box.Wait().ok());
      EXPECT_EQ(Ask(handles.back(), "z", 3), FakeContinuation(std::string(1 + i, 'q') + "z", 0, 3));
    }
  }
  documents_.reset();
  Await([&] { return control_->live_documents == 0; }, "the documents' end");
  ExpectNothingLeft();
  EXPECT_EQ(control_->state_bytes, 0);
}

}  // namespace
}  // namespace longview::server
