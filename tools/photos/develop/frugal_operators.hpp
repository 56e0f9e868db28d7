#pragma once

/// @file
/// The two operators that need most, written for memory that only a scope's end frees.

#include "develop/operators.hpp"

namespace tensorpool::photos {

/// `denoise`, with the same result bit for bit: it writes over what is not needed any more, and
/// within a MatScope what one expression needs ends with a scope of its own. At most 3 pictures in
/// floats at once, where `denoise` in one scope would hold 12.
Operator denoise_frugally;

/// `boost_detail`, with the same result bit for bit: the picture is put together where it was taken
/// apart. 1.7 pictures in floats, where `boost_detail` in one scope would hold 4.6.
Operator boost_detail_frugally;

}  // namespace tensorpool::photos
