#include "tests/kernels/cuda/support/device_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/softmax_state.h"

namespace longview::kernels::cuda::testing {
namespace {

Element ToElement(DType dtype) {
  return dtype == DType::kFloat32 ? Element::kFloat32 : Element::kBFloat16;
}

int RowsOf(const Plan& plan, const SlotMap& map) {
  int rows = 0;
  for (int r = 0; r < map.runs; ++r) {
    const SlotRun& run = plan.runs[map.run0 + r];
    rows = std::max(rows, run.row0 + (run.rows - 1) * run.row_step + 1);
  }
  return rows;
}

// Blocks of a source that the plan's spans read, by number.
int BlocksOf(const Plan& plan, int index, const Source& source) {
  int blocks = plan.sources[index].slots / kBlockSlots;
  if (source.layout != Layout::kPaged) return blocks;
  for (const Tile& tile : plan.tiles) {
    for (int s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      const Span& span = plan.spans[s];
      if (span.source != index || span.keys <= 0) continue;
      for (int b = span.key0 / kBlockSlots; b <= (span.key0 + span.keys - 1) / kBlockSlots; ++b) {
        blocks = std::max(blocks, source.block_table[source.seq_offset[tile.seq] + b] + 1);
      }
    }
  }
  return blocks;
}

// Slot by slot of the blocks, whether a span names it; the others of a cache may hold anything.
std::vector<bool> NamedSlots(const Plan& plan, int index, const Source& source, int blocks) {
  std::vector<bool> named(static_cast<size_t>(blocks) * kBlockSlots);
  for (const Tile& tile : plan.tiles) {
    for (int s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      const Span& span = plan.spans[s];
      if (span.source != index) continue;
      for (int slot = span.key0; slot < span.key0 + span.keys; ++slot) {
        int block = slot / kBlockSlots;
        if (source.layout == Layout::kPaged) {
          block = source.block_table[source.seq_offset[tile.seq] + block];
        }
        named[static_cast<size_t>(block) * kBlockSlots + slot % kBlockSlots] = true;
      }
    }
  }
  return named;
}

}  // namespace

int64_t DeviceCase::HeadStride(int D) const {
  switch (strides_) {
    case Strides::kNatural:
      return D;
    case Strides::kPieces:
      return (D + 7) / 8 * 8;
    case Strides::kOdd:
      return D % 2 == 0 ? D + 1 : D + 2;
  }
  return D;
}

void* DeviceCase::HoldTensor(const void* data, DType from, int64_t row_stride, int64_t head_stride,
                             int rows, int heads, int D, int64_t* new_row_stride,
                             int64_t* new_head_stride) {
  *new_head_stride = HeadStride(D);
  *new_row_stride = row_stride == 0 ? 0 : heads * *new_head_stride;
  const int kept = row_stride == 0 ? 1 : rows;
  std::vector<std::byte> copy(kept * heads * *new_head_stride * ElementBytes(element_));
  for (int r = 0; r < kept; ++r) {
    for (int h = 0; h < heads; ++h) {
      for (int d = 0; d < D; ++d) {
        StoreElement(copy.data(), element_, r * *new_row_stride + h * *new_head_stride + d,
                     LoadElement(data, ToElement(from), r * row_stride + h * head_stride + d));
      }
    }
  }
  return device_->Upload(copy);
}

SpanSource DeviceCase::HoldRows(const Plan& plan, const SlotMap& map, const Source& source) {
  SpanSource made{};
  const int rows = RowsOf(plan, map), heads = call_.H / call_.kv_group;
  made.k = HoldTensor(source.k, source.dtype, source.k_row_stride, source.k_head_stride, rows,
                      heads, call_.Dk, &made.k_row_stride, &made.k_head_stride);
  made.v = HoldTensor(source.v, source.dtype, source.v_row_stride, source.v_head_stride, rows,
                      heads, call_.Dv, &made.v_row_stride, &made.v_head_stride);
  return made;
}

SpanSource DeviceCase::HoldBlocks(const Plan& plan, int index, const Source& source) {
  SpanSource made{};
  made.kv_heads = source.kv_heads;
  const int blocks = BlocksOf(plan, index, source);
  const KvLayout layout(source.dtype, call_.Dk, call_.Dv, source.kv_heads);
  const int k_pitch = BlockPitch(call_.Dk), v_pitch = BlockPitch(call_.Dv);
  const int64_t slots = int64_t{blocks} * source.kv_heads * kBlockSlots;
  std::vector<std::byte> k(slots * k_pitch * ElementBytes(element_));
  std::vector<std::byte> v(slots * v_pitch * ElementBytes(element_));
  const std::vector<bool> named = NamedSlots(plan, index, source, blocks);
  for (int64_t at = 0; at < slots; ++at) {
    const int64_t cell = at / kBlockSlots;
    const int slot = static_cast<int>(at % kBlockSlots);
    if (!named[cell / source.kv_heads * kBlockSlots + slot]) {
      for (int d = 0; d < k_pitch; ++d) StoreElement(k.data(), element_, at * k_pitch + d, NAN);
      for (int d = 0; d < v_pitch; ++d) StoreElement(v.data(), element_, at * v_pitch + d, NAN);
      continue;
    }
    const auto* k_block = static_cast<const std::byte*>(source.k) + cell * layout.k_block_bytes();
    const auto* v_block = static_cast<const std::byte*>(source.v) + cell * layout.v_block_bytes();
    for (int d = 0; d < call_.Dk; ++d) {
      StoreElement(k.data(), element_, at * k_pitch + d, layout.ReadK(k_block, slot, d));
    }
    for (int d = 0; d < call_.Dv; ++d) {
      StoreElement(v.data(), element_, at * v_pitch + d, layout.ReadV(v_block, slot, d));
    }
  }
  made.k = device_->Upload(k);
  made.v = device_->Upload(v);
  if (source.layout == Layout::kPaged) {
    int sequences = 0, entries = 0;
    for (const Tile& tile : plan.tiles) sequences = std::max(sequences, tile.seq + 1);
    for (const Tile& tile : plan.tiles) {
      for (int s = tile.span0; s < tile.span0 + tile.spans; ++s) {
        const Span& span = plan.spans[s];
        if (span.source != index || span.keys <= 0) continue;
        entries = std::max(
            entries, source.seq_offset[tile.seq] + (span.key0 + span.keys - 1) / kBlockSlots + 1);
      }
    }
    made.block_table = UploadArray(source.block_table, entries);
    made.seq_offset = UploadArray(source.seq_offset, sequences);
  }
  return made;
}

SpanTable DeviceCase::HoldTable(const Plan& plan, int id, const Table& table) {
  SpanTable made{};
  made.entries = table.entries;
  made.head_stride = table.head_stride;
  made.entry_stride = table.entry_stride;
  made.element = ToElement(table.dtype);
  const bool dotted = std::any_of(plan.biases.begin(), plan.biases.end(), [id](const Bias& bias) {
    return bias.id == id && bias.kind == kDotted;
  });
  const int64_t last = (call_.H - 1) * table.head_stride +
                       (table.entries - 1) * table.entry_stride + (dotted ? call_.Dk : 1);
  made.data = UploadArray(static_cast<const std::byte*>(table.data), last * SizeOf(table.dtype));
  if (table.dot_add != nullptr) {
    made.dot_add = UploadArray(table.dot_add, call_.H * call_.Dk);
  }
  return made;
}

DeviceCase::DeviceCase(const Plan& plan, const Call& call, Element element, int rows,
                       Strides strides, const PlanCapacity& capacity, TestDevice* device)
    : device_(device), element_(element), strides_(strides), rows_(rows), capacity_(capacity) {
  call_ = {};
  call_.element = element;
  call_.Dk = call.Dk;
  call_.Dv = call.Dv;
  call_.H = call.H;
  call_.kv_group = call.kv_group;
  call_.scale = call.scale;
  call_.q = HoldTensor(call.q, call.dtype, call.q_row_stride, call.q_head_stride, rows, call.H,
                       call.Dk, &call_.q_row_stride, &call_.q_head_stride);
  call_.out_head_stride = HeadStride(call.Dv);
  call_.out_row_stride = call.H * call_.out_head_stride;
  std::vector<std::byte> out(rows * call_.out_row_stride * ElementBytes(element));
  for (int64_t i = 0; i < rows * call_.out_row_stride; ++i) {
    StoreElement(out.data(), element, i, kUnwritten);
  }
  call_.out = device->Upload(out);
  call_.sources_used = static_cast<int32_t>(call.sources.size());
  for (size_t s = 0; s < call.sources.size(); ++s) {
    const Source& source = call.sources[s];
    SpanSource made = source.layout == Layout::kRows
                          ? HoldRows(plan, plan.sources[s], source)
                          : HoldBlocks(plan, static_cast<int>(s), source);
    made.layout = source.layout;
    if (source.q_add != nullptr) {
      made.q_add = UploadArray(source.q_add, call.H * call.Dk);
    }
    call_.sources[s] = made;
  }
  for (size_t t = 0; t < call.tables.size(); ++t) {
    call_.tables[t] = HoldTable(plan, static_cast<int>(t), call.tables[t]);
  }
  const std::vector<std::byte> partials(PartialBytes(capacity.partial_slots, call.Dv));
  PrepareCall(&call_, device->Upload(partials), capacity.partial_slots);
  CheckDeviceCall(plan, call_);
  std::vector<std::byte> image(ImageBytes(capacity), std::byte{0xee});
  WriteImage(plan, capacity, image.data());
  view_ = ViewImage(capacity, device->Upload(image));
}

std::vector<float> DeviceCase::Output() const {
  std::vector<float> out;
  for (const uint32_t bits : Bits()) {
    out.push_back(element_ == Element::kFloat32 ? FloatOfBits(bits)
                                                : FloatOf16(element_, static_cast<uint16_t>(bits)));
  }
  return out;
}

std::vector<uint32_t> DeviceCase::Bits() const {
  const int size = ElementBytes(element_);
  const std::vector<std::byte> bytes = device_->Download(static_cast<const std::byte*>(call_.out),
                                                         rows_ * call_.out_row_stride * size);
  std::vector<uint32_t> bits;
  for (int64_t r = 0; r < rows_; ++r) {
    for (int h = 0; h < call_.H; ++h) {
      for (int d = 0; d < call_.Dv; ++d) {
        uint32_t value = 0;
        std::memcpy(
            &value,
            bytes.data() + (r * call_.out_row_stride + h * call_.out_head_stride + d) * size, size);
        bits.push_back(value);
      }
    }
  }
  return bits;
}

void DeviceCase::Run(SpanKernel kernel) {
  const SpanApi& api = device_->api().span;
  const SpanLaunch launch = ShapeLaunch(capacity_, call_, kernel);
  EXPECT_EQ(api.prepare(0), 0);
  EXPECT_EQ(api.forward(device_->stream(), &view_, &call_, &launch), 0);
  EXPECT_EQ(api.merge(device_->stream(), &view_, &call_, &launch), 0);
}

}  // namespace longview::kernels::cuda::testing
