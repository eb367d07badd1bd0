// The insides of FakeGenerator: items, documents, sequences. Used by fake_gener*.cc only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_generator.h"

namespace longview::testing {

using ControlPtr = std::shared_ptr<GeneratorControl>;

// Bytes counted in the control while this lives.
class CountedBytes {
 public:
  explicit CountedBytes(ControlPtr control) : control_(std::move(control)) {}
  ~CountedBytes() { Set(0); }
  void Set(double bytes);
  double bytes() const { return bytes_; }

 private:
  const ControlPtr control_;
  double bytes_ = 0;
};

// Counts uses on another thread than the first.
class ThreadCheck {
 public:
  explicit ThreadCheck(ControlPtr control) : control_(std::move(control)) {}
  void Use();

 private:
  const ControlPtr control_;
  const std::thread::id owner_ = std::this_thread::get_id();
};

class FakeDocument : public models::Document {
 public:
  FakeDocument(ControlPtr control, double token_bytes);
  ~FakeDocument() override;
  int tokens() const override { return static_cast<int>(text_.size()); }
  double state_bytes() const override { return held_.bytes(); }
  const std::string& text() const { return text_; }
  void Read(std::string_view more);

 private:
  const ControlPtr control_;
  const double token_bytes_;
  std::string text_;
  CountedBytes held_;
  ThreadCheck thread_;
};

class GeneratorItem : public models::Item {
 public:
  GeneratorItem(models::Request item_request, std::string item_prompt, models::Cost cost,
                ControlPtr control);
  ~GeneratorItem() override { --control_->live_items; }

  int samples() const;
  int max_new_tokens() const;

  const models::Request request;
  const std::string prompt;  // This request's alone, without its document.

 private:
  const ControlPtr control_;
};

class FakeGeneration : public models::Generation {
 public:
  FakeGeneration(const GeneratorItem& item, const GeneratorOptions& options);
  ~FakeGeneration() override;

  Need need() const override;
  bool done() const override;
  std::vector<models::Piece> TakePieces() override;
  absl::StatusOr<models::Answer> Take() override;

  // A step's share: `prefill` tokens of the prompt, or a token for each sequence.
  void Step(int prefill);
  // Ends the generation with this error.
  void Fail(const absl::Status& status) { failed_ = status; }

 private:
  struct Sequence {
    models::Piece whole;
    uint64_t state = 0;  // Digest of all that came before.
    std::string text;    // With a stop string, if one was found.
    size_t given = 0;    // Bytes of whole.text given out as pieces; and its token ids.
    size_t given_tokens = 0;
    bool told_end = false;
  };

  void FinishPrompt();
  void Sample(Sequence& sequence);
  size_t Releasable(const Sequence& sequence) const;
  void CountBytes();
  bool scoring() const { return item_.max_new_tokens() == 0; }
  bool beams() const { return item_.request.generation->num_beams.value_or(1) > 1; }

  const GeneratorItem& item_;
  const GeneratorOptions& options_;
  std::string context_;  // Document and prompt.
  absl::Status failed_;
  int to_read_;
  int cached_ = 0;
  bool echo_given_ = false;
  std::vector<Sequence> sequences_;
  CountedBytes held_;
  ThreadCheck thread_;
};

}  // namespace longview::testing
