#pragma once

/// @file
/// The source of the server's statistics: the processes of this machine, or those that a test
/// simulates. Also the data for the page, as JSON, in which U+FFFD replaces invalid UTF-8.

#include <utility>

#include <tensorpool/statistics_reader.hpp>

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

/// Returns a JSON string, including its quotes.
std::string json_string(std::string_view text);

std::string to_json(const std::vector<ListedProcess>& processes);
/// Returns the data of the event `snapshot`.
std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates);
/// Returns the data of the event `timeline`.
std::string to_json(const TimelinePart& part);
/// Returns the data of the event `ended`: the time, in seconds since 1970.
std::string ended_json(std::uint64_t time_unix_ns);
/// Returns the body of the answer to a rejected request.
std::string error_json(std::string_view message);

}  // namespace tensorpool::command::serve
