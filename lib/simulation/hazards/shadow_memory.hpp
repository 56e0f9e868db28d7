#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "simulation/hazards/vector_clock.hpp"
#include "simulation/operation.hpp"

namespace tensorpool::device {

/// One life of some memory, from where it was handed out to where it was freed.
struct Life {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    Operation born;
    Operation freed;               // number 0: it is alive
    StreamName owner;              // of a noted block: the stream that it is for
    bool noted = false;            // by an allocator; otherwise the backend's own
    bool slab = false;             // not noted, and there are noted blocks in it
    bool host_reaches = false;     // so what the host wrote is not known
    std::uint64_t capture = 0;     // in which it was born; 0: in none
    std::vector<StreamName> uses;  // that the allocator was told of

    bool alive() const noexcept { return freed.number == 0; }
};

enum class Content : std::uint8_t { unallocated, uninitialised, written, freed };

/// What is known of a range: who touched it last, as far as it may still be under way for the host.
struct Cell {
    std::uintptr_t end = 0;
    Content content = Content::written;
    std::shared_ptr<Life> life;  // nullptr: the host's own memory
    Operation writer;
    std::vector<Operation> readers;  // since then; of each timeline the last one

    bool idle() const noexcept { return writer.number == 0 && readers.empty(); }
    bool like(const Cell& other) const noexcept {
        return content == other.content && life == other.life && writer == other.writer &&
               readers == other.readers;
    }
    /// Forgets what the host knows to be done: whatever is given from now on comes after it.
    void forget(const VectorClock& host);
};

/// Ranges of memory and what is known of them. No two overlap, and no two that touch are alike for
/// long.
class ShadowMemory {
public:
    /// Calls `function(begin, cell)` for all of the range, which it cuts at its ends; cells that
    /// are not there are made, as the host's own memory.
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
    /// Nothing is known of the range any more.
    void erase(std::uintptr_t begin, std::size_t bytes);
    /// All of it becomes one cell.
    void replace(std::uintptr_t begin, std::size_t bytes, Cell cell);
    /// The cell at this address, or nullptr; and the last one that begins before it.
    const Cell* find(std::uintptr_t address) const noexcept;
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
