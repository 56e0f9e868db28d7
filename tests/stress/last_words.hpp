#pragma once

#include <vector>

#include "stress/exchange.hpp"

namespace tensorpool::stress {

struct Round;

/// Has the calling thread free these blocks when it ends, after the destructors of C++ and among
/// those of POSIX keys, where the pool's own handler may have gone before.
void free_when_this_thread_ends(Round& round, std::uint64_t worker_number,
                                std::vector<HoldingPointer> blocks);

}  // namespace tensorpool::stress
