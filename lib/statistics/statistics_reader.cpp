#include <tensorpool/statistics_reader.hpp>

namespace tensorpool {

struct StatisticsReader::State {
    std::uint64_t process;
};

AttachError::AttachError(AttachFailure failure, const std::string& what)
    : std::runtime_error(what), failure_(failure) {}
AttachError::~AttachError() = default;

StatisticsReader::StatisticsReader(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
StatisticsReader::StatisticsReader(StatisticsReader&&) noexcept = default;
StatisticsReader& StatisticsReader::operator=(StatisticsReader&&) noexcept = default;
StatisticsReader::~StatisticsReader() = default;

std::vector<ObservedProcess> StatisticsReader::list() {
    return {};
}
unsigned StatisticsReader::remove_dead() {
    return 0;
}
StatisticsReader StatisticsReader::attach(std::uint64_t process) {
    throw AttachError(AttachFailure::system,
                      "tensorpool: process " + std::to_string(process) + ": not built yet");
}
std::uint64_t StatisticsReader::process() const noexcept {
    return state_->process;
}
bool StatisticsReader::is_running() const noexcept {
    return false;
}
ProcessSnapshot StatisticsReader::snapshot() {
    return {};
}
TimelinePart StatisticsReader::entries_since(std::uint64_t) {
    return {};
}

}  // namespace tensorpool
