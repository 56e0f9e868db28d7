#include <algorithm>

#include "device/caching/blocks/block_heap.hpp"

// Ranges of expandable slabs: where memory can be mapped, and what can be unmapped.

namespace tensorpool::device {
namespace {

bool is_open(const Block* block) noexcept {
    return block != nullptr && (block->is(BlockState::free) || block->is(BlockState::hole));
}

/// Returns the free block in front of a hole, or the hole.
Block* begin_of_run(Block& hole) noexcept {
    return is_open(hole.previous) ? hole.previous : &hole;
}

}  // namespace

BlockHeap::Run BlockHeap::take_run(Slab& slab, std::size_t bytes) {
    Run run = {&slab, nullptr, nullptr, 0, nullptr};
    std::size_t room = 0;
    for (auto hole = slab.holes.begin(); hole != slab.holes.end() && room < bytes; ++hole) {
        Block* const first = begin_of_run(*hole);
        // A run with several holes is searched from its first hole, then from the later ones.
        room = 0;
        run.first = first;
        for (Block* block = first; is_open(block) && room < bytes; block = block->next) {
            room += block->bytes;
            run.last = block;
        }
    }
    if (room < bytes) return {&slab, nullptr, nullptr, 0, nullptr};
    map_.cover(run.first->address, slab.pool);
    records_.reserve(2);
    run.spare = &take_record();
    const std::size_t in_last = bytes - (room - run.last->bytes);
    if (run.last->is(BlockState::hole)) {
        Block& last = *run.last;
        const std::size_t kept = std::min(base::align_up(in_last, slab.granule), last.bytes);
        remove_hole(last);
        if (kept != last.bytes) {
            Block& rest = take_record();
            cut(last, kept, rest);
            insert_hole(rest);
        }
        run.missing += kept;
        insert_hole(last);
    }
    for (Block* block = run.first;; block = block->next) {
        const bool hole = block->is(BlockState::hole);
        if (hole && block != run.last) run.missing += block->bytes;
        hole ? remove_hole(*block) : remove_free(*block);
        if (hole) block->set(BlockState::mapping);
        if (block == run.last) return run;
    }
}

Block* BlockHeap::merge_run(const Run& run, std::size_t bytes) noexcept {
    Block& block = *run.first;
    count(*run.slab, run.missing, 0);
    Block* const end = run.last->next;
    const bool mapped_last = run.last->is(BlockState::mapping);
    const std::uint64_t tail_stamp = mapped_last ? idle_stamp : run.last->stamp;
    while (block.next != end) absorb_next(block);
    block.stamp = tail_stamp;
    give_tail(block, bytes, *run.spare);
    block.key = bytes;
    block.set(BlockState::taken);
    map_.set(block);
    totals_.hold(block.bytes);
    return &block;
}

void BlockHeap::untake_run(const Run& run) noexcept {
    records_.give(*run.spare);
    // From the end, so that the part before each one is still taken when it is put back.
    for (Block* block = run.last;;) {
        Block* const before = block == run.first ? nullptr : block->previous;
        if (block->is(BlockState::mapping)) {
            make_hole(*block);
        } else {
            put_back(*block, block->stamp);
        }
        if (before == nullptr) return;
        block = before;
    }
}

Block* BlockHeap::take_granules(Block& block, std::size_t bytes) {
    const Slab& slab = *block.slab;
    const auto offset = [&](const std::byte* address) {
        return static_cast<std::size_t>(address - slab.base);
    };
    const std::size_t first = base::align_up(offset(block.address), slab.granule);
    const std::size_t end = base::align_down(offset(block.end()), slab.granule);
    if (first >= end) return nullptr;
    const std::size_t wanted = std::min(base::align_up(bytes, slab.granule), end - first);
    const std::size_t begin = end - wanted;
    records_.reserve(2);
    remove_free(block);
    Block* middle = &block;
    if (begin != offset(block.address)) {
        middle = &take_record();
        cut(block, begin - offset(block.address), *middle);
        insert_free(block);
    }
    if (middle->bytes != wanted) {
        Block& tail = take_record();
        cut(*middle, wanted, tail);
        insert_free(tail);
    }
    return middle;
}

void BlockHeap::make_hole(Block& block) noexcept {
    map_.clear(block);
    Block* kept = &block;
    if (block.next != nullptr && block.next->is(BlockState::hole)) {
        remove_hole(*block.next);
        absorb_next(block);
    }
    if (block.previous != nullptr && block.previous->is(BlockState::hole)) {
        kept = block.previous;
        remove_hole(*kept);
        absorb_next(*kept);
    }
    insert_hole(*kept);
}

}  // namespace tensorpool::device
