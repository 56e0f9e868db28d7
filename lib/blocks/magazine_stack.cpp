#include "blocks/magazine_stack.hpp"

#include <memory>
#include <utility>

namespace tensorpool::blocks {

bool MagazineTable::enter(Magazine& magazine) noexcept {
    if (unused_ == nothing && !add_chunk()) return false;
    Entry& entry = (*this)[unused_];
    magazine.number = std::exchange(unused_, entry.below.load(std::memory_order_relaxed));
    entry.magazine = &magazine;
    return true;
}

void MagazineTable::leave(Magazine& magazine) noexcept {
    (*this)[magazine.number].below.store(unused_, std::memory_order_relaxed);
    unused_ = std::exchange(magazine.number, nothing);
}

// Doubles the number of entries.
bool MagazineTable::add_chunk() noexcept {
    const Number count = end_;
    if (count >> number_bits != 0) return false;
    void* const memory = records_.allocate(count * sizeof(Entry), alignof(Entry));
    if (memory == nullptr) return false;
    auto* const entries = static_cast<Entry*>(memory);
    std::uninitialized_default_construct_n(entries, count);
    chunks_[bits_of(count)].store(entries, std::memory_order_relaxed);
    for (Number i = count; i != 0; --i) {
        entries[i - 1].below.store(unused_, std::memory_order_relaxed);
        unused_ = end_ + i - 1;
    }
    end_ += count;
    return true;
}

}  // namespace tensorpool::blocks
