#pragma once

/// @file
/// What each figure means: the one list from which JSON, metrics and the manual are made.

#include <span>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// One figure. All strings live as long as the program.
struct FigureDescription {
    const char* of;        ///< "process", "pool", "bucket", "large", "arena", "device", "planned",
                           ///< "scope" or "thread"
    const char* name;      ///< of the field, in JSON and in the structure
    const char* unit;      ///< "bytes", or what is counted, such as "calls"
    const char* kind;      ///< "gauge", "total" (only grows) or "peak" (the highest so far)
    const char* sentence;  ///< what it says, ending with a full stop
    /// What PyTorch calls it, in `torch.cuda.memory_stats()` or in a block's state; "" where it has
    /// no word, and for all but devices.
    const char* pytorch;
};

/// All of them, those of one kind of thing together.
TENSORPOOL_API std::span<const FigureDescription> describe_figures();

}  // namespace tensorpool
