#include "tests/models/vision/run_together.h"

#include <gtest/gtest.h>

#include <memory>

namespace longview::models {

std::vector<Answer> RunTogether(const Model& model, const std::vector<Request>& requests) {
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> batch;
  for (const Request& request : requests) {
    auto item = model.Prepare(request);
    EXPECT_TRUE(item.ok()) << item.status();
    if (!item.ok()) return {};
    items.push_back(*std::move(item));
    batch.push_back(items.back().get());
  }
  const std::unique_ptr<Run> run = model.Begin(batch);
  while (run->Advance()) {
  }
  std::vector<Answer> answers;
  for (size_t i = 0; i < items.size(); ++i) {
    auto answer = run->Take(static_cast<int>(i));
    EXPECT_TRUE(answer.ok()) << answer.status();
    answers.push_back(answer.ok() ? *std::move(answer) : Answer());
  }
  return answers;
}

}  // namespace longview::models
