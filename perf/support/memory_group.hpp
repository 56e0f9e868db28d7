#pragma once

#include <cstddef>
#include <string>

namespace perf {

/// A control group of version 1 below that of this process, which limits the memory of the
/// processes in it (Linux: admin-guide/cgroup-v1/memory.rst). The system kills a process that needs
/// more. Only root may make one as a rule.
class MemoryGroup {
public:
    /// Makes the group. If that fails, `problem()` has the reason.
    explicit MemoryGroup(const std::string& name);
    /// Removes the group, which must have no process any more.
    ~MemoryGroup();
    MemoryGroup(const MemoryGroup&) = delete;
    MemoryGroup& operator=(const MemoryGroup&) = delete;

    /// Returns why there is no group; "" if there is one.
    const std::string& problem() const { return problem_; }
    /// Limits the memory of the group, swap included. Returns whether the system accepted it.
    bool set_limit(std::size_t bytes) const;
    /// Moves this process into the group. Returns whether the system accepted it. Memory that the
    /// process has already remains charged to its former group.
    bool enter() const;
    /// Returns the most bytes that the group has held, page cache included.
    std::size_t peak_bytes() const;

private:
    bool write(const char* file, std::size_t value) const;

    std::string folder_;
    std::string problem_;
};

}  // namespace perf
