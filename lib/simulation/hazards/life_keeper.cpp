#include "simulation/hazards/life_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorpool::device {
namespace {

template <class Function>
void for_each_use(const Cell& cell, Function&& function) {
    if (cell.writer.number != 0) function(cell.writer);
    for (const Operation& reader : cell.readers) function(reader);
}

std::uintptr_t begin_of(const BlockNote& note) noexcept {
    return reinterpret_cast<std::uintptr_t>(note.address);
}

// Writes by the host to memory that it can reach are not observed, so that memory counts as
// written.
Content fresh(const Life& life) noexcept {
    return life.host_reaches ? Content::written : Content::uninitialised;
}

bool contains(const std::vector<StreamName>& streams, StreamName stream) noexcept {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

}  // namespace

// Allocations of the backend ---------------------------------------------------------------------

void LifeKeeper::begin(const Operation& operation, std::uintptr_t address, std::size_t bytes,
                       bool host_reaches) {
    auto life = std::make_shared<Life>();
    life->address = address;
    life->bytes = bytes;
    life->born = operation;
    life->host_reaches = host_reaches;
    start(std::move(life), {});
}

void LifeKeeper::begin_on_stream(const Operation& operation, std::uintptr_t address,
                                 std::size_t bytes) {
    auto life = std::make_shared<Life>();
    life->address = address;
    life->bytes = bytes;
    life->born = operation;
    start(std::move(life), operation);
}

void LifeKeeper::start(std::shared_ptr<Life> life, const Operation& writer) {
    if (!watch_.on) return;
    const std::uintptr_t address = life->address;
    Cell cell;
    cell.content = fresh(*life);
    cell.writer = writer;
    cell.life = life;
    watch_.shadow.replace(address, life->bytes, std::move(cell));
    homes_[address] = std::move(life);
}

bool LifeKeeper::end(const Operation& operation, std::uintptr_t address, const VectorClock& clock,
                     Gone gone) {
    const auto home = homes_.find(address);
    if (home == homes_.end()) return false;
    const std::shared_ptr<Life> life = std::move(home->second);
    homes_.erase(home);
    bool unused = true;
    const auto look = [&](std::uintptr_t at, Cell& cell) {
        const std::size_t bytes = cell.end - at;
        for_each_use(cell, [&](const Operation& use) {
            if (ordered(use, clock) || use == life->born) return;
            unused = false;
            watch_.log.add(HazardKind::free_in_use, operation, use, at, bytes);
        });
        if (cell.life == nullptr || !cell.life->noted || !cell.life->alive()) return;
        watch_.log.add(HazardKind::free_in_use, operation, cell.life->born, at, bytes);
    };
    watch_.shadow.visit(address, life->bytes, watch_.host, look);
    life->freed = operation;
    if (gone == Gone::yes) {
        forget(address, life->bytes);
        return unused;
    }
    Cell cell;
    cell.content = Content::freed;
    cell.life = life;
    watch_.shadow.replace(address, life->bytes, std::move(cell));
    return unused;
}

void LifeKeeper::wrong_end(const Operation& operation, std::uintptr_t address) {
    if (!watch_.on) return;
    const Cell* const cell = watch_.shadow.find(address);
    Operation other;
    if (cell != nullptr && cell->life != nullptr) {
        other = cell->content == Content::freed ? cell->life->freed : cell->life->born;
    }
    watch_.log.add(HazardKind::double_free, operation, other, address, 0);
}

// Mapped memory ----------------------------------------------------------------------------------

void LifeKeeper::save(MemoryHandle memory, std::uintptr_t address, std::size_t bytes) {
    if (!watch_.on) return;
    std::vector<Written> written;
    watch_.shadow.visit(address, bytes, watch_.host, [&](std::uintptr_t at, const Cell& cell) {
        if (cell.content == Content::written) written.push_back({at - address, cell.end - at});
    });
    saved_[memory] = std::move(written);
}

void LifeKeeper::restore(MemoryHandle memory, std::uintptr_t address) {
    const auto found = saved_.find(memory);
    if (found == saved_.end()) return;
    for (const Written& written : found->second) {
        watch_.shadow.visit(address + written.offset, written.bytes, watch_.host,
                            [](std::uintptr_t, Cell& cell) { cell.content = Content::written; });
    }
}

// Blocks of allocators ---------------------------------------------------------------------------

// Once an allocation holds a block, the rest of it may not be touched. A block may span several
// allocations that are mapped side by side.
void LifeKeeper::make_slabs(std::uintptr_t address, std::size_t bytes) {
    auto home = homes_.upper_bound(address);
    if (home != homes_.begin()) --home;
    for (; home != homes_.end() && home->first < address + bytes; ++home) {
        const std::shared_ptr<Life>& slab = home->second;
        if (slab->slab || slab->address + slab->bytes <= address) continue;
        slab->slab = true;
        watch_.shadow.visit(
            slab->address, slab->bytes, watch_.host,
            [](std::uintptr_t, Cell& cell) { cell.content = Content::unallocated; });
    }
}

bool LifeKeeper::block_allocated(const Operation& operation, const BlockNote& note,
                                 StreamName owner, const VectorClock& clock,
                                 std::uint64_t capture) {
    auto life = std::make_shared<Life>();
    life->address = begin_of(note);
    life->bytes = note.bytes;
    life->born = operation;
    life->owner = owner;
    life->noted = true;
    life->capture = capture;
    bool idle = true;
    const auto look = [&](std::uintptr_t at, Cell& cell) {
        const std::size_t bytes = cell.end - at;
        if (cell.life == nullptr) {
            watch_.log.add(HazardKind::out_of_allocation, operation, {}, at, bytes);
        } else if (cell.life->noted && cell.life->alive()) {
            watch_.log.add(HazardKind::overlapping_blocks, operation, cell.life->born, at, bytes);
        } else if (!cell.life->noted && !cell.life->alive()) {
            watch_.log.add(HazardKind::access_after_free, operation, cell.life->freed, at, bytes);
        }
        idle = idle && cell.idle();
        const auto late = [&](const Operation& use) {
            if (use.number == 0 || capture != 0 || ordered(use, clock)) return false;
            watch_.log.add(HazardKind::reuse_before_last_use, operation, use, at, bytes);
            return true;
        };
        if (late(cell.writer)) cell.writer = {};
        std::erase_if(cell.readers, late);
        life->host_reaches = cell.life == nullptr || cell.life->host_reaches;
        cell.content = fresh(*life);
        cell.life = life;
    };
    make_slabs(life->address, life->bytes);
    watch_.shadow.visit(life->address, life->bytes, watch_.host, look);
    return idle && capture == 0;
}

std::shared_ptr<Life> LifeKeeper::block_at(std::uintptr_t address) const {
    const Cell* const cell = watch_.shadow.find(address);
    const bool begins = cell != nullptr && cell->life != nullptr && cell->life->noted &&
                        cell->life->address == address;
    return begins ? cell->life : nullptr;
}

void LifeKeeper::block_used(const Operation& operation, const BlockNote& note, StreamName stream) {
    const auto life = block_at(begin_of(note));
    if (life == nullptr) return wrong_end(operation, begin_of(note));
    if (!life->alive()) {
        watch_.log.add(HazardKind::access_after_free, operation, life->freed, begin_of(note),
                       note.bytes);
        return;
    }
    if (stream != life->owner && !contains(life->uses, stream)) life->uses.push_back(stream);
}

bool LifeKeeper::block_freed(const Operation& operation, const BlockNote& note,
                             const VectorClock& clock) {
    const auto life = block_at(begin_of(note));
    if (life == nullptr || !life->alive()) {
        wrong_end(operation, begin_of(note));
        return false;
    }
    bool idle = true;
    const auto look = [&](std::uintptr_t at, Cell& cell) {
        if (cell.life != life) return;
        idle = idle && cell.idle();
        for_each_use(cell, [&](const Operation& use) {
            if (use.number < life->born.number || use.stream == life->owner) return;
            if (ordered(use, clock) || contains(life->uses, use.stream)) return;
            watch_.log.add(HazardKind::missing_record_use, operation, use, at, cell.end - at);
        });
        cell.content = Content::freed;
    };
    watch_.shadow.visit(life->address, life->bytes, watch_.host, look);
    life->freed = operation;
    return idle && life->capture == 0;
}

void LifeKeeper::block_reusable(const Operation& operation, const BlockNote& note,
                                const VectorClock& clock) {
    const auto life = block_at(begin_of(note));
    if (life == nullptr || life->alive()) return wrong_end(operation, begin_of(note));
    watch_.shadow.visit(life->address, life->bytes, watch_.host,
                        [&](std::uintptr_t at, Cell& cell) {
                            if (cell.life != life) return;
                            for_each_use(cell, [&](const Operation& use) {
                                // Later uses are by a graph that owns this memory.
                                const bool later = use.number > life->freed.number;
                                if (later || ordered(use, clock)) return;
                                watch_.log.add(HazardKind::reuse_before_last_use, operation, use,
                                               at, cell.end - at);
                            });
                        });
}

}  // namespace tensorpool::device
