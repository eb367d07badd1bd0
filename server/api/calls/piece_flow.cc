#include "server/api/calls/piece_flow.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::server {
namespace {

template <typename T>
void Append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void Join(models::Piece& first, models::Piece second) {
  first.text += second.text;
  Append(first.token_ids, second.token_ids);
  Append(first.logprobs, second.logprobs);
  Append(first.top, second.top);
  first.finish_reason = std::move(second.finish_reason);
  first.score = second.score;
}

}  // namespace

bool PieceFlow::Ready() const {
  if (news_ || end_) return true;
  if (!admitted_) return false;
  return !echoes_.empty() || pieces_.size() > 1 ||
         (!pieces_.empty() && pieces_.front().finish_reason.empty());
}

bool PieceFlow::Awaited() { return Ready() && std::exchange(awaited_, false); }

void PieceFlow::Admit() {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    admitted_ = news_ = true;
    if (!Awaited()) return;
  }
  on_ready_();
}

absl::Status PieceFlow::Add(std::vector<models::Piece> pieces) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return absl::OkStatus();
    if (bytes_ > kMostBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the answer is not read: ", bytes_, " bytes of it wait, more than ", kMostBytes));
    }
    for (models::Piece& piece : pieces) {
      bytes_ += MemoryOf(piece) - sizeof(piece);
      const auto same = std::find_if(pieces_.begin(), pieces_.end(),
                                     [&](const auto& other) { return other.index == piece.index; });
      if (same == pieces_.end()) {
        bytes_ += sizeof(piece);
        pieces_.push_back(std::move(piece));
      } else {
        Join(*same, std::move(piece));
      }
    }
    if (!Awaited()) return absl::OkStatus();
  }
  on_ready_();
  return absl::OkStatus();
}

void PieceFlow::AddEcho(Echo echo) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    echoes_.push_back(std::move(echo));
    if (!Awaited()) return;
  }
  on_ready_();
}

void PieceFlow::End(GenerationEnd end) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    if (!end.status.ok()) {
      echoes_.clear();
      pieces_.clear();
    }
    end_ = std::move(end);
    if (!Awaited()) return;
  }
  on_ready_();
}

PieceFlow::Output PieceFlow::Take() {
  Output out;
  absl::MutexLock lock(&mutex_);
  out.admitted = std::exchange(news_, false);
  out.end = std::exchange(end_, std::nullopt);
  if (!admitted_ && !out.end) {
    awaited_ = true;
    return out;
  }
  // A sequence's last piece stays back until the end or another piece follows, so that the last
  // piece of a call and its end are one message.
  const bool hold = !out.end && !pieces_.empty() && !pieces_.back().finish_reason.empty();
  out.echoes = std::exchange(echoes_, {});
  out.pieces = std::exchange(pieces_, {});
  bytes_ = 0;
  if (hold) {
    pieces_.push_back(std::move(out.pieces.back()));
    out.pieces.pop_back();
  }
  awaited_ = out.empty();
  return out;
}

}  // namespace longview::server
