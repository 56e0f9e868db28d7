#pragma once

#include "statistics/segment/segment.hpp"
#include "statistics/segment/slab_list.hpp"

namespace tensorpool::statistics {

/// Adds counters to counters that several records share, by their growth since the last time. Used
/// for objects without a record in the segment. One FoldedWords object is not thread-safe. The
/// shared counters are added to atomically.
template <std::size_t words>
class FoldedWords {
public:
    /// Adds the change of each counter since the last call. Counters may also shrink: the loss is
    /// then subtracted, modulo 2^64.
    void fold(const detail::Counter* now, detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) {
            add(into[i], now[i].load(std::memory_order_relaxed), folded_[i]);
        }
    }
    void unfold(detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) add(into[i], 0, folded_[i]);
    }

private:
    // Relaxed: the sums order nothing.
    static void add(detail::Counter& into, std::uint64_t now, std::uint64_t& folded) noexcept {
        if (now == folded) return;
        into.fetch_add(now - folded, std::memory_order_relaxed);
        folded = now;
    }

    std::uint64_t folded_[words] = {};
};

/// The record of one object. It lies in the segment, so that other processes read the counters that
/// the object writes. If the segment has no free record, it is a private record, which is counted
/// as left out and added to `other` from time to time. The memory of a private record comes from
/// the system because this library may serve malloc.
template <class Record>
class OwnedRecord {
public:
    /// Creates the record. `fill(record)` sets the fields that describe the object.
    template <class Fill>
    OwnedRecord(std::string_view name, Fill fill) noexcept
        : record_(segment().add<Record>(name, fill)) {
        if (record_ != nullptr) return;
        Apart* const memory = segment().locked([] { return unused_.take(); });
        if (memory == nullptr) return;
        memory->~Apart();
        apart_ = new (memory) Apart{};
        record_ = &apart_->record;
        store_name(record_->name, name);
        fill(*record_);
        record_->id.store(segment().next_id(), std::memory_order_relaxed);
        segment().count_left_out(Record::layout, true);
    }
    OwnedRecord(OwnedRecord&& other) noexcept
        : record_(std::exchange(other.record_, nullptr)),
          apart_(std::exchange(other.apart_, nullptr)) {}
    ~OwnedRecord() {
        leave();
        if (apart_ == nullptr) return;
        segment().locked([this] { unused_.give_back(*apart_); });
    }
    OwnedRecord(const OwnedRecord&) = delete;
    OwnedRecord& operator=(const OwnedRecord&) = delete;

    /// False if there is no memory for a private record. No other function may be called then.
    explicit operator bool() const noexcept { return record_ != nullptr; }
    /// Throws std::bad_alloc if there is no record.
    OwnedRecord&& or_throw() && {
        if (record_ == nullptr) throw std::bad_alloc();
        return std::move(*this);
    }
    Record& operator*() const noexcept { return *record_; }
    Record* operator->() const noexcept { return record_; }
    bool is_in_segment() const noexcept { return apart_ == nullptr; }

    /// For a private record: updates `other` by the growth of its counters from `totals` on. Calls
    /// `prepare` before that, under the same lock. Does nothing for a record in the segment. May be
    /// called on any thread.
    template <class Prepare>
    void fold(Prepare prepare) noexcept {
        if (apart_ == nullptr) [[likely]]
            return;
        Record* const other = segment().other<Record>();
        if (other == nullptr) return;
        const std::lock_guard guard(apart_->mutex);
        prepare();
        apart_->folded.fold(as_words(*record_) + first_word, as_words(*other) + first_word);
    }
    void fold() noexcept {
        fold([] {});
    }
    /// Returns the record to the segment; this object then has none. A private record is subtracted
    /// from `other` but exists until this object is destroyed, because the child of a fork may
    /// still read it.
    void leave() noexcept {
        if (record_ == nullptr || (apart_ != nullptr && std::exchange(apart_->has_left, true))) {
            return;
        }
        if (apart_ == nullptr) return segment().remove(*std::exchange(record_, nullptr));
        if (Record* const other = segment().other<Record>()) {
            apart_->folded.unfold(as_words(*other) + first_word);
        }
        segment().count_left_out(Record::layout, false);
    }

    /// Called around a fork, if other threads may call `fold` at the same time.
    void lock() noexcept {
        if (apart_ != nullptr) apart_->mutex.lock();
    }
    void unlock() noexcept {
        if (apart_ != nullptr) apart_->mutex.unlock();
    }

private:
    static constexpr std::size_t first_word = Record::layout.folded / sizeof(Counter);

    struct Apart {
        Record record;
        std::mutex mutex;
        FoldedWords<words_of<Record> - first_word> folded;
        bool has_left = false;
        Apart* next_free = nullptr;
    };
    static inline constinit SlabList<Apart> unused_;  // used under the segment's lock

    Record* record_;
    Apart* apart_ = nullptr;
};

}  // namespace tensorpool::statistics
