#include "rest/slab_reader.hpp"

#include <algorithm>

#include <tensorpool/stash.hpp>

namespace tensorpool::stashing {

SlabReader::SlabReader(MemoryPool& pool, const SpillStore* store, platform::ReadFrom from,
                       std::span<const Slab> slabs, const std::string& tensor)
    : store_(store), from_(from), left_(slabs), tensor_(tensor) {
    if (store == nullptr) return;
    buffer_ = PooledAllocation(pool, std::ranges::max_element(slabs, {}, &Slab::bytes)->bytes);
}

std::span<const std::byte> SlabReader::next() {
    const Slab& slab = left_.front();
    left_ = left_.subspan(1);
    if (store_ == nullptr) return slab.memory.as<const std::byte>();
    const auto bytes = buffer_.as<std::byte>().first(slab.bytes);
    if (const auto problem = store_->read(slab.position, bytes, from_))
        throw StashError(tensor_, StashError::no_piece, problem.text);
    return bytes;
}

}  // namespace tensorpool::stashing
