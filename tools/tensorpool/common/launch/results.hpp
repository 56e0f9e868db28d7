#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "common/launch/parts.hpp"
#include "common/totals.hpp"

namespace tensorpool::command::launch {

/// The final statistics of a process that used a pool.
struct ProcessResult {
    ProcessSnapshot snapshot;
    Totals totals;
    bool has_ended = true;
};

/// The notes of programs about a part. A process that executes another program counts as another
/// program.
struct PartNotes {
    std::uint64_t programs = 0;         ///< programs in which it is enabled
    std::vector<std::string> problems;  ///< failures, each once; at most a few
};

/// The results of all processes, as the report shows them. Its size is bounded, however many
/// processes there were.
class Results {
public:
    void add(ProcessSnapshot snapshot, bool has_ended);
    /// Adds a note: "malloc" if the part is enabled, "numpy\n<reason>" if it failed.
    void add_note(const std::string& note);
    /// Adds a message about something that could not be read.
    void add_problem(const std::string& what);

    /// The processes with the largest peaks, in that order.
    const std::vector<ProcessResult>& largest() const noexcept { return largest_; }
    /// The number of all processes, and the number and totals of those not in `largest()`.
    std::uint64_t processes() const noexcept { return largest_.size() + others_; }
    std::uint64_t others() const noexcept { return others_; }
    const Totals& totals_of_others() const noexcept { return totals_of_others_; }

    const PartNotes& notes(Part part) const noexcept {
        return notes_[static_cast<std::size_t>(part)];
    }
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    std::vector<ProcessResult> largest_;
    std::uint64_t others_ = 0;
    Totals totals_of_others_;
    std::array<PartNotes, std::size(all_parts)> notes_;
    std::vector<std::string> problems_;
};

}  // namespace tensorpool::command::launch
