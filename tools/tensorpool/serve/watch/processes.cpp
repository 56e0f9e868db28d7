#include "serve/watch/processes.hpp"

#include <utility>

namespace tensorpool::command::serve {
namespace {

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

}  // namespace

std::vector<ObservedProcess> LiveProcesses::list() {
    return StatisticsReader::list();
}

std::unique_ptr<Process> LiveProcesses::attach(std::uint64_t process) {
    return std::make_unique<LiveProcess>(StatisticsReader::attach(process));
}

}  // namespace tensorpool::command::serve
