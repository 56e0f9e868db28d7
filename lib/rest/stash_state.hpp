#pragma once

#include <tensorpool/pooled_array.hpp>

#include "rest/pieces/piece_codec.hpp"
#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

/// A workspace in memory of a pool, if it has any.
class PooledWorkspace {
public:
    /// Throws AllocationError.
    PooledWorkspace(MemoryPool& pool, std::size_t piece_bytes)
        : memory_(pool, PieceWorkspace::bytes_for(piece_bytes)),
          workspace_(memory_.bytes(), piece_bytes) {}

    PieceWorkspace& get() noexcept { return workspace_; }

private:
    WorkMemory memory_;
    PieceWorkspace workspace_;
};

/// Returns a block for callers that write all of it. Throws AllocationError.
inline PooledAllocation restored_block(MemoryPool& pool, std::size_t bytes, std::size_t alignment) {
    if (alignment > 64) return PooledAllocation(pool, bytes, alignment);
    void* const address = pool.allocate_prefaulted(bytes);
    return PooledAllocation(HeldBlock{address, bytes, BlockOwner::of_pool(&pool, alignment)});
}

/// With `by_cost`, content that does not shrink to this part goes to a file: reading it back takes
/// longer than decoding, which must gain memory for it.
inline constexpr double worth_its_memory = 0.75;

inline std::size_t count_pieces(std::size_t bytes) noexcept {
    return bytes / default_piece_bytes + (bytes % default_piece_bytes != 0 ? 1 : 0);
}

inline StashOptions checked(StashOptions options) {
    if (options.method > StashMethod::by_cost) {
        throw std::invalid_argument("tensorpool: stash '" + options.name + "': method is " +
                                    std::to_string(static_cast<unsigned>(options.method)) +
                                    ", expected compress, spill or by_cost");
    }
    if (options.method != StashMethod::compress && options.folder.empty()) {
        throw std::invalid_argument("tensorpool: stash '" + options.name +
                                    "': no folder is given, expected one to spill to");
    }
    return options;
}

inline constexpr std::size_t max_estimate_samples = 4;

/// Smaller than the pieces of a stash: tensors of 1 MiB would take a fourth longer to encode.
inline constexpr std::size_t max_estimate_bytes = default_piece_bytes / 4;

/// Returns which part of the bytes their encoding takes, by encoding a few pieces of them. 0 for no
/// bytes. Throws AllocationError if `pool` has no memory for that.
inline double estimate_ratio(std::span<const std::byte> bytes, const DataType& type,
                             MemoryPool& pool) {
    if (bytes.empty()) return 0;
    const std::size_t piece_bytes = std::min(bytes.size(), max_estimate_bytes);
    PooledWorkspace workspace(pool, piece_bytes);
    const WorkMemory out(pool, max_encoded_bytes(piece_bytes));
    // Whole pieces, which begin with whole elements, from the first to the last.
    const std::size_t pieces = bytes.size() / piece_bytes;
    const std::size_t samples = std::min(max_estimate_samples, pieces);
    std::size_t encoded = 0;
    for (std::size_t i = 0; i < samples; ++i) {
        const std::size_t number = samples == 1 ? 0 : i * (pieces - 1) / (samples - 1);
        encoded += encode_piece(bytes.subspan(number * piece_bytes, piece_bytes), type, out.bytes(),
                                workspace.get());
    }
    return static_cast<double>(encoded) / static_cast<double>(samples * piece_bytes);
}

/// The content of a stash: the slabs that hold its encoded pieces, and the size of each encoding.
class StashState {
public:
    /// Where the content came from, and returns to by default.
    struct Origin {
        MemoryPool* pool = nullptr;
        std::size_t alignment = 64;
    };

    /// Encodes the bytes. Throws what the constructor of Stash does for the options, for memory and
    /// for the disk; nothing is then left behind. `work_pool` has the memory that encoding and
    /// decoding need meanwhile; nullptr: the pool of the options.
    StashState(std::span<const std::byte> bytes, const Origin& origin, StashOptions options,
               MemoryPool* work_pool = nullptr)
        : options_(checked(std::move(options))),
          pool_(options_.pool != nullptr ? *options_.pool : store_pool()),
          work_pool_(work_pool != nullptr ? *work_pool : pool_),
          origin_(origin),
          size_(bytes.size()),
          encoded_bytes_(table_for(bytes.size())) {
        if (is_to_spill(bytes)) store_ = SpillStore::of_folder(options_.folder, options_.name);
        if (!bytes.empty()) encode(bytes);
    }
    /// Gives space in files back. Blocks return to their pool by themselves.
    ~StashState() {
        if (store_ != nullptr) store_->free(slabs_);
    }
    StashState& operator=(const StashState&) = delete;

