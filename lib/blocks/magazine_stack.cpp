#include "blocks/magazine_stack.hpp"

#include <memory>
#include <utility>

namespace tensorpool::blocks {

bool MagazinePlaces::enter(Magazine& magazine) noexcept {
    if (unused_ == nothing && !add_chunk()) return false;
    Place& place = (*this)[unused_];
    magazine.number = std::exchange(unused_, place.below.load(std::memory_order_relaxed));
    place.magazine = &magazine;
    return true;
}

void MagazinePlaces::leave(Magazine& magazine) noexcept {
    (*this)[magazine.number].below.store(unused_, std::memory_order_relaxed);
    unused_ = std::exchange(magazine.number, nothing);
}

// As many places again as there are.
bool MagazinePlaces::add_chunk() noexcept {
    const Number count = end_;
    if (count >> number_bits != 0) return false;
    void* const memory = records_.allocate(count * sizeof(Place), alignof(Place));
    if (memory == nullptr) return false;
    auto* const places = static_cast<Place*>(memory);
    std::uninitialized_default_construct_n(places, count);
    chunks_[bits_of(count)].store(places, std::memory_order_relaxed);
    for (Number i = count; i != 0; --i) {
        places[i - 1].below.store(unused_, std::memory_order_relaxed);
        unused_ = end_ + i - 1;
    }
    end_ += count;
    return true;
}

}  // namespace tensorpool::blocks
