// The first base of a class whose other bases borrow something.
#pragma once

namespace longview::models {

template <class Kept>
struct Keeper {
  Kept kept;
};

}  // namespace longview::models
