#include "client/cli/draw/canvas.h"

#include <algorithm>
#include <cmath>

#include "client/cli/draw/letters.h"

namespace longview::client {

void Blend(Picture& picture, int x, int y, const Rgb& color, float strength) {
  if (x < 0 || y < 0 || x >= picture.width || y >= picture.height) return;
  uint8_t* pixel = picture.at(x, y);
  for (int c = 0; c < 3; ++c) {
    pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] * (1 - strength) + color[c] * strength));
  }
}

void Fill(Picture& picture, int x0, int y0, int x1, int y1, const Rgb& color) {
  for (int y = std::max(y0, 0); y < std::min(y1, picture.height); ++y) {
    for (int x = std::max(x0, 0); x < std::min(x1, picture.width); ++x) {
      std::copy(color.begin(), color.end(), picture.at(x, y));
    }
  }
}

void Frame(Picture& picture, int x0, int y0, int x1, int y1, int thickness, const Rgb& color) {
  Fill(picture, x0, y0, x1, std::min(y0 + thickness, y1), color);
  Fill(picture, x0, std::max(y1 - thickness, y0), x1, y1, color);
  Fill(picture, x0, y0, std::min(x0 + thickness, x1), y1, color);
  Fill(picture, std::max(x1 - thickness, x0), y0, x1, y1, color);
}

void Write(Picture& picture, int x, int y, int dot, std::string_view text, const Rgb& color) {
  for (const char letter : text) {
    const Letter& dots = LetterOf(letter);
    for (int row = 0; row < kTextDots; ++row) {
      for (int column = 0; column < kLetterDots; ++column) {
        if ((dots[row] >> (kLetterDots - 1 - column) & 1) == 0) continue;
        const int left = x + column * dot, top = y + row * dot;
        Fill(picture, left, top, left + dot, top + dot, color);
      }
    }
    x += (kLetterDots + 1) * dot;
  }
}

int TextWidth(std::string_view text, int dot) {
  return std::max(0, static_cast<int>(text.size()) * (kLetterDots + 1) - 1) * dot;
}

}  // namespace longview::client
