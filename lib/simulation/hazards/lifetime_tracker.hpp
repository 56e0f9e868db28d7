#pragma once

#include "simulation/hazards/watch.hpp"

namespace tensorpool::device {

template <class Function>
void for_each_use(const Cell& cell, Function&& function) {
    if (cell.writer.number != 0) function(cell.writer);
    for (const Operation& reader : cell.readers) function(reader);
}

inline std::uintptr_t begin_of(const BlockNote& note) noexcept {
    return reinterpret_cast<std::uintptr_t>(note.address);
}

// Writes by the host to memory that it can reach are not observed, so that memory counts as
// written.
inline Content fresh(const Lifetime& lifetime) noexcept {
    return lifetime.host_reaches ? Content::written : Content::uninitialised;
}

inline bool contains(const std::vector<StreamName>& streams, StreamName stream) noexcept {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

/// Tracks lifetimes of memory: of the backend's own allocations and mappings, and of the blocks
/// that allocators cut from them. Reports hazards at allocation and free.
class LifetimeTracker {
public:
    explicit LifetimeTracker(Watch& watch) : watch_(watch) {}

    // Allocations of the backend -----------------------------------------------------------------

    void begin(const Operation& operation, std::uintptr_t address, std::size_t bytes,
               bool host_reaches) {
        auto lifetime = std::make_shared<Lifetime>();
        lifetime->address = address;
        lifetime->bytes = bytes;
        lifetime->born = operation;
        lifetime->host_reaches = host_reaches;
        start(std::move(lifetime), {});
    }
    /// Begins a lifetime like `begin`, for memory that so far only the operation's stream may
    /// touch.
    void begin_on_stream(const Operation& operation, std::uintptr_t address, std::size_t bytes) {
        auto lifetime = std::make_shared<Lifetime>();
        lifetime->address = address;
        lifetime->bytes = bytes;
        lifetime->born = operation;
        start(std::move(lifetime), operation);
    }
    /// Ends the lifetime that begins at `address`. `clock` is that of the stream or host that ends
    /// it. With Gone::yes, other owners may use the addresses from now on, so they are forgotten.
    /// Returns false if pending work still uses the memory.
    enum class Gone : bool { no, yes };
    bool end(const Operation& operation, std::uintptr_t address, const VectorClock& clock,
             Gone gone = Gone::no) {
        const auto found = alive_.find(address);
        if (found == alive_.end()) return false;
        const std::shared_ptr<Lifetime> lifetime = std::move(found->second);
        alive_.erase(found);
        bool unused = true;
        const auto look = [&](std::uintptr_t at, Cell& cell) {
            const std::size_t bytes = cell.end - at;
            for_each_use(cell, [&](const Operation& use) {
                if (ordered(use, clock) || use == lifetime->born) return;
                unused = false;
                watch_.log.add(HazardKind::free_in_use, operation, use, at, bytes);
            });
            if (cell.lifetime == nullptr || !cell.lifetime->noted || !cell.lifetime->alive())
                return;
            watch_.log.add(HazardKind::free_in_use, operation, cell.lifetime->born, at, bytes);
        };
        watch_.shadow.visit(address, lifetime->bytes, watch_.host, look);
        lifetime->freed = operation;
        if (gone == Gone::yes) {
            forget(address, lifetime->bytes);
            return unused;
        }
        Cell cell;
        cell.content = Content::freed;
        cell.lifetime = lifetime;
        watch_.shadow.replace(address, lifetime->bytes, std::move(cell));
        return unused;
    }
    /// Reports an attempt to end a lifetime where none can be ended.
    void wrong_end(const Operation& operation, std::uintptr_t address) {
        if (!watch_.on) return;
        const Cell* const cell = watch_.shadow.find(address);
        Operation other;
        if (cell != nullptr && cell->lifetime != nullptr) {
            other = cell->content == Content::freed ? cell->lifetime->freed : cell->lifetime->born;
        }
        watch_.log.add(HazardKind::double_free, operation, other, address, 0);
    }
    void forget(std::uintptr_t address, std::size_t bytes) { watch_.shadow.erase(address, bytes); }

    /// Saves which parts of mapped memory are written, so that `restore` can apply it after the
    /// memory is mapped elsewhere.
    void save(MemoryHandle memory, std::uintptr_t address, std::size_t bytes) {
        if (!watch_.on) return;
        std::vector<Written> written;
        watch_.shadow.visit(address, bytes, watch_.host, [&](std::uintptr_t at, const Cell& cell) {
            if (cell.content == Content::written) written.push_back({at - address, cell.end - at});
        });
        saved_[memory] = std::move(written);
    }
    void restore(MemoryHandle memory, std::uintptr_t address) {
        const auto found = saved_.find(memory);
        if (found == saved_.end()) return;
        for (const Written& written : found->second) {
            watch_.shadow.visit(
                address + written.offset, written.bytes, watch_.host,
                [](std::uintptr_t, Cell& cell) { cell.content = Content::written; });
        }
    }
    void drop(MemoryHandle memory) { saved_.erase(memory); }

    // Blocks of allocators -----------------------------------------------------------------------

    /// Begins a block's lifetime. `clock` is that of its stream; `capture` is the id of the capture
    /// that the stream is in, or 0. Returns true if no pending work uses the range any more.
    bool block_allocated(const Operation& operation, const BlockNote& note, StreamName owner,
                         const VectorClock& clock, std::uint64_t capture) {
        auto lifetime = std::make_shared<Lifetime>();
        lifetime->address = begin_of(note);
        lifetime->bytes = note.bytes;
        lifetime->born = operation;
        lifetime->owner = owner;
        lifetime->noted = true;
        lifetime->capture = capture;
        bool idle = true;
        const auto look = [&](std::uintptr_t at, Cell& cell) {
            const std::size_t bytes = cell.end - at;
            if (cell.lifetime == nullptr) {
                watch_.log.add(HazardKind::out_of_allocation, operation, {}, at, bytes);
            } else if (cell.lifetime->noted && cell.lifetime->alive()) {
                watch_.log.add(HazardKind::overlapping_blocks, operation, cell.lifetime->born, at,
                               bytes);
            } else if (!cell.lifetime->noted && !cell.lifetime->alive()) {
                watch_.log.add(HazardKind::access_after_free, operation, cell.lifetime->freed, at,
                               bytes);
            }
            idle = idle && cell.idle();
            const auto late = [&](const Operation& use) {
                if (use.number == 0 || capture != 0 || ordered(use, clock)) return false;
                watch_.log.add(HazardKind::reuse_before_last_use, operation, use, at, bytes);
                return true;
            };
            if (late(cell.writer)) cell.writer = {};
            std::erase_if(cell.readers, late);
            lifetime->host_reaches = cell.lifetime == nullptr || cell.lifetime->host_reaches;
            cell.content = fresh(*lifetime);
            cell.lifetime = lifetime;
        };
        make_slabs(lifetime->address, lifetime->bytes);
        watch_.shadow.visit(lifetime->address, lifetime->bytes, watch_.host, look);
        return idle && capture == 0;
    }
    void block_used(const Operation& operation, const BlockNote& note, StreamName stream) {
        const auto lifetime = block_at(begin_of(note));
        if (lifetime == nullptr) return wrong_end(operation, begin_of(note));
        if (!lifetime->alive()) {
            watch_.log.add(HazardKind::access_after_free, operation, lifetime->freed,
                           begin_of(note), note.bytes);
            return;
        }
        if (stream != lifetime->owner && !contains(lifetime->uses, stream))
            lifetime->uses.push_back(stream);
    }
    /// Ends a block's lifetime. `clock` is that of the block's own stream. Returns true if no
    /// pending work uses the range any more.
    bool block_freed(const Operation& operation, const BlockNote& note, const VectorClock& clock) {
        const auto lifetime = block_at(begin_of(note));
        if (lifetime == nullptr || !lifetime->alive()) {
            wrong_end(operation, begin_of(note));
            return false;
        }
        bool idle = true;
        const auto look = [&](std::uintptr_t at, Cell& cell) {
            if (cell.lifetime != lifetime) return;
            idle = idle && cell.idle();
            for_each_use(cell, [&](const Operation& use) {
                if (use.number < lifetime->born.number || use.stream == lifetime->owner) return;
                if (ordered(use, clock) || contains(lifetime->uses, use.stream)) return;
                watch_.log.add(HazardKind::missing_record_use, operation, use, at, cell.end - at);
            });
            cell.content = Content::freed;
        };
        watch_.shadow.visit(lifetime->address, lifetime->bytes, watch_.host, look);
        lifetime->freed = operation;
        return idle && lifetime->capture == 0;
    }
    void block_reusable(const Operation& operation, const BlockNote& note,
                        const VectorClock& clock) {
        const auto lifetime = block_at(begin_of(note));
        if (lifetime == nullptr || lifetime->alive()) return wrong_end(operation, begin_of(note));
        watch_.shadow.visit(lifetime->address, lifetime->bytes, watch_.host,
                            [&](std::uintptr_t at, Cell& cell) {
                                if (cell.lifetime != lifetime) return;
                                for_each_use(cell, [&](const Operation& use) {
                                    // Later uses are by a graph that owns this memory.
                                    const bool later = use.number > lifetime->freed.number;
                                    if (later || ordered(use, clock)) return;
                                    watch_.log.add(HazardKind::reuse_before_last_use, operation,
                                                   use, at, cell.end - at);
                                });
                            });
    }

private:
    struct Written {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };

    void start(std::shared_ptr<Lifetime> lifetime, const Operation& writer) {
        if (!watch_.on) return;
        const std::uintptr_t address = lifetime->address;
        Cell cell;
        cell.content = fresh(*lifetime);
        cell.writer = writer;
        cell.lifetime = lifetime;
        watch_.shadow.replace(address, lifetime->bytes, std::move(cell));
        alive_[address] = std::move(lifetime);
    }
    // Once an allocation holds a block, the rest of it may not be touched. A block may span several
    // allocations that are mapped side by side.
    void make_slabs(std::uintptr_t address, std::size_t bytes) {
        auto found = alive_.upper_bound(address);
        if (found != alive_.begin()) --found;
        for (; found != alive_.end() && found->first < address + bytes; ++found) {
            const std::shared_ptr<Lifetime>& slab = found->second;
            if (slab->slab || slab->address + slab->bytes <= address) continue;
            slab->slab = true;
            watch_.shadow.visit(
                slab->address, slab->bytes, watch_.host,
                [](std::uintptr_t, Cell& cell) { cell.content = Content::unallocated; });
        }
    }
    std::shared_ptr<Lifetime> block_at(std::uintptr_t address) const {
        const Cell* const cell = watch_.shadow.find(address);
        const bool begins = cell != nullptr && cell->lifetime != nullptr && cell->lifetime->noted &&
                            cell->lifetime->address == address;
        return begins ? cell->lifetime : nullptr;
    }

    Watch& watch_;
    std::map<std::uintptr_t, std::shared_ptr<Lifetime>> alive_;  // alive, by address
    std::unordered_map<MemoryHandle, std::vector<Written>> saved_;
};

}  // namespace tensorpool::device
