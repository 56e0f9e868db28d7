#pragma once

#include <bit>

#include "rest/pieces/piece_codec.hpp"
#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

/// Returns the process's pool "stash", from which compressed content is allocated unless the
/// options name another one. Throws AllocationError.
inline MemoryPool& store_pool() {
    static constinit std::atomic<MemoryPool*> pool = nullptr;
    return made_once(pool, PoolOptions{.name = "stash"});
}

/// Returns the bytes of a pool's memory that a block takes; 0 for none.
inline std::size_t usable_bytes(const PooledAllocation& block) noexcept {
    if (!block) return 0;
    return static_cast<MemoryPool*>(block.held().owner.pool())->usable_size(block.get());
}

/// Memory to work in for a while: of a pool, or of the system where the pool has no room. So what
/// rests can be read, and moved to a file, however full the pool is.
class WorkMemory {
public:
    /// Throws AllocationError if the system has no memory either.
    WorkMemory(MemoryPool& pool, std::size_t bytes)
        : block_(HeldBlock{pool.try_allocate(bytes), bytes, BlockOwner::of_pool(&pool, 64)}) {
        if (block_ || bytes == 0) return;
        mapped_bytes_ = platform::whole_pages(bytes);
        mapped_ = platform::map(mapped_bytes_, platform::page_bytes());
        if (mapped_ != nullptr) return;
        throw AllocationError("memory to work in", bytes, 0, 0, "what the system provides", 0);
    }
    WorkMemory(const WorkMemory&) = delete;
    WorkMemory& operator=(const WorkMemory&) = delete;
    ~WorkMemory() {
        if (mapped_ != nullptr) platform::unmap(mapped_, mapped_bytes_);
    }

    std::span<std::byte> bytes() const noexcept {
        if (mapped_ == nullptr) return block_.as<std::byte>();
        return {static_cast<std::byte*>(mapped_), block_.size()};
    }

private:
    PooledAllocation block_;
    void* mapped_ = nullptr;
    std::size_t mapped_bytes_ = 0;
};

/// The bytes that are written at once, at most.
inline constexpr std::size_t slab_bytes = std::size_t{1} << 20;

/// Bytes that rest in blocks of a pool or in a file. In memory, blocks of powers of two hold them;
/// the last up to 63 bytes lie in the object, unless there are no others. One thread at a time may
/// use it; several may read it.
class EncodedBytes {
public:
    /// Holds nothing. `store` is nullptr if what is added goes to blocks of `pool`.
    EncodedBytes(MemoryPool& pool, std::shared_ptr<SpillStore> store) noexcept
        : pool_(&pool), store_(std::move(store)) {}
    EncodedBytes(EncodedBytes&& other) noexcept : EncodedBytes(*other.pool_, nullptr) {
        *this = std::move(other);
    }
    EncodedBytes& operator=(EncodedBytes&& other) noexcept {
        slabs_.swap(other.slabs_);
        store_.swap(other.store_);
        std::swap(pool_, other.pool_);
        std::swap(tail_bytes_, other.tail_bytes_);
        std::swap(tail_, other.tail_);
        return *this;
    }
    /// Frees blocks, and gives space in files back.
    ~EncodedBytes() {
        free_blocks_from(0);
        if (store_ != nullptr) store_->free(slabs_);
    }

