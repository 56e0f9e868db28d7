#pragma once

#include <map>
#include <memory>

#include "simulation/hazards/vector_clock.hpp"

namespace tensorpool::device {

/// One lifetime of a range of memory, from its allocation to its free.
struct Lifetime {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Operation born;
    Operation freed;               // number 0: still alive
    StreamName owner;              // for an allocator's block: the stream it was allocated for
    bool noted = false;            // reported by an allocator; otherwise the backend's own
    bool slab = false;             // the backend's own, and it holds blocks of an allocator
    bool host_reaches = false;     // writes by the host are not observed
    std::uint64_t capture = 0;     // capture during which it was allocated, or 0
    std::vector<StreamName> uses;  // streams reported to the allocator by record_use

    bool alive() const noexcept { return freed.number == 0; }
};

enum class Content : std::uint8_t { unallocated, uninitialised, written, freed };

/// What is known of a range: its content and the last accesses that the host has not yet seen
/// complete.
struct Cell {
    std::uintptr_t end = 0;
    Content content = Content::written;
    std::shared_ptr<Lifetime> lifetime;  // nullptr: memory of the host itself
    Operation writer;
    std::vector<Operation> readers;  // since the write; the last one of each timeline

    bool idle() const noexcept { return writer.number == 0 && readers.empty(); }
    bool like(const Cell& other) const noexcept {
        return content == other.content && lifetime == other.lifetime && writer == other.writer &&
               readers == other.readers;
    }
    /// Forgets accesses that the host has seen complete: all later work is ordered after them.
    void forget(const VectorClock& host);
};

/// Maps ranges of memory to what is known of them. Ranges never overlap. Adjacent equal ranges are
/// merged soon.
class ShadowMemory {
public:
    /// Calls `function(begin, cell)` for each cell of the range. Cells at the ends of the range are
    /// split; gaps are filled with new cells, as memory of the host itself.
    template <class Function>
    void visit(std::uintptr_t begin, std::size_t bytes, const VectorClock& host,
               Function&& function) {
        const std::uintptr_t end = begin + bytes;
        for (std::uintptr_t at = begin; at < end;) {
            const auto cell = cut(at, end);
            cell->second.forget(host);
            function(at, cell->second);
            at = cell->second.end;
        }
        join(begin, end);
        if (cells_.size() > sweep_at_) sweep(host);
    }
    /// Removes everything known of the range.
    void erase(std::uintptr_t begin, std::size_t bytes);
    /// Makes the whole range one cell.
    void replace(std::uintptr_t begin, std::size_t bytes, Cell cell);
    /// Returns the cell that contains the address, or nullptr.
    const Cell* find(std::uintptr_t address) const noexcept;
    /// Returns the last cell that begins before the address, or nullptr.
    const Cell* find_before(std::uintptr_t address) const noexcept;

    std::size_t cells() const noexcept { return cells_.size(); }

private:
    using Cells = std::map<std::uintptr_t, Cell>;

    Cells::iterator cut(std::uintptr_t begin, std::uintptr_t end);
    void split(std::uintptr_t address);
    void join(std::uintptr_t begin, std::uintptr_t end);
    void sweep(const VectorClock& host);

    Cells cells_;
    std::size_t sweep_at_ = 4096;
};

}  // namespace tensorpool::device
