// Drawing on a picture: blended pixels, frames, small text. What lies outside is left out.
// Not thread-safe per picture.
#pragma once

#include <string_view>

#include "client/cli/draw/picture.h"

namespace longview::client {

// A pixel becomes the mean of itself and `color`, weighed by `strength` from 0 to 1.
void Blend(Picture& picture, int x, int y, const Rgb& color, float strength);

// Pixels [x0, x1) x [y0, y1).
void Fill(Picture& picture, int x0, int y0, int x1, int y1, const Rgb& color);

// The border of that rectangle, `thickness` pixels wide, inside it.
void Frame(Picture& picture, int x0, int y0, int x1, int y1, int thickness, const Rgb& color);

// Letters of 5 x 7 dots, `dot` pixels each, one dot between letters; lower case is drawn as upper
// case, unknown characters as a filled box.
void Write(Picture& picture, int x, int y, int dot, std::string_view text, const Rgb& color);
int TextWidth(std::string_view text, int dot);
inline constexpr int kTextDots = 7;  // Height.

}  // namespace longview::client
