#pragma once

#include <tensorpool/device/simulated_kernel.hpp>

#include "simulation/hazards/watch.hpp"
#include "simulation/simulated_memory.hpp"

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

    /// Begins a lifetime. `writer` is the operation whose stream alone may touch the memory so far,
    /// if there is one.
    void begin(const Operation& operation, std::uintptr_t address, std::size_t bytes,
               bool host_reaches, const Operation& writer = {}) {
        if (!watch_.on) return;
        auto lifetime = std::make_shared<Lifetime>();
        lifetime->address = address;
        lifetime->bytes = bytes;
        lifetime->born = operation;
        lifetime->host_reaches = host_reaches;
        Cell cell;
        cell.content = fresh(*lifetime);
        cell.writer = writer;
        cell.lifetime = lifetime;
        watch_.shadow.replace(address, bytes, std::move(cell));
        alive_[address] = std::move(lifetime);
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
            const auto report = [&](HazardKind kind, const Operation& other) {
                watch_.log.add(kind, operation, other, at, cell.end - at);
            };
            if (cell.lifetime == nullptr) {
                report(HazardKind::out_of_allocation, {});
            } else if (cell.lifetime->noted && cell.lifetime->alive()) {
                report(HazardKind::overlapping_blocks, cell.lifetime->born);
            } else if (!cell.lifetime->noted && !cell.lifetime->alive()) {
                report(HazardKind::access_after_free, cell.lifetime->freed);
            }
            idle = idle && cell.idle();
            const auto late = [&](const Operation& use) {
                if (use.number == 0 || capture != 0 || ordered(use, clock)) return false;
                report(HazardKind::reuse_before_last_use, use);
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

/// Describes one access to memory: by work in a stream, or by the host.
struct Toucher {
    Operation operation;
    const VectorClock* clock = nullptr;  // everything ordered before the access
    int device = 0;
    enum class Kind : std::uint8_t {
        work,      // work in a stream
        captured,  // recorded but not run: only checks that the memory exists
        copy,      // a synchronous copy without a stream, done during the call
        host,      // an access by the host itself, which cannot reach private memory
    } kind = Kind::work;
    std::uint64_t capture = 0;         // capture whose graph does the work, or 0
    std::uint64_t captured_until = 0;  // number of that capture's last operation

    bool host() const noexcept { return kind == Kind::copy || kind == Kind::host; }
};

inline std::uintptr_t begin_of(const MemoryRange& range) noexcept {
    return reinterpret_cast<std::uintptr_t>(range.address);
}

// A graph may touch memory that was freed within its own capture, because that memory stays
// reserved for the graph. It may not touch what was handed out for other purposes since.
inline bool of_its_capture(const Toucher& by, const Lifetime& lifetime) noexcept {
    return by.capture != 0 && lifetime.capture == by.capture;
}

/// Checks each access to memory: that the memory exists, that the device can reach it, and that the
/// access is ordered after earlier ones. Records accesses in the shadow memory for later checks.
class AccessChecker {
public:
    using Reaches = std::function<bool(int device, int other)>;

    AccessChecker(Watch& watch, const SimulatedMemory& memory, Reaches reaches)
        : watch_(watch), memory_(memory), reaches_(std::move(reaches)) {}

    /// Like `touch`, but throws DeviceError if the access touches memory that does not exist.
    void check(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes) {
        if (!touch(by, reads, writes)) refuse_touch();
    }
    [[noreturn]] static void refuse_touch() { refuse("it touches memory that is not there"); }
    /// Returns false if the access touches memory that does not exist. The caller must then not
    /// perform any of it.
    bool touch(const Toucher& by, const std::vector<MemoryRange>& reads,
               const std::vector<MemoryRange>& writes) {
        bool all_there = true;
        for (const MemoryRange& range : reads) all_there = there(by, range) && all_there;
        for (const MemoryRange& range : writes) all_there = there(by, range) && all_there;
        if (!all_there || !watch_.on) return all_there;
        for (const MemoryRange& range : reads) read(by, range);
        for (const MemoryRange& range : writes) write(by, range);
        return true;
    }

private:
    bool there(const Toucher& by, const MemoryRange& range) {
        if (range.bytes == 0) return true;
        const std::uintptr_t begin = begin_of(range);
        const Allocation* const allocation = memory_.find(begin);
        const bool own_of_host = allocation == nullptr && !memory_.simulated(begin);
        if (own_of_host && begin != 0) return true;
        const std::uintptr_t gap = memory_.first_gap(begin, range.bytes);
        const std::uintptr_t end = begin + range.bytes;
        if (gap == end) return reached(by, *allocation, begin, range.bytes);
        const Cell* const freed = watch_.shadow.find(gap);
        if (freed != nullptr && freed->content == Content::freed) {
            watch_.log.add(HazardKind::access_after_free, by.operation, freed->lifetime->freed, gap,
                           std::min(end, freed->end) - gap);
            return false;
        }
        const Cell* const before = watch_.shadow.find_before(gap);
        const bool known = before != nullptr && before->lifetime != nullptr;
        watch_.log.add(HazardKind::out_of_allocation, by.operation,
                       known ? before->lifetime->born : Operation{}, gap, end - gap);
        return false;
    }
    bool reached(const Toucher& by, const Allocation& allocation, std::uintptr_t address,
                 std::size_t bytes) {
        const bool by_itself = by.kind == Toucher::Kind::host;
        if (by_itself ? allocation.host_reaches
                      : allocation.on_host() || reaches_(by.device, allocation.device)) {
            return true;
        }
        const Cell* const cell = watch_.shadow.find(address);
        const bool known = cell != nullptr && cell->lifetime != nullptr;
        watch_.log.add(
            by_itself ? HazardKind::host_access_to_private : HazardKind::out_of_allocation,
            by.operation, known ? cell->lifetime->born : Operation{}, address, bytes);
        return false;
    }
    void read(const Toucher& by, const MemoryRange& range) {
        const auto look = [&](std::uintptr_t address, Cell& cell) {
            if (!usable(by, address, cell) || by.kind == Toucher::Kind::captured) return;
            if (cell.content == Content::uninitialised) {
                watch_.log.add(HazardKind::read_of_uninitialised, by.operation, cell.lifetime->born,
                               address, cell.end - address);
                cell.content = Content::written;  // reported once
            }
            order(by, address, cell, cell.writer);
            if (by.host()) return;
            std::erase_if(cell.readers, [&](const Operation& reader) {
                return reader.timeline == by.operation.timeline;
            });
            cell.readers.push_back(by.operation);
        };
        watch_.shadow.visit(begin_of(range), range.bytes, watch_.host, look);
    }
    void write(const Toucher& by, const MemoryRange& range) {
        const auto look = [&](std::uintptr_t address, Cell& cell) {
            if (!usable(by, address, cell) || by.kind == Toucher::Kind::captured) return;
            order(by, address, cell, cell.writer);
            for (const Operation& reader : cell.readers) order(by, address, cell, reader);
            // Freed content stays freed, even if a graph writes to memory of its own capture.
            if (cell.content == Content::uninitialised) cell.content = Content::written;
            if (by.host()) return;
            cell.readers.clear();
            cell.writer = by.operation;
        };
        watch_.shadow.visit(begin_of(range), range.bytes, watch_.host, look);
    }
    bool usable(const Toucher& by, std::uintptr_t address, const Cell& cell) {
        if (cell.lifetime == nullptr || of_its_capture(by, *cell.lifetime)) return true;
        const auto refuse = [&](HazardKind kind, const Operation& other) {
            watch_.log.add(kind, by.operation, other, address, cell.end - address);
            return false;
        };
        const Lifetime& lifetime = *cell.lifetime;
        if (cell.content == Content::freed)
            return refuse(HazardKind::access_after_free, lifetime.freed);
        if (cell.content == Content::unallocated)
            return refuse(HazardKind::out_of_allocation, lifetime.born);
        const bool is_too_new = by.capture != 0 && lifetime.born.number > by.captured_until;
        return !is_too_new || refuse(HazardKind::access_after_free, lifetime.born);
    }
    void order(const Toucher& by, std::uintptr_t address, const Cell& cell,
               const Operation& prior) {
        if (ordered(prior, *by.clock)) return;
        HazardKind kind = HazardKind::unordered_access;
        if (by.host()) kind = HazardKind::host_access_too_early;
        const bool other_lifetime =
            cell.lifetime != nullptr && prior.number < cell.lifetime->born.number;
        if (other_lifetime) kind = HazardKind::reuse_before_last_use;
        watch_.log.add(kind, by.operation, prior, address, cell.end - address);
    }

    Watch& watch_;
    const SimulatedMemory& memory_;
    Reaches reaches_;
};

}  // namespace tensorpool::device
