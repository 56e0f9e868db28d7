#include <fmt/format.h>

#include <algorithm>

#include "export/formats.hpp"

namespace tensorpool::command::export_ {
namespace {

std::string time_of_day(std::uint64_t unix_ns) {
    const std::uint64_t micros = unix_ns / 1000;
    const std::uint64_t seconds = micros / 1'000'000;
    return fmt::format("{:02}:{:02}:{:02}.{:06}", seconds / 3600 % 24, seconds / 60 % 60,
                       seconds % 60, micros % 1'000'000);
}

/// The call whose time and thread a line shows. Blocks from before the recording use its first
/// call.
std::uint32_t known(std::uint32_t call) noexcept {
    return call == Lifetime::none ? 0 : call;
}

/// Makes addresses unique. The log has neither processes nor devices, and blocks of two of them may
/// have the same address. Each process after the first, and each device's allocator, gets an
/// address space of its own, above the addresses that operating systems use.
class Addresses {
public:
    explicit Addresses(const Recording& recording) {
        std::uint64_t spaces = recording.processes.size();
        for (const trace::RecordedSource& source : recording.sources) {
            const bool of_device = source.kind == TraceSource::device;
            space_of_source_.push_back(of_device ? spaces++ : source.process);
        }
    }
    std::uint64_t of(const Lifetime& lifetime) const noexcept {
        constexpr unsigned address_bits = 48;
        const bool of_source = space_of_source_[lifetime.source] != 0;
        const std::uint64_t space =
            of_source ? space_of_source_[lifetime.source] : lifetime.process;
        return lifetime.address + (space << address_bits);
    }

private:
    std::vector<std::uint64_t> space_of_source_;
};

std::string line_of(const History& history, std::uint32_t call, const char* action,
                    std::uint64_t address, std::uint64_t bytes, std::uint16_t stream = 0) {
    const Recording& recording = history.recording();
    const trace::Call& from = recording.calls[known(call)];
    return fmt::format("{},{},{},{:#x},{},{:#x}\n", recording.threads[from.thread].number,
                       time_of_day(recording.begun_unix_ns + from.time_ns), action, address,
                       std::min(bytes, UINT64_MAX - address), recording.streams[stream]);
}

}  // namespace

void write_rmm_log(const History& history, WrittenFile& file) {
    const Recording& recording = history.recording();
    file.write(fmt::format("{}\n", trace::rmm_log_beginning));
    const Addresses addresses(recording);
    std::uint32_t written = 0;  // calls whose failures have been written
    const auto refusals_before = [&](std::uint32_t call) {
        for (; written < known(call); ++written) {
            const trace::Call& refused = recording.calls[written];
            if (refused.action != TraceAction::refuse) continue;
            file.write(line_of(history, written, "allocate failure", 0, refused.bytes));
        }
    };
    history.walk(
        [&](std::uint32_t i) {
            const Lifetime& lifetime = history.lifetimes()[i];
            refusals_before(lifetime.begin);
            file.write(line_of(history, lifetime.begin, "allocate", addresses.of(lifetime),
                               lifetime.bytes, lifetime.stream));
        },
        [&](std::uint32_t i) {
            const Lifetime& lifetime = history.lifetimes()[i];
            refusals_before(lifetime.end);
            file.write(line_of(history, lifetime.end, "free", addresses.of(lifetime),
                               lifetime.bytes, lifetime.stream));
        });
    refusals_before(static_cast<std::uint32_t>(recording.calls.size()));
}

}  // namespace tensorpool::command::export_
