#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace tensorpool::device {

/// Records of one type, that are used again and never given back before the pool ends: a look at
/// one that has gone reads one of the same type. REQUIRES: one thread at a time.
template <class Record>
class RecordPool {
public:
    /// Its fields are as they were left. Throws std::bad_alloc.
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
    /// So many can be taken without an exception. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (free_.size() < count) {
            make_room();
            free_.push_back(&all_.emplace_back());
        }
    }

private:
    /// For one record more in `free_`: `give` allocates nothing.
    void make_room() {
        if (free_.capacity() <= all_.size()) free_.reserve(2 * all_.size() + 16);
    }

    std::deque<Record> all_;
    std::vector<Record*> free_;
};

}  // namespace tensorpool::device
