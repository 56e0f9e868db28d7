#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "stress/devices/subject.hpp"

// Allocators that change a program's calls, and note their actions to the device as an allocator
// with such a fault would.

namespace tensorpool::stress::devices {

/// Frequent enough for a short run, and rare enough that much succeeds before.
inline constexpr unsigned requests_per_fault = 7;

struct ForgetsUses : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void record_use(void*, StreamHandle) override {}
};

/// Records only the first use of each block.
struct RemembersOneUse : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void record_use(void* block, StreamHandle stream) override {
        if (used_.insert(block).second) inner().record_use(block, stream);
    }
    void deallocate(void* block) override {
        used_.erase(block);
        inner().deallocate(block);
    }

private:
    std::set<void*> used_;
};

struct RecordsUsesForTheDefaultStream : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void record_use(void* block, StreamHandle) override { inner().record_use(block, nullptr); }
};

/// Allocates every block for the default stream.
struct AllocatesForTheDefaultStream : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle) override {
        return inner().allocate(bytes, nullptr);
    }
};

/// Returns a block that is already in use.
struct HandsOutTwice : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        if (last_ != nullptr && inner().usable_size(last_) >= bytes &&
            ++calls_ % requests_per_fault == 0) {
            ++given_again_[last_];
            note(BlockNote::Kind::allocated, last_, inner().usable_size(last_), stream);
            return last_;
        }
        return last_ = inner().allocate(bytes, stream);
    }
    void deallocate(void* block) override {
        const auto again = given_again_.find(block);
        if (again != given_again_.end() && again->second-- != 0) return;
        if (block == last_) last_ = nullptr;
        inner().deallocate(block);
    }

private:
    unsigned calls_ = 0;
    void* last_ = nullptr;
    std::map<void*, unsigned> given_again_;
};

/// Frees a block just after returning it.
struct FreesEarly : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        void* const block = inner().allocate(bytes, stream);
        if (block == nullptr || ++calls_ % requests_per_fault != 0) return block;
        freed_[block] = inner().usable_size(block);
        inner().deallocate(block);
        return block;
    }
    void deallocate(void* block) override {
        if (freed_.erase(block) == 0) inner().deallocate(block);
    }
    void record_use(void* block, StreamHandle stream) override {
        if (!freed_.contains(block)) inner().record_use(block, stream);
    }
    std::size_t usable_size(const void* block) const override {
        const auto freed = freed_.find(const_cast<void*>(block));
        return freed != freed_.end() ? freed->second : inner().usable_size(block);
    }

protected:
    std::map<void*, std::size_t> freed_;

private:
    unsigned calls_ = 0;
};

/// Frees the last block that it returned when `trim` is called.
struct TrimsBlocksInUse : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        return last_ = inner().allocate(bytes, stream);
    }
    std::size_t trim() override {
        if (last_ != nullptr) {
            inner().deallocate(last_);
            freed_.insert(std::exchange(last_, nullptr));
        }
        return inner().trim();
    }
    void deallocate(void* block) override {
        if (block == last_) last_ = nullptr;
        if (freed_.erase(block) == 0) inner().deallocate(block);
    }
    void record_use(void* block, StreamHandle stream) override {
        if (!freed_.contains(block)) inner().record_use(block, stream);
    }

private:
    void* last_ = nullptr;
    std::set<void*> freed_;
};

struct FreesTwice : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void deallocate(void* block) override {
        const std::size_t bytes = inner().usable_size(block);
        inner().deallocate(block);
        note(BlockNote::Kind::freed, block, bytes, nullptr);
    }
};

/// Returns a block that one stream freed to another without waiting.
struct StealsWithoutWaiting : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        if (kept_ == nullptr || inner().usable_size(kept_) < bytes) {
            return inner().allocate(bytes, stream);
        }
        note(BlockNote::Kind::allocated, kept_, inner().usable_size(kept_), stream);
        return std::exchange(kept_, nullptr);
    }
    void deallocate(void* block) override {
        if (kept_ != nullptr || used_.erase(block) != 0) return inner().deallocate(block);
        note(BlockNote::Kind::freed, block, inner().usable_size(block), nullptr);
        kept_ = block;
    }
    void record_use(void* block, StreamHandle stream) override {
        used_.insert(block);
        inner().record_use(block, stream);
    }

private:
    void* kept_ = nullptr;
    std::set<void*> used_;
};

/// Returns blocks of half the size.
struct HandsOutTooLittle : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        void* const block = inner().allocate((bytes + 1) / 2, stream);
        if (block != nullptr) requested_[block] = bytes;
        return block;
    }
    void deallocate(void* block) override {
        requested_.erase(block);
        inner().deallocate(block);
    }
    std::size_t usable_size(const void* block) const override {
        const auto requested = requested_.find(const_cast<void*>(block));
        return requested != requested_.end() ? requested->second : inner().usable_size(block);
    }

private:
    std::map<void*, std::size_t> requested_;
};

/// Returns addresses inside of blocks.
struct MisplacesBlocks : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void* allocate(std::size_t bytes, StreamHandle stream) override {
        void* const block = inner().allocate(bytes, stream);
        return block != nullptr ? static_cast<std::byte*>(block) + shift : nullptr;
    }
    void deallocate(void* block) override { inner().deallocate(real(block)); }
    void record_use(void* block, StreamHandle stream) override {
        inner().record_use(real(block), stream);
    }
    std::size_t usable_size(const void* block) const override {
        const std::size_t bytes = inner().usable_size(block);
        return bytes != 0 ? bytes
                          : inner().usable_size(static_cast<const std::byte*>(block) - shift);
    }

private:
    static constexpr std::size_t shift = 256;
    void* real(void* block) const {  // scalars, and the allocator's own addresses, are not moved
        return inner().usable_size(block) != 0 ? block : static_cast<std::byte*>(block) - shift;
    }
};

/// Releases a capture's memory while its graph still exists.
struct ReleasesCapturesEarly : ForwardingSubject {
    using ForwardingSubject::ForwardingSubject;
    void capture_ended(std::uint64_t id) override { inner().release_capture(id); }
};

}  // namespace tensorpool::stress::devices
