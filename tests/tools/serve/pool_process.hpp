#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tensorpool::command::serve::testing {

/// A process that has pools and works in them until it is killed.
class PoolProcess {
public:
    /// Returns when the first blocks are allocated. The pools are named `name` and a number.
    explicit PoolProcess(const std::string& name, unsigned pools = 1);
    ~PoolProcess() { kill(); }
    PoolProcess(const PoolProcess&) = delete;
    PoolProcess& operator=(const PoolProcess&) = delete;

    std::uint64_t process() const { return static_cast<std::uint64_t>(process_); }
    /// Sends SIGKILL and returns when the process has ended.
    void kill();

private:
    pid_t process_;
};

}  // namespace tensorpool::command::serve::testing
