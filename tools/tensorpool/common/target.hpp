#pragma once

/// @file
/// Chooses the process to read, attaches to it, and waits for it.

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <thread>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"
#include "common/totals.hpp"

namespace tensorpool::command {

/// The kernel keeps this many bytes of a name (TASK_COMM_LEN less the terminating zero).
inline constexpr std::size_t system_name_bytes = 15;
inline constexpr std::size_t max_named = 5;
inline constexpr std::chrono::milliseconds between_looks{100};

template <class Holds>
std::vector<ObservedProcess> those(const std::vector<ObservedProcess>& processes, Holds&& holds) {
    std::vector<ObservedProcess> found;
    std::ranges::copy_if(processes, std::back_inserter(found), holds);
    return found;
}

inline std::string list_of(const std::vector<ObservedProcess>& processes) {
    std::string text;
    for (std::size_t i = 0; i < processes.size() && i < max_named; ++i) {
        text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", processes[i].process,
                            shown_name(processes[i].name, processes[i].process));
    }
    return processes.size() <= max_named ? text : text + ", ...";
}

inline CommandError none_found(const Settings& settings) {
    if (settings.name.empty()) {
        return {target_gone,
                "no process with a pool is visible; `tensorpool doctor` shows possible reasons"};
    }
    return {target_gone, fmt::format("no process named {} has a pool; `tensorpool ls` lists those "
                                     "that do, --wait waits for one",
                                     printable(settings.name))};
}

inline CommandError several_found(const std::vector<ObservedProcess>& found,
                                  const Settings& settings) {
    const std::string which =
        settings.name.empty() ? "" : " whose names match " + printable(settings.name);
    return {wrong_usage, fmt::format("there are {} processes{}: {}; choose one with --pid",
                                     found.size(), which, list_of(found))};
}

/// Returns the processes of this name, which the kernel may have cut to 15 bytes. If there are
/// none, returns those whose name contains it.
inline std::vector<ObservedProcess> find_by_name(const std::vector<ObservedProcess>& processes,
                                                 std::string_view name) {
    std::vector<ObservedProcess> found = those(processes, [&](const ObservedProcess& process) {
        return process.name == name || (process.name.size() == system_name_bytes &&
                                        name.substr(0, system_name_bytes) == process.name);
    });
    if (!found.empty()) return found;
    return those(processes, [&](const ObservedProcess& process) {
        return process.name.find(name) != std::string::npos;
    });
}

/// Returns the id of the process given by --pid or --name, or of the only process if neither was
/// given. Throws CommandError if there is none, or more than one.
inline std::uint64_t choose_process(const std::vector<ObservedProcess>& processes,
                                    const Settings& settings) {
    if (settings.process != 0) return settings.process;
    std::vector<ObservedProcess> found =
        settings.name.empty() ? processes : find_by_name(processes, settings.name);
    // Processes that can be read take precedence over those that cannot.
    if (found.size() > 1) {
        auto readable = those(found, [](const ObservedProcess& p) { return p.readable; });
        if (!readable.empty()) found = std::move(readable);
    }
    if (found.empty()) throw none_found(settings);
    if (found.size() > 1) throw several_found(found, settings);
    return found.front().process;
}

inline CommandError to_command_error(const AttachError& error) {
    // The library's messages begin with "tensorpool: ", which the command prints itself.
    constexpr std::string_view prefix = "tensorpool: ";
    std::string_view what = error.what();
    if (what.starts_with(prefix)) what.remove_prefix(prefix.size());
    const bool gone =
        error.failure() == AttachFailure::no_process || error.failure() == AttachFailure::ended;
    return {gone ? target_gone : finding, printable(what)};
}

/// Attaches to the chosen process. With --wait, waits until it exists. Throws CommandError.
inline StatisticsReader attach_chosen(const Settings& settings) {
    for (;; std::this_thread::sleep_for(between_looks)) {
        try {
            return StatisticsReader::attach(choose_process(StatisticsReader::list(), settings));
        } catch (const AttachError& error) {
            // The process may have ended, or may not have created its segment yet.
            const bool may_come = error.failure() == AttachFailure::no_segment ||
                                  to_command_error(error).code() == target_gone;
            if (!settings.wait || !may_come) throw to_command_error(error);
        } catch (const CommandError& error) {
            if (!settings.wait || error.code() != target_gone) throw;
        }
    }
}

/// Sleeps until `time`, or until the process has ended.
inline void pause_until(std::chrono::steady_clock::time_point time,
                        const StatisticsReader& reader) {
    using namespace std::chrono_literals;
    for (auto now = std::chrono::steady_clock::now(); now < time && reader.is_running();
         now = std::chrono::steady_clock::now()) {
        std::this_thread::sleep_for(
            std::min<std::chrono::steady_clock::duration>(time - now, 100ms));
    }
}

/// Calls `has_answered` every 2 ms until it returns true, the process has ended, or `patience` is
/// over. Returns what it returned last.
inline bool wait_for_answer(const StatisticsReader& process, std::chrono::nanoseconds patience,
                            const std::function<bool()>& has_answered) {
    constexpr std::chrono::milliseconds between_questions{2};
    const auto begin = std::chrono::steady_clock::now();
    bool answered = has_answered();
    while (!answered && process.is_running() &&
           std::chrono::steady_clock::now() - begin < patience) {
        std::this_thread::sleep_for(between_questions);
        answered = has_answered();
    }
    return answered;
}

}  // namespace tensorpool::command
