#pragma once

/// @file
/// The source of the server's statistics: the processes of this machine, or those that a test
/// simulates.

#include <cstdint>
#include <memory>
#include <tensorpool/statistics_reader.hpp>
#include <vector>

namespace tensorpool::command::serve {

/// An attached process. Has the contract of `StatisticsReader`.
class Process {
public:
    virtual ~Process() = default;
    virtual bool is_running() const = 0;
    virtual ProcessSnapshot snapshot() = 0;
    virtual HeapProfile heap_profile() = 0;
    virtual TimelinePart entries_since(std::uint64_t number) = 0;
};

class Processes {
public:
    virtual ~Processes() = default;
    virtual std::vector<ObservedProcess> list() = 0;
    /// Throws AttachError.
    virtual std::unique_ptr<Process> attach(std::uint64_t process) = 0;
};

/// The processes of this machine.
class LiveProcesses final : public Processes {
public:
    std::vector<ObservedProcess> list() override;
    std::unique_ptr<Process> attach(std::uint64_t process) override;
};

}  // namespace tensorpool::command::serve
