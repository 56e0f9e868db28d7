#pragma once

#include "rest/encoded_bytes.hpp"

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

/// The content of a stash: its encoded pieces.
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
          encoded_(pool_, is_to_spill(bytes) ? store() : nullptr) {
        if (!bytes.empty()) encode(bytes);
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
        const bool is_cached =
            encoded_.slabs().size() > 1 || was_read_ahead_.load(std::memory_order_relaxed);
        const auto from = is_cached ? platform::ReadFrom::page_cache : platform::ReadFrom::disk;
        EncodedReader reader(encoded_, work_pool_, from, max_bytes_of_piece(), options_.name);
        for (std::size_t at = 0; at < size_; at += default_piece_bytes) {
            const auto piece = memory.subspan(at, std::min(default_piece_bytes, size_ - at));
            const std::span<const std::byte> encoding = reader.next();
            if (decode_piece(encoding, piece, workspace.get())) continue;
            throw StashError(
                options_.name, at / default_piece_bytes,
                "found " + std::to_string(encoding.size()) + " damaged bytes in " +
                    (encoded_.store() == nullptr ? "memory" : "the file in " + options_.folder) +
                    ", expected the encoding of " + std::to_string(piece.size()) +
                    " bytes, from byte " + std::to_string(at) + ", with their checksum");
        }
    }
    /// Lets the system read what is in a file into its cache, from where it is then decoded.
    void read_ahead() const noexcept {
        if (encoded_.store() == nullptr) return;
        was_read_ahead_.store(true, std::memory_order_relaxed);
        for (const Slab& slab : encoded_.slabs())
            encoded_.store()->read_ahead(slab.position, slab.bytes);
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
    const EncodedBytes& encoded() const noexcept { return encoded_; }

private:
    explicit StashState(const StashState& in_memory)
        : options_(in_memory.options_),
          pool_(in_memory.pool_),
          work_pool_(in_memory.work_pool_),
          origin_(in_memory.origin_),
          size_(in_memory.size_),
          encoded_(in_memory.encoded_.copy_in(store(), work_pool_, options_.name)) {}
    void encode(std::span<const std::byte> bytes) {
        PooledWorkspace workspace(work_pool_, std::min(bytes.size(), default_piece_bytes));
        EncodedWriter writer(encoded_, work_pool_, count_pieces(bytes.size()), max_bytes_of_piece(),
                             options_.name);
        // What was encoded before the memory was used up is not encoded again.
        const auto or_in_a_file = [&](auto write) {
            try {
                return write();
            } catch (const AllocationError&) {
                if (options_.method != StashMethod::by_cost || encoded_.store() != nullptr) throw;
            }
            encoded_ = encoded_.copy_in(store(), work_pool_, options_.name);
            return write();
        };
        for (std::size_t at = 0; at < bytes.size(); at += default_piece_bytes) {
            const auto piece = bytes.subspan(at, std::min(default_piece_bytes, bytes.size() - at));
            const std::span<std::byte> room = or_in_a_file([&] { return writer.room(); });
            writer.take(encode_piece(piece, options_.type, room, workspace.get()));
        }
        or_in_a_file([&] { writer.finish(); });
        encoded_.settle(options_.name);
    }
    std::size_t max_bytes_of_piece() const noexcept {
        return max_encoded_bytes(std::min(size_, default_piece_bytes));
    }
    std::shared_ptr<SpillStore> store() const {
        return SpillStore::of_folder(options_.folder, options_.name);
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
    EncodedBytes encoded_;
    mutable std::atomic<bool> was_read_ahead_ = false;  // relaxed: a hint
};

}  // namespace tensorpool::stashing
