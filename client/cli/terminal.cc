#include "client/cli/terminal.h"

#include <algorithm>
#include <cstddef>

namespace longview::client {
namespace {

const char* CodeOf(Color color) {
  switch (color) {
    case Color::kBad:
      return "31";
    case Color::kGood:
      return "32";
    case Color::kWarning:
      return "33";
    case Color::kPlace:
      return "35";
    case Color::kFaint:
      return "2";
  }
  return "0";
}

// Columns that UTF-8 takes where every code point takes one.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string Paint(bool on, Color color, std::string_view text) {
  std::string painted(text);
  return on ? "\033[" + std::string(CodeOf(color)) + "m" + painted + "\033[0m" : painted;
}

std::ostream& Error(Console& console) {
  return console.err << Paint(console.err_colors, Color::kBad, "longview:") << " ";
}

void PrintTable(const Table& rows, Console& console) {
  std::vector<size_t> widths;
  for (const std::vector<Cell>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i].text));
  }
  for (const std::vector<Cell>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      console.out << (cell.color ? Paint(console.out_colors, *cell.color, cell.text) : cell.text);
      if (i + 1 == row.size()) continue;
      console.out << (console.out_is_terminal ? std::string(widths[i] - Width(cell.text) + 2, ' ')
                                              : std::string("\t"));
    }
    console.out << "\n";
  }
}

}  // namespace longview::client
