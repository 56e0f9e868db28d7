#pragma once

/// @file
/// The source of the server's statistics: the processes of this machine, or those that a test
/// simulates.

#include <cstdint>
#include <memory>
#include <string>
#include <tensorpool/statistics_reader.hpp>
#include <utility>
#include <vector>

namespace tensorpool::command::serve {

/// A process that can be chosen on the page.
struct ListedProcess {
    std::uint64_t process = 0;
    std::string name;
    bool readable = false;
    std::string problem;  ///< why it cannot be read; "" if it can
    bool ended = false;   ///< only its history is available

    bool operator==(const ListedProcess&) const = default;
};

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

class LiveProcess final : public Process {
public:
    explicit LiveProcess(StatisticsReader reader) : reader_(std::move(reader)) {}
    bool is_running() const override { return reader_.is_running(); }
    ProcessSnapshot snapshot() override { return reader_.snapshot(); }
    HeapProfile heap_profile() override { return reader_.heap_profile(); }
    TimelinePart entries_since(std::uint64_t number) override {
        return reader_.entries_since(number);
    }

private:
    StatisticsReader reader_;
};

/// The processes of this machine.
class LiveProcesses final : public Processes {
public:
    std::vector<ObservedProcess> list() override { return StatisticsReader::list(); }
    std::unique_ptr<Process> attach(std::uint64_t process) override {
        return std::make_unique<LiveProcess>(StatisticsReader::attach(process));
    }
};

}  // namespace tensorpool::command::serve
