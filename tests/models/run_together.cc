#include "tests/models/run_together.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "models/pauses.h"

namespace longview::models {
namespace {

// A batch under way.
struct RunningBatch {
  std::vector<std::unique_ptr<Item>> items;
  std::unique_ptr<Run> run;  // Null after a failure.
};

RunningBatch BeginTogether(const Model& model, const std::vector<Request>& requests) {
  RunningBatch batch;
  std::vector<const Item*> borrowed;
  for (const Request& request : requests) {
    absl::StatusOr<std::unique_ptr<Item>> item = model.Prepare(request);
    EXPECT_TRUE(item.ok()) << item.status();
    if (!item.ok()) return batch;
    batch.items.push_back(*std::move(item));
    borrowed.push_back(batch.items.back().get());
  }
  batch.run = model.Begin(borrowed);
  return batch;
}

Answer TakeOrFail(Run& run, size_t i) {
  absl::StatusOr<Answer> answer = run.Take(static_cast<int>(i));
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : Answer();
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename Number>
double Largest(std::span<const float> got, std::span<const Number> want) {
  if (got.size() != want.size()) return kInfinity;
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // Infinities, too.
    const double difference = std::abs(double{got[i]} - want[i]);
    if (std::isnan(difference)) return kInfinity;
    largest = std::max(largest, difference);
  }
  return largest;
}

// Runs a request now and then.
class Visitor final : public Pauses {
 public:
  Visitor(const Model& model, const Request& request, const Answer& alone)
      : model_(model), request_(request), alone_(alone) {}

  void Pause() override {
    // At all kinds of places, and not at many of one.
    if (++pauses != next_) return;
    next_ = next_ + 1 + next_ / 3;
    ++visits;
    ExpectSameBits({RunAlone(model_, request_)}, {alone_});
  }

  int pauses = 0, visits = 0;

 private:
  const Model& model_;
  const Request& request_;
  const Answer& alone_;
  int next_ = 1;
};

}  // namespace

std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests) {
  const RunningBatch batch = BeginTogether(model, requests);
  std::vector<Answer> answers(requests.size());
  if (batch.run == nullptr) return answers;
  while (batch.run->Advance()) {
  }
  for (size_t i = 0; i < answers.size(); ++i) answers[i] = TakeOrFail(*batch.run, i);
  return answers;
}

Answer RunAlone(const Model& model, const Request& request) {
  return RunTogether(model, {request})[0];
}

ChunkVectors RunChunks(const Model& model, const Request& request) {
  absl::StatusOr<ChunkPlan> plan = model.PlanChunks(request);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  ChunkVectors out;
  out.plan = *std::move(plan);
  out.answers = RunTogether(model, out.plan.items);
  for (const auto& [item, vector] : out.plan.sources) {
    const HostTensor& tensor = out.answers[static_cast<size_t>(item)].tensors.at(0);
    const auto width = static_cast<size_t>(tensor.shape.back());
    const auto own = tensor.floats().subspan(width * static_cast<size_t>(vector), width);
    out.vectors.emplace_back(own.begin(), own.end());
  }
  return out;
}

double LargestDifference(std::span<const float> got, std::span<const double> want) {
  return Largest(got, want);
}

double LargestDifference(std::span<const float> got, std::span<const float> want) {
  return Largest(got, want);
}

double LargestDifference(const std::vector<Answer>& got, const std::vector<Answer>& want) {
  if (got.size() != want.size()) return kInfinity;
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].tensors.size() != want[i].tensors.size()) return kInfinity;
    for (size_t t = 0; t < got[i].tensors.size(); ++t) {
      largest = std::max(
          largest, LargestDifference(got[i].tensors[t].floats(), want[i].tensors[t].floats()));
    }
  }
  return largest;
}

void ExpectSameBits(const Detection& a, const Detection& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(std::memcmp(&a.score, &b.score, 5 * sizeof(float)), 0);  // And the box.
  EXPECT_EQ(a.mask_runs, b.mask_runs);
}

void ExpectSameBits(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "item " << i);
    ASSERT_EQ(a[i].tensors.size(), b[i].tensors.size());
    for (size_t t = 0; t < a[i].tensors.size(); ++t) {
      EXPECT_EQ(a[i].tensors[t].data, b[i].tensors[t].data) << a[i].tensors[t].name;
    }
    ASSERT_EQ(a[i].detections.size(), b[i].detections.size());
    for (size_t d = 0; d < a[i].detections.size(); ++d) {
      ExpectSameBits(a[i].detections[d], b[i].detections[d]);
    }
  }
}

std::vector<Answer> ExpectSameBitsAloneAndTogether(const Model& model,
                                                   const std::vector<Request>& requests) {
  std::vector<Answer> alone;
  for (const Request& request : requests) alone.push_back(RunAlone(model, request));
  std::vector<Request> batch = requests;
  batch.insert(batch.end(), requests.rbegin(), requests.rend());
  std::vector<Answer> expected = alone;
  expected.insert(expected.end(), alone.rbegin(), alone.rend());
  ExpectSameBits(RunTogether(model, batch), expected);
  return alone;
}

void ExpectDropsChangeNothing(const Model& model, const std::vector<Request>& requests) {
  ASSERT_GE(requests.size(), 2u);
  const std::vector<Answer> together = RunTogether(model, requests);
  const RunningBatch batch = BeginTogether(model, requests);
  ASSERT_NE(batch.run, nullptr);
  ASSERT_TRUE(batch.run->Advance());
  batch.run->Drop(0);
  while (batch.run->Advance()) {
  }
  EXPECT_EQ(batch.run->Take(0).status().code(), absl::StatusCode::kCancelled);
  for (size_t i = 1; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSameBits({TakeOrFail(*batch.run, i)}, {together[i]});
  }
}

void ExpectVisitorsChangeNothing(const Model& model, const Request& request,
                                 const Request& visitor) {
  const Answer alone = RunAlone(model, request);
  const Answer visitor_alone = RunAlone(model, visitor);
  const RunningBatch batch = BeginTogether(model, {request});
  ASSERT_NE(batch.run, nullptr);
  Visitor visits(model, visitor, visitor_alone);
  {
    const PauseScope scope(&visits);
    while (batch.run->Advance()) {
    }
  }
  ExpectSameBits({TakeOrFail(*batch.run, 0)}, {alone});
  EXPECT_GT(visits.visits, 2);
}

}  // namespace longview::models
