#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "simulation/hazards/watch.hpp"

namespace tensorpool::device {

/// Keeps from where to where memory lives: the backend's own allocations and mappings, and the
/// blocks that allocators cut of them. Finds what is wrong with their ends and beginnings.
class LifeKeeper {
public:
    explicit LifeKeeper(Watch& watch) : watch_(watch) {}

    // The backend's own --------------------------------------------------------------------------

    void begin(const Operation& operation, std::uintptr_t address, std::size_t bytes,
               bool host_reaches);
    /// The same for what only one stream may touch yet.
    void begin_on_stream(const Operation& operation, std::uintptr_t address, std::size_t bytes);
    /// With the clock of who ends it. `gone`: the addresses may belong to anybody from now on.
    /// False where work under way uses it.
    enum class Gone : bool { no, yes };
    bool end(const Operation& operation, std::uintptr_t address, const VectorClock& clock,
             Gone gone = Gone::no);
    /// Nothing that can be ended is there.
    void wrong_end(const Operation& operation, std::uintptr_t address);
    void forget(std::uintptr_t address, std::size_t bytes) { watch_.shadow.erase(address, bytes); }

    /// What of mapped memory was written goes with it.
    void save(MemoryHandle memory, std::uintptr_t address, std::size_t bytes);
    void restore(MemoryHandle memory, std::uintptr_t address);
    void drop(MemoryHandle memory) { saved_.erase(memory); }

    // Blocks of allocators -----------------------------------------------------------------------

    /// `clock`: what its stream comes after. `capture`: that the stream is in, or 0. True where
    /// nothing that was given uses the range any more.
    bool block_allocated(const Operation& operation, const BlockNote& note, StreamName owner,
                         const VectorClock& clock, std::uint64_t capture);
    void block_used(const Operation& operation, const BlockNote& note, StreamName stream);
    /// `clock`: of the block's own stream. The result as above.
    bool block_freed(const Operation& operation, const BlockNote& note, const VectorClock& clock);
    void block_reusable(const Operation& operation, const BlockNote& note,
                        const VectorClock& clock);

private:
    struct Written {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };

    void start(std::shared_ptr<Life> life, const Operation& writer);
    void make_slabs(std::uintptr_t address, std::size_t bytes);
    std::shared_ptr<Life> block_at(std::uintptr_t address) const;

    Watch& watch_;
    std::map<std::uintptr_t, std::shared_ptr<Life>> homes_;  // alive, by address
    std::unordered_map<MemoryHandle, std::vector<Written>> saved_;
};

}  // namespace tensorpool::device
