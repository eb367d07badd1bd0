#include "kernels/cuda/token/decode_lists.h"

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/cuda/token/array_carver.h"
#include "kernels/cuda/token/cache_rows.h"

namespace longview::kernels::cuda {
namespace {

class Writer {
 public:
  Writer(const DecodeShape& shape, const ProjectionCache& cache, const CacheStep& step,
         std::span<const DecodeToken> tokens, const DecodeRoom& room)
      : shape_(shape), cache_(cache), step_(step), tokens_(tokens), room_(room) {}

  void Rows(const DecodeLists& to) const {
    for (int32_t row = 0; row < room_.rows; ++row) {
      if (row >= std::ssize(tokens_)) {
        to.ids[row] = to.window_limits[row] = to.page_limits[row] = 0;
        to.runs[row] = {};
        continue;
      }
      const DecodeToken& token = tokens_[static_cast<size_t>(row)];
      const int32_t position = token.position();
      to.ids[row] = token.id;
      to.window_limits[row] = std::min(position + 1, shape_.window);
      to.page_limits[row] = shape_.Pages(position);
      to.runs[row] = {reinterpret_cast<float*>(cache_.StateAddress(*token.sequence, 0)), row,
                      row + 1, position % shape_.segment == 0, 1};
    }
  }

  // The cache lists places of pages for those tokens that end a segment.
  void Places(const DecodeLists& to) const {
    const auto place = [&](const CachePlace& of) { return PlaceOf(cache_, of); };
    const std::span<const CachePlace> windows =
        step_.places(CacheStep::kDecode, kDecodeWindowStrip);
    const std::span<const CachePlace> pages = step_.places(CacheStep::kDecode, kDecodePageStrip);
    size_t next = 0;
    for (int32_t row = 0; row < room_.rows; ++row) {
      const bool there = row < std::ssize(tokens_);
      to.window_rows[row] = there ? place(windows[static_cast<size_t>(row)]) : CacheRowPlace{-1, 0};
      const bool ends =
          there && (tokens_[static_cast<size_t>(row)].position() + 1) % shape_.segment == 0;
      for (int32_t k = 0; k < shape_.rank; ++k) {
        to.page_rows[row * shape_.rank + k] = ends ? place(pages[next++]) : CacheRowPlace{-1, 0};
      }
    }
  }

  void Blocks(const DecodeLists& to) const {
    const auto write = [](const CacheTable& table, int64_t room, int32_t* blocks,
                          int32_t* offsets) {
      KERNEL_CHECK(std::ssize(table.blocks) <= room);
      std::ranges::copy(table.blocks, blocks);
      for (size_t s = 0; s < table.first_block.size(); ++s) offsets[s] = AbsoluteOffset(table, s);
    };
    write(step_.table(CacheStep::kDecode, kDecodeWindowStrip), WindowBlocks(cache_.shape(), room_),
          to.window_blocks, to.window_offsets);
    write(step_.table(CacheStep::kDecode, kDecodePageStrip), PageBlocks(room_), to.page_blocks,
          to.page_offsets);
  }

 private:
  const DecodeShape& shape_;
  const ProjectionCache& cache_;
  const CacheStep& step_;
  const std::span<const DecodeToken> tokens_;
  const DecodeRoom& room_;
};

}  // namespace

DecodeLists CarveDecodeLists(const DecodeShape& shape, const CacheShape& cache,
                             const DecodeRoom& room, std::byte* memory, size_t* bytes) {
  ArrayCarver take(memory);
  const auto rows = static_cast<size_t>(room.rows);
  DecodeLists lists;
  lists.ids = take.Array<int32_t>(rows);
  lists.runs = take.Array<PoolRun>(rows);
  lists.window_rows = take.Array<CacheRowPlace>(rows);
  lists.page_rows = take.Array<CacheRowPlace>(rows * static_cast<size_t>(shape.rank));
  lists.window_limits = take.Array<int32_t>(rows);
  lists.page_limits = take.Array<int32_t>(rows);
  lists.window_blocks = take.Array<int32_t>(static_cast<size_t>(WindowBlocks(cache, room)));
  lists.window_offsets = take.Array<int32_t>(rows);
  lists.page_blocks = take.Array<int32_t>(static_cast<size_t>(PageBlocks(room)));
  lists.page_offsets = take.Array<int32_t>(rows);
  lists.plan = take.Array<std::byte>(ImageBytes(room.capacity));
  *bytes = take.used();
  return lists;
}

void WriteDecodeLists(const DecodeShape& shape, const ProjectionCache& cache, const CacheStep& step,
                      std::span<const DecodeToken> tokens, const DecodePlan& planned,
                      const DecodeLists& to) {
  const Writer write(shape, cache, step, tokens, planned.room);
  write.Rows(to);
  write.Places(to);
  write.Blocks(to);
  WriteImage(planned.plan, planned.room.capacity, to.plan);
}

}  // namespace longview::kernels::cuda
