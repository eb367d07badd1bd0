// The fake model's answers, per task. Used by fake_model.cc only.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.h"
#include "tests/support/fake_model.h"

namespace longview::testing {

class FakeItem : public models::Item {
 public:
  FakeItem(std::vector<int32_t> item_ids, models::Request item_request, models::Cost cost,
           int truncated, std::shared_ptr<FakeControl> control)
      : ids(std::move(item_ids)), request(std::move(item_request)), control_(std::move(control)) {
    cost_ = cost;
    usage_.input_tokens = static_cast<int>(ids.size());
    usage_.truncated_tokens = truncated;
    if (request.pixel_values) {
      usage_.width = request.pixel_values->width;
      usage_.height = request.pixel_values->height;
    }
    ++control_->live_items;
  }
  ~FakeItem() override { --control_->live_items; }

  const std::vector<int32_t> ids;
  const models::Request request;
  bool fail_take = false;
  bool not_a_number = false;

 private:
  const std::shared_ptr<FakeControl> control_;
};

models::ModelInfo MakeFakeInfo(const FakeOptions& options);

// Whether `name` may be asked for in Request::tensors of `task`.
bool HasFakeTensor(models::Task task, std::string_view name);

models::Answer MakeFakeAnswer(const FakeItem& item, const FakeOptions& options);

}  // namespace longview::testing