    /// Adds bytes behind those that it holds: `slab_bytes` bytes, or fewer by the last call. Throws
    /// AllocationError, or StashError for `tensor`; it then holds what it held before.
    void add(std::span<const std::byte> bytes, const std::string& tensor) {
        if (store_ == nullptr) return add_to_memory(bytes);
        slabs_.push_back({.bytes = bytes.size()});
        const platform::FileProblem problem = store_->write(bytes, slabs_.back().position);
        if (problem) slabs_.pop_back();
        store_->check(problem, tensor);
    }
    /// Waits until all that was added to a file is on the disk. Throws StashError for `tensor`.
    void settle(const std::string& tensor) const {
        if (store_ == nullptr) return;
        for (const Slab& slab : slabs_)
            store_->check(store_->settle(slab.position, slab.bytes), tensor);
    }
    /// Returns a copy in a file. Works in memory of `work_pool`. Throws AllocationError, or
    /// StashError for `tensor`. REQUIRES: it is in memory.
    EncodedBytes copy_in(std::shared_ptr<SpillStore> store, MemoryPool& work_pool,
                         const std::string& tensor) const {
        EncodedBytes copy(*pool_, std::move(store));
        const auto small =
            std::ranges::find_if(slabs_, [](const Slab& slab) { return slab.bytes != slab_bytes; });
        for (auto slab = slabs_.begin(); slab != small; ++slab)
            copy.add({slab->memory, slab->bytes}, tensor);
        std::size_t left = tail_bytes_;
        for (auto slab = small; slab != slabs_.end(); ++slab) left += slab->bytes;
        if (left != 0) {
            const WorkMemory joined(work_pool, left);
            std::byte* next = joined.bytes().data();
            for (auto slab = small; slab != slabs_.end(); ++slab)
                next = std::copy_n(slab->memory, slab->bytes, next);
            std::copy_n(tail_.data(), tail_bytes_, next);
            copy.add(joined.bytes(), tensor);
        }
        copy.settle(tensor);
        return copy;
    }

    /// Returns nullptr if it is in memory.
    const std::shared_ptr<SpillStore>& store() const noexcept { return store_; }
    std::span<const Slab> slabs() const noexcept { return slabs_; }
    /// Returns the bytes behind those of the slabs.
    std::span<const std::byte> tail() const noexcept { return {tail_.data(), tail_bytes_}; }
    std::size_t size() const noexcept { return tail_bytes_ + bytes_of_slabs(); }
    /// Returns what the blocks take.
    std::size_t bytes_in_memory() const noexcept {
        if (store_ != nullptr) return 0;
        return slabs_.size() == 1 ? pool_->usable_size(slabs_[0].memory) : bytes_of_slabs();
    }
    std::size_t bytes_in_file() const noexcept { return store_ == nullptr ? 0 : bytes_of_slabs(); }

private:
    void add_to_memory(std::span<const std::byte> bytes) {
        const std::size_t before = slabs_.size();
        const auto wanted = before + static_cast<std::size_t>(std::popcount(bytes.size()));
        if (wanted > slabs_.capacity()) slabs_.reserve(std::max(wanted, 2 * before));
        try {
            while (bytes.size() >= detail::smallest_block_bytes)
                bytes = bytes.subspan(add_block(bytes.first(std::bit_floor(bytes.size()))));
            if (slabs_.empty()) bytes = bytes.subspan(add_block(bytes));
        } catch (...) {
            free_blocks_from(before);
            slabs_.resize(before);
            throw;
        }
        tail_bytes_ = bytes.size();
        std::ranges::copy(bytes, tail_.begin());
    }
    std::size_t add_block(std::span<const std::byte> bytes) {
        const auto block = static_cast<std::byte*>(pool_->allocate(bytes.size()));
        slabs_.push_back({.memory = block, .bytes = bytes.size()});
        std::memcpy(block, bytes.data(), bytes.size());
        return bytes.size();
    }
    void free_blocks_from(std::size_t first) noexcept {
        if (store_ != nullptr) return;
        for (const Slab& slab : std::span(slabs_).subspan(first))
            pool_->deallocate(slab.memory, slab.bytes);
    }
    std::size_t bytes_of_slabs() const noexcept {
        std::size_t bytes = 0;
        for (const Slab& slab : slabs_) bytes += slab.bytes;
        return bytes;
    }

    MemoryPool* pool_;
    std::shared_ptr<SpillStore> store_;
    std::vector<Slab> slabs_;
    std::size_t tail_bytes_ = 0;
    std::array<std::byte, detail::smallest_block_bytes> tail_ = {};
};

/// The length of its encoding stands before each piece.
using PieceLength = std::uint32_t;

/// Adds encoded pieces to EncodedBytes, in whole slabs.
class EncodedWriter {
public:
    /// Its buffer is memory of `work_pool`. There are `pieces` pieces, whose encodings have at most
    /// `max_bytes` bytes each. Throws AllocationError.
    EncodedWriter(EncodedBytes& to, MemoryPool& work_pool, std::size_t pieces,
                  std::size_t max_bytes, const std::string& tensor)
        : to_(to),
          tensor_(tensor),
          buffer_(work_pool, std::min(pieces * (sizeof(PieceLength) + max_bytes),
                                      slab_bytes + sizeof(PieceLength) + max_bytes)) {}

