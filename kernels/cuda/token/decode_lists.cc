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
    const SchedulePattern& pattern = shape_.attention;
    for (int32_t row = 0; row < room_.rows; ++row) {
      if (row >= std::ssize(tokens_)) {
        to.ids[row] = to.window_limits[row] = to.segment_limits[row] = 0;
        to.runs[row] = {};
        continue;
      }
      const DecodeToken& token = tokens_[static_cast<size_t>(row)];
      const int32_t position = token.position();
      to.ids[row] = token.id;
      to.window_limits[row] =
          pattern.zero_memory ? pattern.window : std::min(position + 1, pattern.window);
      to.segment_limits[row] = static_cast<int32_t>(pattern.SegmentIds(position));
      to.runs[row] = {State(token), row, row + 1, position % pattern.segment == 0, 1};
    }
  }

  void Windows(CacheRowPlace* to) const { Places(kWindowStrip, room_.rows, to); }

  // The cache lists places of pages for those tokens that end a segment.
  void Closing(const DecodeLists& to) const {
    int32_t next = 0;
    for (const DecodeToken& token : tokens_) {
      if ((token.position() + 1) % shape_.attention.segment != 0) continue;
      to.closing[next++] = {State(token), 0, 0, 0, 1};
    }
    std::fill(to.closing + next, to.closing + room_.closing, PoolRun{});
    const int32_t rows = room_.closing * shape_.attention.rank;
    Places(kLateStrip, rows, to.late_rows);
    if (shape_.early()) Places(kEarlyStrip, rows, to.early_rows);
  }

  void Blocks(const DecodeLists& to) const {
    for (int strip = 0; strip < std::ssize(cache_.shape().strips); ++strip) {
      const DecodeTable& out = to.tables[static_cast<size_t>(strip)];
      WriteTable(step_.table(CacheStep::kDecode, strip), TableBlocks(cache_.shape(), room_, strip),
                 out.blocks, out.offsets);
    }
  }

 private:
  float* State(const DecodeToken& token) const {
    return reinterpret_cast<float*>(cache_.StateAddress(*token.sequence, 0));
  }

  // Places of a strip's `rows` rows, the last nowhere.
  void Places(int strip, int32_t rows, CacheRowPlace* to) const {
    const std::span<const CachePlace> places = step_.places(CacheStep::kDecode, strip);
    KERNEL_CHECK(std::ssize(places) <= rows);
    for (const CachePlace& place : places) *to++ = PlaceOf(cache_, place);
    std::fill_n(to, rows - std::ssize(places), CacheRowPlace{-1, 0});
  }

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
  const auto pages = static_cast<size_t>(room.closing * shape.attention.rank);
  DecodeLists lists = {};
  lists.ids = take.Array<int32_t>(rows);
  lists.runs = take.Array<PoolRun>(rows);
  lists.window_limits = take.Array<int32_t>(rows);
  lists.segment_limits = take.Array<int32_t>(rows);
  lists.window_rows = take.Array<CacheRowPlace>(rows);
  lists.closing = take.Array<PoolRun>(static_cast<size_t>(room.closing));
  lists.late_rows = take.Array<CacheRowPlace>(pages);
  lists.early_rows = take.Array<CacheRowPlace>(shape.early() ? pages : 0);
  for (int strip = 0; strip < std::ssize(cache.strips); ++strip) {
    lists.tables[static_cast<size_t>(strip)] = {
        take.Array<int32_t>(static_cast<size_t>(TableBlocks(cache, room, strip))),
        take.Array<int32_t>(rows)};
  }
  lists.plan = take.Array<std::byte>(ImageBytes(room.capacity));
  *bytes = take.used();
  return lists;
}

void WriteDecodeLists(const DecodeShape& shape, const ProjectionCache& cache, const CacheStep& step,
                      std::span<const DecodeToken> tokens, const DecodePlan& planned,
                      const DecodeLists& to) {
  const Writer write(shape, cache, step, tokens, planned.room);
  write.Rows(to);
  write.Windows(to.window_rows);
  write.Closing(to);
  write.Blocks(to);
  WriteImage(planned.plan, planned.room.capacity, to.plan);
}

}  // namespace longview::kernels::cuda
