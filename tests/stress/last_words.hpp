#pragma once

#include <vector>

#include "stress/exchange.hpp"

namespace tensorpool::stress {

struct Round;

/// Makes the calling thread free these blocks when it ends: after the destructors of C++ and among
/// those of POSIX keys, possibly after the pool's own handler.
void free_when_this_thread_ends(Round& round, std::uint64_t worker_number,
                                std::vector<HoldingPointer> blocks);

}  // namespace tensorpool::stress