    /// Decodes all pieces into memory of `size()` bytes. Throws StashError for damage and for
    /// errors of the file, and AllocationError; the content stays.
    void decode_to(std::span<std::byte> memory) const {
        if (memory.empty()) return;
        PooledWorkspace workspace(work_pool_, std::min(memory.size(), default_piece_bytes));
        // With several slabs, the system reads ahead while one is decoded, which is faster by a
        // fifth. A single slab is read faster without the cache, which would need memory when there
        // is the least.
        const bool is_cached = slabs_.size() > 1 || was_read_ahead_.load(std::memory_order_relaxed);
        const auto from = is_cached ? platform::ReadFrom::page_cache : platform::ReadFrom::disk;
        SlabReader reader(work_pool_, store_.get(), from, slabs_, options_.name);
        std::size_t number = 0;
        for (const Slab& slab : slabs_) {
            std::span<const std::byte> encodings = reader.next();
            for (std::size_t i = 0; i < slab.pieces; ++i, ++number) {
                const std::size_t at = number * default_piece_bytes;
                const auto piece = memory.subspan(at, std::min(default_piece_bytes, size_ - at));
                const std::size_t bytes = encoded_bytes_[number];
                if (bytes > encodings.size() ||
                    !decode_piece(encodings.first(bytes), piece, workspace.get())) {
                    throw StashError(
                        options_.name, number,
                        "found " + std::to_string(bytes) + " damaged bytes in " +
                            (store_ == nullptr ? "memory" : "the file in " + options_.folder) +
                            ", expected the encoding of " + std::to_string(piece.size()) +
                            " bytes, from byte " + std::to_string(at) + ", with their checksum");
                }
                encodings = encodings.subspan(bytes);
            }
        }
    }
    /// Lets the system read what is in a file into its cache, from where it is then decoded.
    void read_ahead() const noexcept {
        if (store_ == nullptr) return;
        was_read_ahead_.store(true, std::memory_order_relaxed);
        for (const Slab& slab : slabs_) store_->read_ahead(slab.position, slab.bytes);
    }
    /// Returns a copy in a file in the folder of the options. Copies the encodings as they are.
    /// Throws StashError or AllocationError. REQUIRES: the content is in memory, and there is a
    /// folder.
    std::unique_ptr<StashState> copy_in_file() const {
        return std::unique_ptr<StashState>(new StashState(*this));
    }

    const Origin& origin() const noexcept { return origin_; }
    const std::string& name() const noexcept { return options_.name; }
    std::size_t size() const noexcept { return size_; }
    std::size_t bytes_in_memory() const noexcept {
        std::size_t bytes = 0;
        for (const Slab& slab : slabs_) bytes += usable_bytes(slab.memory);
        return bytes + usable_bytes(encoded_bytes_.allocation());
    }
    std::size_t bytes_in_file() const noexcept {
        std::size_t bytes = 0;
        for (const Slab& slab : slabs_)
            if (!slab.memory) bytes += slab.bytes;
        return bytes;
    }
    /// The slabs, for tests that damage them.
    std::span<Slab> slabs() noexcept { return slabs_; }

private:
    explicit StashState(const StashState& in_memory)
        : options_(in_memory.options_),
          pool_(in_memory.pool_),
          work_pool_(in_memory.work_pool_),
          origin_(in_memory.origin_),
          size_(in_memory.size_),
          encoded_bytes_(table_for(size_)),
          store_(SpillStore::of_folder(options_.folder, options_.name)) {
        std::ranges::copy(in_memory.encoded_bytes_, encoded_bytes_.begin());
        slabs_ = copy_to_file(in_memory.slabs_, *store_, options_.name);
    }
    void encode(std::span<const std::byte> bytes) {
        PooledWorkspace workspace(work_pool_, std::min(bytes.size(), default_piece_bytes));
        const std::size_t max_bytes =
            max_encoded_bytes(std::min(bytes.size(), default_piece_bytes));
        SlabWriter writer(
            pool_, work_pool_, store_.get(),
            bytes.size() < slab_bytes ? encoded_bytes_.size() * max_bytes : slab_bytes,
            options_.name);
        // What was encoded before the memory was used up is not encoded again.
        const auto or_in_a_file = [&](auto store) {
            try {
                return store();
            } catch (const AllocationError&) {
                if (options_.method != StashMethod::by_cost || store_ != nullptr) throw;
            }
            store_ = SpillStore::of_folder(options_.folder, options_.name);
            writer.spill_to(*store_);
            return store();
        };
        for (std::size_t i = 0; i < encoded_bytes_.size(); ++i) {
            const std::size_t at = i * default_piece_bytes;
            const auto piece = bytes.subspan(at, std::min(default_piece_bytes, bytes.size() - at));
            const std::span<std::byte> room = or_in_a_file([&] { return writer.room(max_bytes); });
            const std::size_t taken = encode_piece(piece, options_.type, room, workspace.get());
            encoded_bytes_[i] = static_cast<std::uint32_t>(taken);
            writer.take(taken);
        }
        slabs_ = or_in_a_file([&] { return writer.finish(); });
    }
    /// Of the process's pool "stash" where that of the options is full and content may go to a
    /// file.
    PooledArray<std::uint32_t> table_for(std::size_t bytes) const {
        try {
            return PooledArray<std::uint32_t>(pool_, count_pieces(bytes));
        } catch (const AllocationError&) {
            if (options_.folder.empty()) throw;
            return PooledArray<std::uint32_t>(store_pool(), count_pieces(bytes));
        }
    }
    bool is_to_spill(std::span<const std::byte> bytes) const {
        if (options_.method != StashMethod::by_cost) return options_.method == StashMethod::spill;
        return estimate_ratio(bytes, options_.type, work_pool_) > worth_its_memory;
    }

    StashOptions options_;
    MemoryPool& pool_;
    MemoryPool& work_pool_;
    Origin origin_;
    std::size_t size_;
    PooledArray<std::uint32_t> encoded_bytes_;  // of each piece
    std::shared_ptr<SpillStore> store_;         // nullptr if the content is in memory
    std::vector<Slab> slabs_;
    mutable std::atomic<bool> was_read_ahead_ = false;  // relaxed: a hint
};

}  // namespace tensorpool::stashing