    /// Returns room for the encoding of the next piece. Throws what `EncodedBytes::add` does, and
    /// may be called again then.
    std::span<std::byte> room() {
        if (filled_ >= slab_bytes) {
            const auto bytes = buffer_.bytes().first(filled_);
            to_.add(bytes.first(slab_bytes), tensor_);
            filled_ -= slab_bytes;
            std::memmove(bytes.data(), bytes.data() + slab_bytes, filled_);
        }
        return buffer_.bytes().subspan(filled_ + sizeof(PieceLength));
    }
    /// Takes the first `bytes` bytes of the room as the encoding of a piece.
    void take(std::size_t bytes) noexcept {
        const auto length = static_cast<PieceLength>(bytes);
        std::memcpy(buffer_.bytes().data() + filled_, &length, sizeof length);
        filled_ += sizeof length + bytes;
    }
    /// Adds what is left in the buffer. Throws what `room` does, and may be called again then.
    void finish() {
        if (filled_ > slab_bytes) (void)room();
        to_.add(buffer_.bytes().first(filled_), tensor_);
    }

private:
    EncodedBytes& to_;
    const std::string& tensor_;
    WorkMemory buffer_;
    std::size_t filled_ = 0;
};

/// Returns encoded pieces one after another.
class EncodedReader {
public:
    /// Reads `from` the disk or its cache if the bytes are in a file. `max_bytes` are those of the
    /// longest encoding. Throws AllocationError.
    EncodedReader(const EncodedBytes& encoded, MemoryPool& work_pool, platform::ReadFrom from,
                  std::size_t max_bytes, const std::string& tensor)
        : encoded_(encoded),
          tensor_(tensor),
          from_(from),
          left_(encoded.size()),
          buffer_(work_pool, encoded.store() == nullptr ? 0 : std::min(left_, slab_bytes)),
          joined_(work_pool, std::min(left_, max_bytes)) {}

    /// Returns the encoding of the next piece, which is valid until the next call; fewer bytes than
    /// its length says if that is damaged. Throws StashError if the file cannot be read.
    std::span<const std::byte> next() {
        PieceLength length = 0;
        const std::span<const std::byte> bytes = take(sizeof length);
        std::memcpy(&length, bytes.data(), bytes.size());
        return take(length);
    }

private:
    std::span<const std::byte> take(std::size_t bytes) {
        bytes = std::min({bytes, left_, joined_.bytes().size()});
        left_ -= bytes;
        if (here_.empty() && bytes != 0) load();
        if (here_.size() >= bytes) return take_here(bytes);
        for (std::size_t taken = 0; taken != bytes;) {
            if (here_.empty()) load();
            const auto part = take_here(std::min(bytes - taken, here_.size()));
            std::ranges::copy(part, joined_.bytes().data() + taken);
            taken += part.size();
        }
        return joined_.bytes().first(bytes);
    }
    std::span<const std::byte> take_here(std::size_t bytes) noexcept {
        const auto taken = here_.first(bytes);
        here_ = here_.subspan(bytes);
        return taken;
    }
    void load() {
        if (next_ == encoded_.slabs().size()) {
            here_ = encoded_.tail();
            return;
        }
        const Slab& slab = encoded_.slabs()[next_++];
        here_ = {slab.memory, slab.bytes};
        if (slab.memory != nullptr) return;
        const SpillStore& store = *encoded_.store();
        const auto bytes = buffer_.bytes().first(slab.bytes);
        store.check(store.read(slab.position, bytes, from_), tensor_);
        here_ = bytes;
    }

    const EncodedBytes& encoded_;
    const std::string& tensor_;
    const platform::ReadFrom from_;
    std::size_t left_;
    std::size_t next_ = 0;
    std::span<const std::byte> here_;
    WorkMemory buffer_;
    WorkMemory joined_;
};

}  // namespace tensorpool::stashing
