#pragma once

/// @file
/// The options of a Context. Sizes are bytes.

#include <tensorpool/arena_options.hpp>

namespace tensorpool {

class MemoryPool;

/// The options of a Context.
struct ContextOptions {
    /// The options of the arena, whose alignment is that of all blocks of the context.
    ArenaOptions arena = named_context();
    /// The pool that `Context::allocate` takes small blocks from, which must outlive the context;
    /// nullptr means the global pool.
    MemoryPool* pool = nullptr;
    /// The largest request that `Context::allocate` takes from the pool. Larger ones come from the
    /// arena. Default: 64 KiB, the pool's largest bucket. With 0, all come from the arena.
    std::size_t small_bytes = std::size_t{64} << 10;

private:
    static ArenaOptions named_context() {
        ArenaOptions options;
        options.name = "context";
        return options;
    }
};

}  // namespace tensorpool
