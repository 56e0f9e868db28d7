#include "rest/slab.hpp"

#include <algorithm>
#include <cstring>

#include <tensorpool/stash.hpp>

namespace tensorpool::stashing {
namespace {

void settle(SpillStore& store, std::span<const Slab> slabs, const std::string& tensor) {
    for (const Slab& slab : slabs) {
        if (const auto problem = store.settle(slab.position, slab.bytes))
            throw StashError(tensor, StashError::no_piece, problem.text);
    }
}

}  // namespace

SlabWriter::SlabWriter(MemoryPool& pool, MemoryPool& work_pool, SpillStore* store,
                       std::size_t max_bytes, const std::string& tensor)
    : pool_(pool),
      store_(store),
      tensor_(tensor),
      buffer_(work_pool, std::min(max_bytes, slab_bytes)) {}

SlabWriter::~SlabWriter() {
    if (store_ != nullptr) store_->free(slabs_);
}

std::span<std::byte> SlabWriter::room(std::size_t bytes) {
    if (current_.bytes + bytes > buffer_.size()) store_slab();
    return buffer_.as<std::byte>().subspan(current_.bytes);
}

void SlabWriter::take(std::size_t bytes) noexcept {
    current_.bytes += bytes;
    ++current_.pieces;
}

void SlabWriter::spill_to(SpillStore& store) {
    slabs_ = copy_to_file(slabs_, store, tensor_);
    store_ = &store;
}

std::vector<Slab> SlabWriter::finish() {
    if (current_.pieces != 0) store_slab();
    if (store_ != nullptr) settle(*store_, slabs_, tensor_);
    return std::exchange(slabs_, {});
}

void SlabWriter::store_slab() {
    const auto filled = buffer_.as<std::byte>().first(current_.bytes);
    slabs_.emplace_back();
    try {
        if (store_ != nullptr) {
            if (const auto problem = store_->write(filled, current_.position))
                throw StashError(tensor_, StashError::no_piece, problem.text);
        } else {
            // A block of just this size: the rest of the buffer would take memory as well.
            current_.memory = PooledAllocation(pool_, filled.size());
            std::memcpy(current_.memory.get(), filled.data(), filled.size());
        }
    } catch (...) {
        slabs_.pop_back();
        throw;
    }
    slabs_.back() = std::exchange(current_, {});
}

std::vector<Slab> copy_to_file(std::span<const Slab> slabs, SpillStore& store,
                               const std::string& tensor) {
    std::vector<Slab> copies;
    copies.reserve(slabs.size());
    try {
        for (const Slab& slab : slabs) {
            Slab copy;
            copy.bytes = slab.bytes;
            copy.pieces = slab.pieces;
            const auto bytes = slab.memory.as<const std::byte>().first(slab.bytes);
            if (const auto problem = store.write(bytes, copy.position))
                throw StashError(tensor, StashError::no_piece, problem.text);
            copies.push_back(std::move(copy));
        }
        settle(store, copies, tensor);
    } catch (...) {
        store.free(copies);
        throw;
    }
    return copies;
}

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
