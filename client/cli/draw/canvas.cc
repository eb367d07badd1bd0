#include "client/cli/draw/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"

namespace longview::client {
namespace {

inline constexpr int kLetterDots = 5;   // Wide.
using Letter = std::array<uint8_t, 7>;  // Rows from the top, the left dot is bit 4.

struct Entry {
  char c;
  Letter rows;
};

// clang-format off
constexpr Entry kLetters[] = {
    {' ', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000}},
    {'0', {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110}},
    {'1', {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'2', {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111}},
    {'3', {0b11110, 0b00001, 0b00001, 0b01110, 0b00001, 0b00001, 0b11110}},
    {'4', {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010}},
    {'5', {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110}},
    {'6', {0b01110, 0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110}},
    {'7', {0b11111, 0b00001, 0b00010, 0b00100, 0b00100, 0b00100, 0b00100}},
    {'8', {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110}},
    {'9', {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110}},
    {'A', {0b01110, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
    {'B', {0b11110, 0b10001, 0b10001, 0b11110, 0b10001, 0b10001, 0b11110}},
    {'C', {0b01110, 0b10001, 0b10000, 0b10000, 0b10000, 0b10001, 0b01110}},
    {'D', {0b11110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11110}},
    {'E', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b11111}},
    {'F', {0b11111, 0b10000, 0b10000, 0b11110, 0b10000, 0b10000, 0b10000}},
    {'G', {0b01110, 0b10001, 0b10000, 0b10111, 0b10001, 0b10001, 0b01111}},
    {'H', {0b10001, 0b10001, 0b10001, 0b11111, 0b10001, 0b10001, 0b10001}},
    {'I', {0b01110, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'J', {0b00111, 0b00010, 0b00010, 0b00010, 0b00010, 0b10010, 0b01100}},
    {'K', {0b10001, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010, 0b10001}},
    {'L', {0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b10000, 0b11111}},
    {'M', {0b10001, 0b11011, 0b10101, 0b10101, 0b10001, 0b10001, 0b10001}},
    {'N', {0b10001, 0b11001, 0b11001, 0b10101, 0b10011, 0b10011, 0b10001}},
    {'O', {0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
    {'P', {0b11110, 0b10001, 0b10001, 0b11110, 0b10000, 0b10000, 0b10000}},
    {'Q', {0b01110, 0b10001, 0b10001, 0b10001, 0b10101, 0b10010, 0b01101}},
    {'R', {0b11110, 0b10001, 0b10001, 0b11110, 0b10100, 0b10010, 0b10001}},
    {'S', {0b01111, 0b10000, 0b10000, 0b01110, 0b00001, 0b00001, 0b11110}},
    {'T', {0b11111, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100}},
    {'U', {0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110}},
    {'V', {0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100}},
    {'W', {0b10001, 0b10001, 0b10001, 0b10101, 0b10101, 0b11011, 0b10001}},
    {'X', {0b10001, 0b10001, 0b01010, 0b00100, 0b01010, 0b10001, 0b10001}},
    {'Y', {0b10001, 0b10001, 0b01010, 0b00100, 0b00100, 0b00100, 0b00100}},
    {'Z', {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b11111}},
    {'.', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100}},
    {',', {0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b00100, 0b01000}},
    {':', {0b00000, 0b01100, 0b01100, 0b00000, 0b01100, 0b01100, 0b00000}},
    {'-', {0b00000, 0b00000, 0b00000, 0b11111, 0b00000, 0b00000, 0b00000}},
    {'_', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b11111}},
    {'%', {0b11001, 0b11001, 0b00010, 0b00100, 0b01000, 0b10011, 0b10011}},
    {'/', {0b00001, 0b00001, 0b00010, 0b00100, 0b01000, 0b10000, 0b10000}},
    {'(', {0b00010, 0b00100, 0b01000, 0b01000, 0b01000, 0b00100, 0b00010}},
    {')', {0b01000, 0b00100, 0b00010, 0b00010, 0b00010, 0b00100, 0b01000}},
    {'&', {0b01100, 0b10010, 0b10100, 0b01000, 0b10101, 0b10010, 0b01101}},
    {'\'', {0b00100, 0b00100, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000}},
    {'+', {0b00000, 0b00100, 0b00100, 0b11111, 0b00100, 0b00100, 0b00000}},
};
// clang-format on

constexpr Letter kUnknown = {0b11111, 0b11111, 0b11111, 0b11111, 0b11111, 0b11111, 0b11111};

const Letter& LetterOf(char c) {
  const auto found = std::find_if(std::begin(kLetters), std::end(kLetters), [&](const Entry& e) {
    return e.c == absl::ascii_toupper(static_cast<unsigned char>(c));
  });
  return found == std::end(kLetters) ? kUnknown : found->rows;
}

}  // namespace

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
