#pragma once

#include <algorithm>
#include <new>

#include <tensorpool/detail/counters.hpp>

#include <boost/intrusive/list.hpp>

#include "base/lockable.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

/// The bytes that records hold. Changed under their lock; readers need no order.
class HeldBytes {
public:
    /// From now on, also adds the bytes to this counter, which other objects may share.
    void count_in(detail::Counter& bytes) noexcept { counted_in_ = &bytes; }

protected:
    std::size_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
    /// Adds a number of bytes, modulo 2^64.
    void count_held(std::size_t more_bytes) noexcept {
        held_.fetch_add(more_bytes, std::memory_order_relaxed);
        if (counted_in_ != nullptr) counted_in_->fetch_add(more_bytes, std::memory_order_relaxed);
    }

private:
    std::atomic<std::size_t> held_ = 0;
    detail::Counter* counted_in_ = nullptr;
};

/// Memory for records that live as long as the pool. They are allocated one after another and freed
/// all at once. Thread-safe.
class RecordArena : public base::Lockable, public HeldBytes {
public:
    RecordArena() noexcept = default;
    ~RecordArena() {
        while (chunks_ != nullptr) {
            Chunk* const next = chunks_->next;
            platform::unmap(chunks_, chunks_->bytes);
            chunks_ = next;
        }
    }

    /// Allocates zeroed memory, aligned to `alignment`, which is at most 64. Returns nullptr if the
    /// system has no memory.
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
        const std::lock_guard guard(mutex_);
        std::size_t at = base::align_up(used_, alignment);
        if (chunks_ == nullptr || at + bytes > chunks_->bytes) {
            if (!add_chunk(bytes + 64)) return nullptr;
            at = base::align_up(used_, alignment);
        }
        used_ = at + bytes;
        return reinterpret_cast<std::byte*>(chunks_) + at;
    }
    std::size_t bytes_held() const noexcept { return held(); }

private:
    struct Chunk {
        Chunk* next;
        std::size_t bytes;
    };
    bool add_chunk(std::size_t at_least) noexcept {
        const std::size_t bytes =
            base::align_up(std::max(at_least, chunk_bytes), platform::page_bytes());
        void* const memory = platform::map(bytes, platform::page_bytes());
        if (memory == nullptr) return false;
        chunks_ = new (memory) Chunk{chunks_, bytes};
        used_ = sizeof(Chunk);
        count_held(bytes);
        return true;
    }

    Chunk* chunks_ = nullptr;
    std::size_t used_ = 0;  // bytes of the first chunk, including its head
};

/// Records of one type in slabs of 16 KiB from the system, separate from the memory that callers
/// get. A slab without records is returned if another slab has room. With `keep_slabs`, its pages
/// except the first are dropped instead. Thread-safe.
template <class Record>
class RecordPool : public base::Lockable, public HeldBytes {
public:
    RecordPool() noexcept = default;
    /// Returns all slabs to the system, including those that still contain records.
    ~RecordPool() {
        // Count the dropped pages again, because `unmap_all` subtracts whole slabs.
        count_held(dropped_.size() * droppable_bytes());
        unmap_all(with_room_);
        unmap_all(full_);
        unmap_all(dropped_);
    }

    /// Makes a default-constructed record. Returns nullptr if the system has no memory.
    Record* make() noexcept {
        const std::lock_guard guard(mutex_);
        Slab* const slab = slab_with_room();
        if (slab == nullptr) return nullptr;
        void* record = slab->free;
        if (record != nullptr) {
            slab->free = slab->free->next;
        } else {
            record =
                reinterpret_cast<std::byte*>(slab) + first_record + slab->made * sizeof(Record);
            ++slab->made;
        }
        if (++slab->live == records_per_slab) {
            with_room_.pop_front();
            full_.push_front(*slab);
        }
        return new (record) Record();
    }
    void destroy(Record* record) noexcept {
        const std::lock_guard guard(mutex_);
        Slab& slab = *slab_of(record);
        record->~Record();
        if (slab.live-- == records_per_slab) {
            full_.erase(full_.iterator_to(slab));
            with_room_.push_front(slab);
        }
        slab.free = new (static_cast<void*>(record)) FreeRecord{slab.free};
        // The only slab with room stays, because the next record would need it again.
        const bool is_only = &with_room_.front() == &with_room_.back();
        if (slab.live == 0 && !is_only) drop(slab);
    }

