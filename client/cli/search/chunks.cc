#include "client/cli/search/chunks.h"

#include <algorithm>
#include <cctype>

namespace longview::client {
namespace {

// A short function with its comment stays whole, a file of one-liners is not all one chunk.
constexpr size_t kLeastBytes = 300;
constexpr size_t kMostBytes = 1600;

struct Line {
  size_t begin = 0, end = 0;  // Without its line feed.
  bool blank = false;
  bool indented = false;
  bool has_words = false;
};

bool IsWord(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= 0x80 || std::isalnum(value) != 0;
}

bool IsSpace(char byte) { return std::isspace(static_cast<unsigned char>(byte)) != 0; }

std::vector<Line> Lines(std::string_view text) {
  std::vector<Line> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    lines.push_back({begin, end, std::all_of(line.begin(), line.end(), IsSpace),
                     !line.empty() && IsSpace(line[0]),
                     std::any_of(line.begin(), line.end(), IsWord)});
    begin = end + 1;
  }
  return lines;
}

// The line behind the chunk that begins at line `first`.
size_t EndOfChunk(const std::vector<Line>& lines, size_t first) {
  size_t at_blank = 0;  // The last place to cut within a definition.
  for (size_t i = first + 1; i < lines.size(); ++i) {
    const size_t size = lines[i].begin - lines[first].begin;
    if (size >= kLeastBytes && lines[i - 1].blank && !lines[i].blank) {
      if (!lines[i].indented) return i;
      at_blank = i;
    }
    if (lines[i].end - lines[first].begin > kMostBytes) return at_blank > 0 ? at_blank : i;
  }
  return lines.size();
}

}  // namespace

std::vector<Chunk> CutIntoChunks(std::string_view text) {
  const std::vector<Line> lines = Lines(text);
  std::vector<Chunk> chunks;
  for (size_t first = 0; first < lines.size();) {
    size_t begin = first;
    size_t behind = EndOfChunk(lines, first);
    first = behind;
    while (begin < behind && !lines[begin].has_words) ++begin;
    while (begin < behind && !lines[behind - 1].has_words) --behind;
    if (begin == behind) continue;
    chunks.push_back({lines[begin].begin, lines[behind - 1].end, static_cast<int>(begin) + 1,
                      static_cast<int>(behind)});
  }
  return chunks;
}

}  // namespace longview::client
