#pragma once

#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "simulation/hazards/vector_clock.hpp"

namespace tensorpool::device {

inline bool known(const VectorClock& host, const Operation& operation) noexcept {
    return host[operation.timeline] >= operation.tick;
}

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
    void forget(const VectorClock& host) {
        if (writer.number != 0 && known(host, writer)) writer = {};
        std::erase_if(readers, [&](const Operation& reader) { return known(host, reader); });
    }
};

// Memory of the host itself with no pending work.
inline bool is_blank(const Cell& cell) noexcept {
    return cell.lifetime == nullptr && cell.idle();
}

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
    void erase(std::uintptr_t begin, std::size_t bytes) {
        split(begin);
        split(begin + bytes);
        cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(begin + bytes));
    }
    /// Makes the whole range one cell.
    void replace(std::uintptr_t begin, std::size_t bytes, Cell cell) {
        erase(begin, bytes);
        cell.end = begin + bytes;
        cells_.emplace(begin, std::move(cell));
    }
    /// Returns the cell that contains the address, or nullptr.
    const Cell* find(std::uintptr_t address) const noexcept {
        const Cell* const found = find_before(address + 1);
        return found != nullptr && address < found->end ? found : nullptr;
    }
    /// Returns the last cell that begins before the address, or nullptr.
    const Cell* find_before(std::uintptr_t address) const noexcept {
        const auto after = cells_.lower_bound(address);
        return after == cells_.begin() ? nullptr : &std::prev(after)->second;
    }

    std::size_t cells() const noexcept { return cells_.size(); }

private:
    using Cells = std::map<std::uintptr_t, Cell>;

    // Returns the cell that begins at `begin` and ends no later than `end`.
    Cells::iterator cut(std::uintptr_t begin, std::uintptr_t end) {
        split(begin);
        const auto found = cells_.lower_bound(begin);
        if (found == cells_.end() || found->first != begin) {
            Cell fresh;
            fresh.end = found == cells_.end() ? end : std::min(end, found->first);
            return cells_.emplace_hint(found, begin, std::move(fresh));
        }
        if (found->second.end > end) split(end);
        return found;
    }
    void split(std::uintptr_t address) {
        auto found = cells_.upper_bound(address);
        if (found == cells_.begin()) return;
        --found;
        if (found->first == address || found->second.end <= address) return;
        Cell rest = found->second;
        found->second.end = address;
        cells_.emplace_hint(std::next(found), address, std::move(rest));
    }
    void join(std::uintptr_t begin, std::uintptr_t end) {
        auto cell = cells_.lower_bound(begin);
        if (cell != cells_.begin()) --cell;
        while (cell != cells_.end() && cell->first <= end) {
            const auto next = std::next(cell);
            if (is_blank(cell->second)) {
                cell = cells_.erase(cell);
            } else if (next != cells_.end() && next->first == cell->second.end &&
                       next->second.like(cell->second)) {
                cell->second.end = next->second.end;
                cells_.erase(next);
            } else {
                cell = next;
            }
        }
    }
    void sweep(const VectorClock& host) {
        for (auto& [begin, cell] : cells_) cell.forget(host);
        join(0, UINTPTR_MAX);
        sweep_at_ = std::max<std::size_t>(4096, cells_.size() * 2);
    }

    Cells cells_;
    std::size_t sweep_at_ = 4096;
};

}  // namespace tensorpool::device
