#include "blocks/bucket_shard.hpp"

#include "base/random_distance.hpp"

namespace tensorpool::blocks {
namespace {

/// Calls `function` with the end of a span that may not be accessed. There is none where larger
/// pages of the system are shared with a neighbour.
template <class Function>
void with_guard(pages::PageHeap& heap, const pages::Span& span, Function function) noexcept {
    const std::size_t unit = pages::bytes_of(pages::guard_pages());
    const auto end =
        reinterpret_cast<std::uintptr_t>(heap.space().address_of(span.first_page)) + span.bytes();
    if (end % unit == 0) function(reinterpret_cast<void*>(end - unit), unit);
}

}  // namespace

// All blocks of the span become home at once, so that any of them can be taken first. What was
// written into the span's memory since it was filled with zeros is found when its block is taken.
void harden(pages::PageHeap& heap, pages::Span& span) noexcept {
    if (!span.holds_zeros()) {
        std::memset(heap.space().address_of(span.first_page), 0, span.bytes());
    }
    with_guard(heap, span, [](void* begin, std::size_t bytes) {
        // If the system refuses, the span has no guard.
        (void)platform::install_guard(begin, bytes);
    });
    span.carved = span.blocks;
    span.home = span.blocks;
    for (unsigned index = 0; index != span.blocks; ++index) {
        span.home_bits[index / 64] |= std::uint64_t{1} << index % 64;
    }
}

bool soften(pages::PageHeap& heap, const pages::Span& span) noexcept {
    bool done = true;
    with_guard(heap, span, [&](void* begin, std::size_t bytes) {
        done = platform::remove_guard(begin, bytes);
    });
    return done;
}

unsigned take_at_random(const BucketTraits& bucket, pages::Span& span, void** blocks,
                        unsigned max_count, std::uint64_t& random) noexcept {
    if (random == 0) random = platform::random_bits() | 1;
    const unsigned words = (span.blocks + 63U) / 64U;
    unsigned count = 0;
    for (; count != max_count && span.home != 0; ++count, --span.home) {
        const std::uint64_t bits = base::next_random(random);
        auto word = static_cast<unsigned>((bits >> 32) % words);
        while (span.home_bits[word] == 0) word = (word + 1) % words;
        const auto shift = static_cast<int>(bits % 64);
        const int bit = (std::countr_zero(std::rotr(span.home_bits[word], shift)) + shift) % 64;
        span.home_bits[word] &= ~(std::uint64_t{1} << bit);
        blocks[count] = bucket.block_at(span, word * 64 + static_cast<unsigned>(bit));
    }
    return count;
}

}  // namespace tensorpool::blocks
