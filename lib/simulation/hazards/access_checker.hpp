#pragma once

#include <tensorpool/device/simulated_kernel.hpp>

#include "simulation/hazards/watch.hpp"
#include "simulation/simulated_memory.hpp"

namespace tensorpool::device {

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
        const Lifetime& lifetime = *cell.lifetime;
        const std::size_t bytes = cell.end - address;
        if (cell.content == Content::freed) {
            watch_.log.add(HazardKind::access_after_free, by.operation, lifetime.freed, address,
                           bytes);
            return false;
        }
        if (cell.content == Content::unallocated) {
            watch_.log.add(HazardKind::out_of_allocation, by.operation, lifetime.born, address,
                           bytes);
            return false;
        }
        if (by.capture != 0 && lifetime.born.number > by.captured_until) {
            watch_.log.add(HazardKind::access_after_free, by.operation, lifetime.born, address,
                           bytes);
            return false;
        }
        return true;
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
