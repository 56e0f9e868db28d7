#include "tamper/model.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "pages/address_space.hpp"

namespace tensorpool::tamper {
namespace {

constexpr std::size_t max_blocks = 300;
constexpr std::size_t marked = 64;  // bytes at each end

}  // namespace

void Model::end(Outcome outcome) {
    _exit(static_cast<int>(outcome));
}

void Model::run(unsigned steps) {
    for (; steps != 0; --steps) step();
}

void Model::finish() {
    while (!blocks_.empty()) free_any();
    pool_.trim();
}

void Model::step() {
    const std::size_t what = number_below(200);
    if (what == 0) {
        pool_.trim();
    } else if (blocks_.empty() || (what < 105 && blocks_.size() < max_blocks)) {
        allocate();
    } else if (what < 115) {
        reallocate();
    } else {
        free_any();
    }
}

// Mostly small blocks, of few sizes, so that records are used again.
std::size_t Model::size() {
    const std::size_t kind = number_below(40);
    if (kind == 0) return 70'000 + number_below(4'000'000);
    if (kind < 4) return 1 + number_below(60'000);
    return 1 + number_below(2000);
}

void Model::allocate() {
    const std::size_t bytes = size();
    void* const p = pool_.try_allocate(bytes);
    if (p == nullptr) end(Outcome::refused);
    add(p, bytes);
}

void Model::add(void* p, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    pages::AddressSpace& space = pages::address_space();
    if (space.map().offset_of(p) + bytes > space.max_pages() * pages::page_bytes) {
        end(Outcome::outside);
    }
    const auto next = blocks_.lower_bound(begin);
    if (next != blocks_.end() && next->first < begin + bytes) end(Outcome::twice);
    if (next != blocks_.begin()) {
        const auto& [at, before] = *std::prev(next);
        if (at + before.bytes > begin) end(Outcome::twice);
    }
    const Block block{bytes, static_cast<unsigned char>(random_())};
    blocks_.emplace(begin, block);
    std::memset(p, block.mark, std::min(bytes, marked));
    std::memset(static_cast<char*>(p) + bytes - std::min(bytes, marked), block.mark,
                std::min(bytes, marked));
}

void Model::check(std::uintptr_t at, const Block& block) {
    const auto* const begin = reinterpret_cast<const unsigned char*>(at);
    const auto is_marked = [&](unsigned char byte) { return byte == block.mark; };
    const std::size_t length = std::min(block.bytes, marked);
    if (!std::all_of(begin, begin + length, is_marked)) end(Outcome::lost);
    const auto* const last = begin + block.bytes;
    if (!std::all_of(last - length, last, is_marked)) end(Outcome::lost);
}

void Model::reallocate() {
    const auto [at, block] = *any();
    const std::size_t bytes = size();
    const std::size_t kept = std::min({block.bytes, bytes, marked});
    void* const p = pool_.reallocate(reinterpret_cast<void*>(at), block.bytes, bytes);
    const auto* const begin = static_cast<const unsigned char*>(p);
    if (!std::all_of(begin, begin + kept, [&](auto byte) { return byte == block.mark; })) {
        end(Outcome::lost);
    }
    blocks_.erase(at);
    add(p, bytes);
}

void Model::free_any() {
    const auto found = any();
    const auto [at, block] = *found;
    check(at, block);
    blocks_.erase(found);
    void* const p = reinterpret_cast<void*>(at);
    if (number_below(2) == 0) {
        pool_.deallocate(p);
    } else {
        pool_.deallocate(p, block.bytes);
    }
}

}  // namespace tensorpool::tamper
