#pragma once

/// @file
/// The two operators that need most memory, written for memory that only ends with a scope.

#include "develop/operators.hpp"

namespace tensorpool::photos {

/// Like `denoise`, with an identical result. Overwrites what is no longer needed; within a
/// MatScope, the temporaries of one expression end with a scope of their own. Holds at most 3
/// pictures in floats at once, where `denoise` in one scope would hold 12.
Operator denoise_frugally;

/// Like `boost_detail`, with an identical result. Reassembles the picture in the memory of its
/// parts. Holds 1.7 pictures in floats, where `boost_detail` in one scope would hold 4.6.
Operator boost_detail_frugally;

}  // namespace tensorpool::photos
