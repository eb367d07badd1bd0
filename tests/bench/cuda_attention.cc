#include "tests/bench/cuda_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/plan_upload.h"
#include "kernels/cuda/plugin.h"
#include "kernels/cuda/span/decode_plan.h"
#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/band_planner.h"
#include "kernels/span/paged_planner.h"
#include "kernels/span/softmax_state.h"
#include "tests/kernels/cuda/support/emulated_plugin.h"

namespace longview::kernels::cuda {
namespace {

// The library's state between calls: one plan on one device.
class Bench {
 public:
  Status Open(const char* path) {
    const LoadedPlugin plugin =
        path == nullptr ? LoadedPlugin{&testing::EmulatedPlugin(), ""} : LoadPlugin(path);
    if (plugin.api == nullptr) {
      error_ = plugin.reason;
      return -1;
    }
    api_ = plugin.api;
    int32_t devices = 0;
    if (const Status status = api_->device_count(&devices); status != 0) return status;
    if (devices == 0) {
      error_ = CountDriverDevices().reason;
      return -1;
    }
    if (const Status status = api_->create_stream(0, &stream_); status != 0) return status;
    for (Event*& event : events_) {
      if (const Status status = api_->create_event(0, &event); status != 0) return status;
    }
    return api_->span.prepare(0);
  }

  Status Use(Plan plan, const SpanCall& shape, SpanPhase phase) {
    plan_ = std::move(plan);
    call_ = shape;
    const PlanCapacity capacity = CapacityOf(plan_);
    upload_ = std::make_unique<PlanUpload>(*api_, 0);
    if (const Status status = upload_->Reserve(ImageBytes(capacity)); status != 0) return status;
    if (const Status status = upload_->Upload(stream_, plan_, capacity); status != 0) return status;
    partials_ = nullptr;
    if (plan_.partial_slots > 0) {
      const uint64_t bytes = PartialBytes(plan_.partial_slots, call_.Dv);
      if (const Status status = api_->allocate(0, bytes, &partials_); status != 0) return status;
    }
    launch_ = ShapeLaunch(capacity, call_, KernelOf(call_, phase, api_->span.warpgroups(0) != 0));
    return api_->synchronize(stream_);
  }

  // Puts an array into device memory, for as long as the process lives.
  Status Put(const std::vector<int32_t>& values, const int32_t** on_device) {
    void* memory = nullptr;
    void* pinned = nullptr;
    const uint64_t bytes = values.size() * sizeof(int32_t);
    if (const Status status = api_->allocate(0, bytes, &memory); status != 0) return status;
    if (const Status status = api_->allocate_pinned(bytes, &pinned); status != 0) return status;
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(pinned));
    if (const Status status = api_->copy_in(stream_, memory, pinned, bytes); status != 0) {
      return status;
    }
    if (const Status status = api_->synchronize(stream_); status != 0) return status;
    *on_device = static_cast<const int32_t*>(memory);
    return api_->release_pinned(pinned);
  }

  Status Run(const void* q, const void* k, const void* v, void* out, int times, float* elapsed) {
    call_.q = q;
    call_.out = out;
    for (int s = 0; s < call_.sources_used; ++s) {
      call_.sources[s].k = k;
      call_.sources[s].v = v;
    }
    PrepareCall(&call_, partials_, plan_.partial_slots);
    const PlanView& view = upload_->view();
    if (const Status status = api_->record(stream_, events_[0]); status != 0) return status;
    for (int i = 0; i < times; ++i) {
      Status status = api_->span.forward(stream_, &view, &call_, &launch_);
      if (status == 0) status = api_->span.merge(stream_, &view, &call_, &launch_);
      if (status != 0) return status;
    }
    if (const Status status = api_->record(stream_, events_[1]); status != 0) return status;
    if (const Status status = api_->synchronize(stream_); status != 0) return status;
    *elapsed = 0;
    if (api_->milliseconds == nullptr) return 0;
    return api_->milliseconds(events_[0], events_[1], elapsed);
  }

  const Plan& plan() const { return plan_; }

  // Null, or the text of an error.
  const char* Text(Status status) {
    if (status == 0) return nullptr;
    if (status > 0) error_ = api_->error_text(status);
    return error_.c_str();
  }

