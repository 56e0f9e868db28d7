#pragma once

#include <cstddef>

namespace tensorpool::pages {

/// The owner of memory that a pool lent to an upper layer, which hands out blocks of it: the memory
/// of a plan. Its pages have the kind `served`, and their entries in the page map refer to an
/// object of this class, so that the functions of the pools find the owner of a block. The object
/// lives as long as the entries.
class alignas(64) ServedMemory {
public:
    struct Block {
        const void* begin = nullptr;  // nullptr: there is no block in use
        std::size_t bytes = 0;
    };
    /// Returns the block in use that contains `p`, an address of this memory. Takes no lock.
    virtual Block find(const void* p) const noexcept = 0;
    /// Returns the bytes of the block in use that begins at `p`, or 0 if there is none. Takes no
    /// lock and makes no search.
    virtual std::size_t block_bytes(const void* p) const noexcept = 0;
    /// Frees the block in use that begins at `p`. Returns false, and does nothing, if there is
    /// none. Otherwise, the memory may be released as soon as the block is free. Any thread.
    virtual bool deallocate(void* p) noexcept = 0;

protected:
    ~ServedMemory() = default;
};

}  // namespace tensorpool::pages
