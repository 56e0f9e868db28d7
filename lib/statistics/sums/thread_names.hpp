#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::statistics {

/// The names of a process's threads. Each is asked for when its thread is first seen, and again now
/// and then, for threads get their names after they began: not each time, so that many threads do
/// not cost a reader as many calls.
class ThreadNames {
public:
    /// Fills in the names. `now_ns` is any clock's that only goes forward. Throws std::bad_alloc.
    void put_into(std::vector<ThreadStatistics>& threads, std::uint64_t process,
                  std::uint64_t now_ns);

private:
    static constexpr std::uint64_t period_ns = 1'000'000'000;

    std::uint64_t since_ns_ = 0;
    std::map<std::uint64_t, std::string> names_;
};

}  // namespace tensorpool::statistics
