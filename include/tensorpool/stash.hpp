#pragma once

/// @file
/// A tensor's memory at rest: its content is compressed or moved to a file, and comes back when it
/// is restored. All sizes are bytes.

#include <tensorpool/data_type.hpp>
#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

namespace stashing {
class CountedStash;
}  // namespace stashing

/// Where the content of a stash rests.
enum class StashMethod : std::uint8_t {
    /// Compressed, in memory.
    compress,
    /// Compressed, in a file. The file has no name, is readable by this user only, and is gone when
    /// the process ends, however it ends. Its bytes are **not encrypted**.
    spill,
    /// In memory if a sample shrinks to three quarters or less and the pool has room, otherwise in
    /// a file.
    by_cost,
};

/// The options of a stash.
struct StashOptions {
    /// The name of the tensor in messages.
    std::string name = "unnamed";
    /// The type of its elements, which selects how it is compressed. Any type restores any bytes
    /// exactly; with no type, the elements are bytes.
    DataType type = {};
    /// Where the content rests.
    StashMethod method = StashMethod::compress;
    /// The folder for files, on a disk. Required by all methods but `compress`.
    std::string folder = {};
    /// The pool that the compressed bytes are allocated from, which must outlive the stash.
    /// nullptr: the process's pool "stash".
    MemoryPool* pool = nullptr;
};

/// A tensor could not be stashed or restored: a file could not be written or read, or what rests is
/// damaged. The memory that was to be stashed, or the stash, is unchanged.
class TENSORPOOL_API StashError : public std::runtime_error {
public:
    /// The piece of an error that concerns no piece.
    static constexpr std::size_t no_piece = SIZE_MAX;

    /// Makes the error from the tensor's name, the number of the piece, and what was found and
    /// expected.
    StashError(const std::string& tensor, std::size_t piece, const std::string& problem);
    /// Returns the tensor's name.
    const std::string& tensor() const noexcept { return tensor_; }
    /// Returns the number of the piece, from 0; `no_piece` if the error concerns none.
    std::size_t piece() const noexcept { return piece_; }

private:
    std::string tensor_;
    std::size_t piece_;
};

/// Owns the content of a tensor whose memory was freed. Move-only. One thread at a time may use a
/// stash, and any number of threads may use different ones.
///
/// The content is divided into pieces of 64 KiB. Each has a checksum of its bytes (XXH3, 64 bits):
/// a damaged piece is an error when it is restored, never wrong data.
///
/// After a fork, parent and child both have the stashes that existed, and either may restore them.
/// A stash that another thread was making, restoring or destroying during the fork is lost to the
/// child. Neither process changes a file that existed at the fork: what they spill later goes to
/// another one, and the old one takes disk space until both processes have restored or destroyed
/// all that is in it.
class TENSORPOOL_API Stash {
public:
    /// Makes a stash that holds nothing.
    Stash() noexcept;
    /// Takes the content of a block of a pool and frees the block. The handle may own nothing: the
    /// stash then holds 0 bytes.
    ///
    /// If this fails, the handle still owns its block, whose content is unchanged. Throws
    /// std::invalid_argument for a block of another source than a pool, and for a method without
    /// the folder that it needs; AllocationError if there is no memory for what is compressed; and
    /// StashError if the folder cannot be used (such as one on tmpfs, which is memory) or the disk
    /// is full. Needs memory for the compressed content beside the block until it returns, and up
    /// to 2 MiB to work in, which the system provides where the pool is full.
    explicit Stash(PooledAllocation&& allocation, StashOptions options = {});
    /// Makes a stash of a copy of the caller's memory, for content that is in no block of a pool.
    /// `restore()` returns it in a block of the global pool.
    ///
    /// Throws what the constructor from a block does. Allocates only what is compressed.
    explicit Stash(std::span<const std::byte> content, StashOptions options = {});
    /// Drops the content.
    ~Stash();
    /// Takes the content of `other`, which then holds nothing.
    Stash(Stash&& other) noexcept;
    /// Drops the content and takes that of `other`, which then holds nothing.
    Stash& operator=(Stash&& other) noexcept;
    Stash(const Stash&) = delete;
    Stash& operator=(const Stash&) = delete;

    /// Returns the content in a block of the pool that it came from, which must still exist, with
    /// the same alignment. The stash then holds nothing.
    ///
    /// If this fails, the stash keeps its content. Throws AllocationError if the pool refuses,
    /// StashError for damage and for errors of the file, and std::logic_error if the stash holds
    /// nothing.
    PooledAllocation restore();
    /// Returns the content in a block of `pool`, with the alignment of the block that it came from.
    /// The stash then holds nothing.
    ///
    /// If this fails, the stash keeps its content. Throws AllocationError if the pool refuses,
    /// StashError for damage and for errors of the file, and std::logic_error if the stash holds
    /// nothing.
    PooledAllocation restore(MemoryPool& pool);
    /// Writes the content to memory of the caller, which must have exactly `size()` bytes. The
    /// stash then holds nothing.
    ///
    /// If this fails, the stash keeps its content, and that of the memory is undefined. Throws
    /// std::invalid_argument for another size, StashError for damage and for errors of the file,
    /// AllocationError if there is no memory to decode with (2 MiB suffice), and std::logic_error
    /// if the stash holds nothing.
    void restore_to(std::span<std::byte> memory);
    /// Requests that the system reads spilled content into its page cache, so that a restore soon
    /// after need not wait for the disk. Returns at once and starts no thread. Does nothing for
    /// content in memory.
    void prefetch() const noexcept;

    /// Returns whether the stash holds content, which may be 0 bytes.
    explicit operator bool() const noexcept { return state_ != nullptr; }
    /// Returns the name from the options; "" if the stash holds nothing.
    const std::string& name() const noexcept;
    /// Returns the bytes of the tensor; 0 if the stash holds nothing.
    std::size_t size() const noexcept;
    /// Returns the bytes that the content takes at rest: blocks of the pool, and bytes in a file.
    /// Blocks take at most the compressed size, or 64 bytes if that is less.
    std::size_t bytes_at_rest() const noexcept;
    /// Returns how many of `bytes_at_rest()` are in a file.
    std::size_t bytes_spilled() const noexcept;

private:
    std::unique_ptr<stashing::CountedStash> state_;
};

/// Takes the content of a block of a pool and frees the block. Returns what its constructor does:
/// see Stash. If this fails, the handle still owns its block.
inline Stash stash(PooledAllocation&& allocation, StashOptions options = {}) {
    return Stash(std::move(allocation), std::move(options));
}

}  // namespace tensorpool
