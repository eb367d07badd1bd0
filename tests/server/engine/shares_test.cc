// Sharing of the device's thread, on real threads: short requests beside long documents,
// documents beside sequences that never end, and all of them at once.
#include <random>
#include <vector>

#include "tests/server/engine/generation_fixture.h"

namespace longview::server {
namespace {

using testing::FakeLogits;
using testing::FakeOptions;
using testing::GeneratorOptions;

class SharesTest : public GenerationFixture {
 protected:
  // A model whose items take so long, in so many layers, and are predicted to take `predicted`.
  ModelHandle MakeDocumentModel(double seconds, int layers, double predicted) {
    FakeOptions options;
    options.item_seconds = predicted;
    options.layers = layers;
    options.layer_item_time = absl::Seconds(seconds / layers);
    document_control_ = options.control;
    return MakeModel(options, "documents");
  }

  std::shared_ptr<testing::FakeControl> document_control_;
};

TEST_F(SharesTest, ShortRequestIsAnsweredWhileALongDocumentIsComputed) {
  StartEngine();
  // One layer, which goes on until the short request is answered.
  const ModelHandle documents = MakeDocumentModel(60, /*layers=*/1, /*predicted=*/60);
  FakeOptions brief;
  brief.item_seconds = 0.01;
  brief.layer_item_time = absl::Milliseconds(10);
  const ModelHandle shorts = MakeModel(brief, "shorts");
  Box document;
  Submit(documents, "document", document);
  Await([&] { return document_control_->begun == 1; }, "the document's start");
  Box box;
  Submit(shorts, "short", box, Info("b", absl::Seconds(15)));
  EXPECT_TRUE(box.Wait().ok()) << box.Wait().status();
  EXPECT_EQ(document.count(), 0) << "the document was over before";
  document_control_->hurry = true;
  ASSERT_TRUE(document.Wait().ok());
  EXPECT_EQ(Logits(*box.Wait()), FakeLogits("short", 3));
  EXPECT_EQ(Logits(*document.Wait()), FakeLogits("document", 3));
  // Time taken by others is not its own.
  const Completed& completed = *document.Wait();
  EXPECT_LE(completed.queue_seconds + completed.compute_seconds + box.Wait()->compute_seconds,
            completed.total_seconds);
}

TEST_F(SharesTest, DocumentOfLongLayersEndsBesideSequencesWithoutEnd) {
  options_.scheduler.inter_token_seconds = 0.02;
  StartEngine();
  GeneratorOptions generator;
  generator.max_tokens = 10000000;
  generator.token_bytes = 1;
  generator.pace = 1;
  generator.step_seconds = 4e-4;
  generator.decode_seconds = 2e-4;
  const ModelHandle streams = MakeGenerator(generator);
  EventBox a, b;
  const CallId first = Generate(streams, Prompt("a", 1000000), a, Info("a"));
  const CallId second = Generate(streams, Prompt("b", 1000000), b, Info("b"));
  ASSERT_TRUE(a.AwaitPieces(10));
  // Layers of 46 ms: longer than what the ceiling leaves.
  const double seconds = 0.184, step_seconds = 8e-4;
  const ModelHandle documents = MakeDocumentModel(seconds, /*layers=*/4, /*predicted=*/seconds);
  const int64_t before = control_->steps;
  Box document;
  Submit(documents, "document", document, Info("c"));
  ASSERT_TRUE(document.Wait().ok());
  // Half of the time is the sequences'; what they have in it grows where a machine is busy.
  EXPECT_LT(static_cast<double>(control_->steps - before), 5 * seconds / step_seconds);
  EXPECT_EQ(Logits(*document.Wait()), FakeLogits("document", 3));
  const int pieces = a.pieces();
  ASSERT_TRUE(a.AwaitPieces(pieces + 5));
  engine_->Cancel(first);
  engine_->Cancel(second);
  a.Wait();
  b.Wait();
  ExpectNothingLeft();
}

TEST_F(SharesTest, StormOfSequencesAndDocumentsIsAnsweredWhole) {
  options_.scheduler.inter_token_seconds = 0.02;
  StartEngine();
  GeneratorOptions generator;
  generator.pace = 1;
  generator.step_seconds = 4e-4;
  generator.decode_seconds = 2e-4;  // 60 of them take more than half of the ceiling.
  const ModelHandle streams = MakeGenerator(generator);
  constexpr int kStreams = 60, kDocuments = 200, kTokens = 25;
  std::vector<EventBox> texts(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    Generate(streams, Prompt("s" + std::to_string(i), kTokens), texts[static_cast<size_t>(i)],
             Info("c" + std::to_string(i % 7)));
  }
  const ModelHandle small = MakeDocumentModel(6e-4, /*layers=*/2, /*predicted=*/6e-4);
  const ModelHandle large = MakeDocumentModel(0.03, /*layers=*/3, /*predicted=*/0.03);
  std::vector<Box> boxes(kDocuments);
  std::mt19937 random(5);
  for (int i = 0; i < kDocuments; ++i) {
    const bool is_large = i % 50 == 25;
    Submit(is_large ? large : small, "d" + std::to_string(i), boxes[static_cast<size_t>(i)],
           Info("c" + std::to_string(random() % 9)));
  }
  for (int i = 0; i < kDocuments; ++i) {
    const auto& completed = boxes[static_cast<size_t>(i)].Wait();
    ASSERT_TRUE(completed.ok()) << completed.status();
    EXPECT_EQ(Logits(*completed), FakeLogits("d" + std::to_string(i), 3));
  }
  for (EventBox& text : texts) {
    ASSERT_TRUE(text.Wait().ok()) << text.Wait().status();
    EXPECT_EQ(text.text().size(), static_cast<size_t>(kTokens));
  }
  ExpectNothingLeft();
}

}  // namespace
}  // namespace longview::server
