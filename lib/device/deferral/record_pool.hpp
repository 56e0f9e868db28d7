#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace tensorpool::device {

/// A pool of records of one type. Records are reused, and freed only with the pool: a thread that
/// reads a record after it was given back still reads a record of this type. REQUIRES: one thread
/// at a time.
template <class Record>
class RecordPool {
public:
    /// Returns a record; its fields keep the values they were left with. Throws std::bad_alloc.
    Record& take() {
        if (!free_.empty()) {
            Record& record = *free_.back();
            free_.pop_back();
            return record;
        }
        make_room();
        return all_.emplace_back();
    }
    void give(Record& record) noexcept { free_.push_back(&record); }
    /// Makes sure that `count` records can be taken without an exception. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (free_.size() < count) {
            make_room();
            free_.push_back(&all_.emplace_back());
        }
    }

private:
    /// Makes room for one more record in `free_`, so that `give` never allocates.
    void make_room() {
        if (free_.capacity() <= all_.size()) free_.reserve(2 * all_.size() + 16);
    }

    std::deque<Record> all_;
    std::vector<Record*> free_;
};

}  // namespace tensorpool::device
