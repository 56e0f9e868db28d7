#include "simulation/hazards/shadow_memory.hpp"

#include <iterator>
#include <utility>

namespace tensorpool::device {
namespace {

bool known(const VectorClock& host, const Operation& operation) noexcept {
    return host[operation.timeline] >= operation.tick;
}

// Memory of the host itself with no pending work.
bool is_blank(const Cell& cell) noexcept {
    return cell.lifetime == nullptr && cell.idle();
}

}  // namespace

void Cell::forget(const VectorClock& host) {
    if (writer.number != 0 && known(host, writer)) writer = {};
    std::erase_if(readers, [&](const Operation& reader) { return known(host, reader); });
}

// Returns the cell that begins at `begin` and ends no later than `end`.
ShadowMemory::Cells::iterator ShadowMemory::cut(std::uintptr_t begin, std::uintptr_t end) {
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

void ShadowMemory::split(std::uintptr_t address) {
    auto found = cells_.upper_bound(address);
    if (found == cells_.begin()) return;
    --found;
    if (found->first == address || found->second.end <= address) return;
    Cell rest = found->second;
    found->second.end = address;
    cells_.emplace_hint(std::next(found), address, std::move(rest));
}

void ShadowMemory::join(std::uintptr_t begin, std::uintptr_t end) {
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

void ShadowMemory::sweep(const VectorClock& host) {
    for (auto& [begin, cell] : cells_) cell.forget(host);
    join(0, UINTPTR_MAX);
    sweep_at_ = std::max<std::size_t>(4096, cells_.size() * 2);
}

void ShadowMemory::erase(std::uintptr_t begin, std::size_t bytes) {
    split(begin);
    split(begin + bytes);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(begin + bytes));
}

void ShadowMemory::replace(std::uintptr_t begin, std::size_t bytes, Cell cell) {
    erase(begin, bytes);
    cell.end = begin + bytes;
    cells_.emplace(begin, std::move(cell));
}

const Cell* ShadowMemory::find(std::uintptr_t address) const noexcept {
    const Cell* const found = find_before(address + 1);
    return found != nullptr && address < found->end ? found : nullptr;
}

const Cell* ShadowMemory::find_before(std::uintptr_t address) const noexcept {
    const auto after = cells_.lower_bound(address);
    return after == cells_.begin() ? nullptr : &std::prev(after)->second;
}

}  // namespace tensorpool::device
