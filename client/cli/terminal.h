// How output looks on a terminal: colours, columns.
//
// Thread-safe: pure functions.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/console.h"

namespace longview::client {

enum class Color { kBad, kGood, kWarning, kPlace, kFaint };

// The text between the codes of its colour (ECMA-48) where `on`, else as it is.
std::string Paint(bool on, Color color, std::string_view text);

// The error stream behind the program's name: `Error(console) << "file: too long\n"`.
std::ostream& Error(Console& console);

struct Cell {
  std::string text;
  std::optional<Color> color = std::nullopt;
};
using Table = std::vector<std::vector<Cell>>;

// The rows as lines: on a terminal in columns, elsewhere with a tab between cells, which `cut` can
// tell apart. Rows may be of different length.
void PrintTable(const Table& rows, Console& console);

}  // namespace longview::client