 private:
  const PluginApi* api_ = nullptr;
  Stream* stream_ = nullptr;
  Event* events_[2] = {};
  Plan plan_;
  SpanCall call_{};
  std::unique_ptr<PlanUpload> upload_;
  void* partials_ = nullptr;
  SpanLaunch launch_{};
  std::string error_;
};

Bench& TheBench() {
  static Bench bench;
  return bench;
}

SpanCall ShapeOf(int heads, int dim, int dtype, size_t sources, Layout layout) {
  SpanCall call{};
  call.element = static_cast<Element>(dtype);
  call.H = heads;
  call.kv_group = 1;
  call.Dk = call.Dv = dim;
  call.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  call.q_head_stride = call.out_head_stride = dim;
  call.q_row_stride = call.out_row_stride = int64_t{heads} * dim;
  call.sources_used = static_cast<int32_t>(sources);
  for (size_t s = 0; s < sources; ++s) {
    SpanSource& source = call.sources[s];
    source.layout = layout;
    source.kv_heads = heads;
    source.k_row_stride = source.v_row_stride = int64_t{heads} * dim;
    source.k_head_stride = source.v_head_stride = dim;
  }
  return call;
}

int BlocksOf(int keys) { return (keys + kBlockSlots - 1) / kBlockSlots; }

int64_t decode_blocks = 0;

}  // namespace

const char* lv_open(const char* path) { return TheBench().Text(TheBench().Open(path)); }

const char* lv_plan_band(int32_t documents, int32_t tokens, int32_t heads, int32_t dim,
                         int32_t window, int32_t dtype) {
  BandPattern pattern;
  pattern.heads = heads;
  pattern.window_left = pattern.window_right = window;
  pattern.tile_rows = kDeviceTileRows;
  std::vector<BandSequence> batch(documents);
  for (int i = 0; i < documents; ++i) {
    batch[i].row0 = batch[i].query_row0 = i * tokens;
    batch[i].tokens = tokens;
  }
  Plan plan = PlanBand(pattern, batch);
  const SpanCall call = ShapeOf(heads, dim, dtype, plan.sources.size(), Layout::kRows);
  return TheBench().Text(TheBench().Use(std::move(plan), call, SpanPhase::kPrefill));
}

const char* lv_plan_decode(int32_t sequences, int32_t tokens, int32_t heads, int32_t dim,
                           int32_t window, int32_t segment, int32_t dtype) {
  PagedPattern pattern;
  pattern.heads = heads;
  pattern.window = window;
  pattern.segment = segment > 0 ? segment : 1;
  pattern.rank = segment > 0 ? 1 : 0;
  pattern.tile_rows = kDeviceTileRows;
  const int t = tokens - 1;
  const int first = std::max(0, t - window + 1) / kBlockSlots;
  const int pages = segment > 0 ? BlocksOf(t / segment) : 0;
  const int window_blocks = t / kBlockSlots - first + 1;
  std::vector<PagedSequence> batch(sequences);
  std::vector<int32_t> table, page_offset, window_offset;
  for (int i = 0; i < sequences; ++i) {
    batch[i].query_row0 = i;
    batch[i].tokens = 1;
    batch[i].start = t;
    batch[i].first_block = first;
    page_offset.push_back(static_cast<int32_t>(table.size()));
    window_offset.push_back(page_offset.back() + pages);
    for (int b = 0; b < pages + window_blocks; ++b) {
      table.push_back(static_cast<int32_t>(table.size()));
    }
  }
  decode_blocks = static_cast<int64_t>(table.size());
  Plan plan = CutForDecode(PlanPaged(pattern, batch));
  SpanCall call = ShapeOf(heads, dim, dtype, plan.sources.size(), Layout::kPaged);
  Bench& bench = TheBench();
  const int32_t *on_device = nullptr, *page_offsets = nullptr, *window_offsets = nullptr;
  Status status = bench.Put(table, &on_device);
  if (status == 0) status = bench.Put(page_offset, &page_offsets);
  if (status == 0) status = bench.Put(window_offset, &window_offsets);
  if (status != 0) return bench.Text(status);
  for (int s = 0; s < call.sources_used; ++s) {
    call.sources[s].block_table = on_device;
    call.sources[s].seq_offset = segment > 0 && s == 0 ? page_offsets : window_offsets;
  }
  return bench.Text(bench.Use(std::move(plan), call, SpanPhase::kDecode));
}

const char* lv_run(const void* q, const void* k, const void* v, void* out, int32_t times,
                   float* milliseconds) {
  return TheBench().Text(TheBench().Run(q, k, v, out, times, milliseconds));
}

int64_t lv_useful_pairs() { return TheBench().plan().useful; }
int64_t lv_executed_pairs() { return TheBench().plan().executed; }
int64_t lv_blocks() { return decode_blocks; }

}  // namespace longview::kernels::cuda