    /// From now on, keeps the addresses of all slabs until destruction, so that former records may
    /// be read at any time. A record whose page was dropped reads as zeros.
    void keep_slabs() noexcept { keeps_slabs_ = true; }

    /// The bytes of all slabs except their dropped pages.
    std::size_t slab_bytes_held() const noexcept { return held(); }

private:
    static constexpr std::size_t slab_bytes = std::size_t{16} << 10;

    struct FreeRecord {
        FreeRecord* next;
    };
    // A slab begins at a multiple of its size, so that masking a record's address yields its slab.
    // Records [0, made) were used at least once; the free ones among them form a list.
    struct Slab : boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::normal_link>> {
        FreeRecord* free = nullptr;
        unsigned live = 0;
        unsigned made = 0;
    };
    using Slabs = boost::intrusive::list<Slab, boost::intrusive::constant_time_size<false>>;

    static constexpr std::size_t first_record =
        (sizeof(Slab) + alignof(Record) - 1) / alignof(Record) * alignof(Record);
    static constexpr unsigned records_per_slab =
        static_cast<unsigned>((slab_bytes - first_record) / sizeof(Record));
    static_assert(sizeof(Record) >= sizeof(FreeRecord));

    static Slab* slab_of(Record* record) noexcept {
        return reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(record) &
                                       ~(slab_bytes - 1));
    }
    Slab* slab_with_room() noexcept {
        if (!with_room_.empty()) [[likely]]
            return &with_room_.front();
        if (dropped_.empty()) return add_slab();
        with_room_.splice(with_room_.begin(), dropped_, dropped_.begin());
        count_held(droppable_bytes());
        return &with_room_.front();
    }
    Slab* add_slab() noexcept {
        void* const memory = platform::map(slab_bytes, slab_bytes);
        if (memory == nullptr) return nullptr;
        Slab* const slab = new (memory) Slab();
        with_room_.push_front(*slab);
        count_held(slab_bytes);
        return slab;
    }
    void drop(Slab& slab) noexcept {
        if (keeps_slabs_) return drop_pages(slab);
        with_room_.erase(with_room_.iterator_to(slab));
        platform::unmap(&slab, slab_bytes);
        count_held(std::size_t{0} - slab_bytes);
    }
    // Records may be read at any time: dropped pages stay readable.
    void drop_pages(Slab& slab) noexcept {
        const std::size_t bytes = droppable_bytes();
        if (bytes == 0) return;
        std::byte* const end = reinterpret_cast<std::byte*>(&slab) + slab_bytes;
        // Its list of free records is discarded, whether or not the system drops the pages.
        slab.free = nullptr;
        slab.made = 0;
        if (!platform::decommit(end - bytes, bytes)) return;
        dropped_.splice(dropped_.begin(), with_room_, with_room_.iterator_to(slab));
        count_held(std::size_t{0} - bytes);
    }
    void unmap_all(Slabs& slabs) noexcept {
        while (!slabs.empty()) {
            Slab& slab = slabs.front();
            slabs.pop_front();
            platform::unmap(&slab, slab_bytes);
            count_held(std::size_t{0} - slab_bytes);
        }
    }
    // The first page contains the head, so it stays.
    static std::size_t droppable_bytes() noexcept {
        return slab_bytes - std::min(platform::page_bytes(), slab_bytes);
    }

    Slabs with_room_;
    Slabs full_;
    Slabs dropped_;  // slabs without records, of which only the first page is left
    bool keeps_slabs_ = false;
};

}  // namespace tensorpool::pages
