#pragma once

#include <tensorpool/device/backend.hpp>

#include "simulation/hazards/watch.hpp"

namespace tensorpool::device {

/// Tracks lifetimes of memory: of the backend's own allocations and mappings, and of the blocks
/// that allocators cut from them. Reports hazards at allocation and free.
class LifetimeTracker {
public:
    explicit LifetimeTracker(Watch& watch) : watch_(watch) {}

    // Allocations of the backend -----------------------------------------------------------------

    void begin(const Operation& operation, std::uintptr_t address, std::size_t bytes,
               bool host_reaches);
    /// Begins a lifetime like `begin`, for memory that so far only the operation's stream may
    /// touch.
    void begin_on_stream(const Operation& operation, std::uintptr_t address, std::size_t bytes);
    /// Ends the lifetime that begins at `address`. `clock` is that of the stream or host that ends
    /// it. With Gone::yes, other owners may use the addresses from now on, so they are forgotten.
    /// Returns false if pending work still uses the memory.
    enum class Gone : bool { no, yes };
    bool end(const Operation& operation, std::uintptr_t address, const VectorClock& clock,
             Gone gone = Gone::no);
    /// Reports an attempt to end a lifetime where none can be ended.
    void wrong_end(const Operation& operation, std::uintptr_t address);
    void forget(std::uintptr_t address, std::size_t bytes) { watch_.shadow.erase(address, bytes); }

    /// Saves which parts of mapped memory are written, so that `restore` can apply it after the
    /// memory is mapped elsewhere.
    void save(MemoryHandle memory, std::uintptr_t address, std::size_t bytes);
    void restore(MemoryHandle memory, std::uintptr_t address);
    void drop(MemoryHandle memory) { saved_.erase(memory); }

    // Blocks of allocators -----------------------------------------------------------------------

    /// Begins a block's lifetime. `clock` is that of its stream; `capture` is the id of the capture
    /// that the stream is in, or 0. Returns true if no pending work uses the range any more.
    bool block_allocated(const Operation& operation, const BlockNote& note, StreamName owner,
                         const VectorClock& clock, std::uint64_t capture);
    void block_used(const Operation& operation, const BlockNote& note, StreamName stream);
    /// Ends a block's lifetime. `clock` is that of the block's own stream. Returns true if no
    /// pending work uses the range any more.
    bool block_freed(const Operation& operation, const BlockNote& note, const VectorClock& clock);
    void block_reusable(const Operation& operation, const BlockNote& note,
                        const VectorClock& clock);

private:
    struct Written {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };

    void start(std::shared_ptr<Lifetime> lifetime, const Operation& writer);
    void make_slabs(std::uintptr_t address, std::size_t bytes);
    std::shared_ptr<Lifetime> block_at(std::uintptr_t address) const;

    Watch& watch_;
    std::map<std::uintptr_t, std::shared_ptr<Lifetime>> alive_;  // alive, by address
    std::unordered_map<MemoryHandle, std::vector<Written>> saved_;
};

}  // namespace tensorpool::device
